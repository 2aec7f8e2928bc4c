"""Plausible wrong solutions of lesson 7, one misconception each."""
