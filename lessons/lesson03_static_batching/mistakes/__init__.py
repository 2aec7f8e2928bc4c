"""Plausible wrong answers to lesson 3, each of which the check knows by name."""
