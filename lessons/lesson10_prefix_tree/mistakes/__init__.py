"""Plausible wrong answers to lesson 10, each of which the check knows by name."""
