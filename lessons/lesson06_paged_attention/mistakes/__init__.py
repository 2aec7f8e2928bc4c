"""Wrong answers that are easy to give. Each says what its author believes; the check knows each by name."""
