"""What a long prompt costs those who are writing, and what the budget costs the prompt: tokens and steps."""

from __future__ import annotations


def gap_of_prefill_first(prompt: int, writing: int) -> int:
    """Tokens computed between two tokens of one who writes: the prompt, and then a step for all, the newcomer too."""
    return prompt + writing + 1


def gap_of_a_budget(prompt: int, writing: int, budget: int) -> int:
    """Each step gives everybody a token, so a gap is one step, and a step has no more than its budget."""
    return min(budget, prompt + writing)


def steps_of_a_budget(prompt: int, writing: int, budget: int) -> int:
    """Steps until the prompt is computed and its first token drawn: each leaves one token to everybody who writes."""
    return -(-prompt // (budget - writing))
