"""Plausible wrong answers to lesson 8, each of which the check knows by name."""
