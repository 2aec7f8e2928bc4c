"""Plausible wrong answers to lesson 12, each of which the check knows by name."""
