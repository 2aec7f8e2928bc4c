"""Plausible wrong answers to lesson 9, each of which the check knows by name."""
