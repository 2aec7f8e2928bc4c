"""Plausible wrong answers to lesson 14, each of which the check knows by name."""
