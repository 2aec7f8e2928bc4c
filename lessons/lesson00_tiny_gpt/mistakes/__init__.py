"""Wrong answers that a person might well give, each with the thought behind it."""
