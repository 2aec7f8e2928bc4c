"""Plausible wrong answers to lesson 5, each of which the check knows by name."""
