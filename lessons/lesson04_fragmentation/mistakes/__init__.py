"""Plausible wrong answers. The check rejects each and names the misconception."""
