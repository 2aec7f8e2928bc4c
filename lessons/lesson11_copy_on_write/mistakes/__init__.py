"""Plausible wrong answers to lesson 11, each of which the check knows by name."""
