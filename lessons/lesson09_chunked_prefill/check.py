"""Checks of lesson 9's exercise: single questions first, then steps that can be followed by hand, then a crowd."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from lessons.lesson08_continuous_batching.hall import Hall
from lessons.lesson09_chunked_prefill import solution
from lessons.runner.checks import expect, expect_whole
from minipaged import scheduler

MISCONCEPTIONS = {
    "nothing_left_behind": "Everybody behind must get a token, too. A long prompt that takes the whole budget stops "
    "all those who write, and they are what the budget is there for.",
    "counts_itself": "Those behind are the others. One that also keeps back a token for itself may end up with 0.",
    "beyond_the_end": "There is no more to compute than there are tokens. What is behind the end of the prompt is not "
    "written yet.",
    "limit_forgotten": "max_chunk_tokens limits what one sequence may have, however much of the budget is left.",
    "equal_shares": "Those who write cannot use an equal share: they have one token each. What they leave would be "
    "lost, and the prompt would take so many steps more.",
    "budget_per_sequence": "The budget is one for the whole step. Given to each sequence anew it limits nothing: ten "
    "prompts make the step ten times as long.",
    "prompts_first": "Prompts have most to compute, but who is older goes first, and who runs before who waits. Let "
    "the newcomers have the budget first, and those who write get nothing: prefill first again.",
    "empty_chunk": "When the budget is used up, nobody more comes in. A chunk of 0 tokens takes a place and computes "
    "nothing; and the model would draw from a row that is not there.",
    "charged_for_what_it_asked": "Take from the budget what a newcomer really got. Its prompt can be shorter than what "
    "was offered, and the rest belongs to the next one.",
    "newcomers_unlimited": "max_chunk_tokens holds for the first chunk, too, not only for those of sequences that run.",
    "drawn_in_mid_prompt": "In the middle of a prompt the next token is known: it is in the prompt. A token drawn "
    "there would be put behind the prompt's end, as an answer to half a question.",
    "only_a_whole_prompt": "What counts is where the chunk ends, not where it begins. The last chunk of a prompt does "
    "not begin at 0, and neither does any chunk of one that is being written.",
    "one_token_early": "The token at the last position must be computed as well: the next one is drawn from its row. "
    "The last position is total - 1, and a chunk ends before start + num_tokens.",
}


def task_1(exercise: ModuleType) -> None:
    """share"""
    asked = _scheduler(exercise, chunk=100)
    questions: tuple[tuple[tuple[int, int, int], int, dict[int, str]], ...] = (
        ((480, 64, 3), 61, {64: "nothing_left_behind", 60: "counts_itself", 16: "equal_shares"}),
        ((1, 64, 3), 1, {61: "beyond_the_end"}),
        ((20, 64, 0), 20, {64: "beyond_the_end"}),
        ((480, 512, 3), 100, {480: "limit_forgotten"}),
        ((1, 4, 3), 1, {0: "counts_itself"}),
        ((30, 4, 3), 1, {4: "nothing_left_behind"}),
    )
    for question, expected, known in questions:
        found = asked.share(*question)
        because = MISCONCEPTIONS.get(known.get(found, ""), "") if isinstance(found, int) else ""
        expect_whole(f"max_chunk_tokens 100: share{question} (uncomputed, budget, behind)", found, expected, because)
    generator = random.Random(9)
    for _ in range(20):
        behind, chunk = generator.randint(0, 5), generator.randint(1, 20)
        uncomputed, budget = generator.randint(1, 30), behind + generator.randint(1, 30)
        found = _scheduler(exercise, chunk=chunk).share(uncomputed, budget, behind)
        most = next(n for n in range(31, 0, -1) if n <= uncomputed and n + behind <= budget and n <= chunk)
        expect_whole(f"max_chunk_tokens {chunk}: share({uncomputed}, {budget}, {behind})", found, most)


def task_2(exercise: ModuleType) -> None:
    """fill"""
    hall = _hall(exercise, places=4, budget=10)
    for prompt in (3, 2, 9):
        hall.come(prompt)
    found = hall.step()
    because = ""
    if sum(n for _, n in found) > 10:
        because = MISCONCEPTIONS["budget_per_sequence"]
    elif found == [("A", 3)]:
        because = MISCONCEPTIONS["charged_for_what_it_asked"]
    what = "budget 10; A, B and C wait, with 3, 2 and 9 tokens"
    expect(f"{what}: the step", found, [("A", 3), ("B", 2), ("C", 5)], because)

    hall = _hall(exercise, places=4, budget=10)
    for _ in range(2):
        hall.come(prompt=1)
    hall.step()
    hall.come(prompt=30)
    what = "budget 10; A and B write, C comes with 30 tokens"
    found = hall.step()
    because = ""
    if found and found[0][0] == "C":
        because = MISCONCEPTIONS["prompts_first"]
    elif sum(n for _, n in found) > 10:
        because = MISCONCEPTIONS["budget_per_sequence"]
    expect(f"{what}: the step (who, tokens)", found, [("A", 1), ("B", 1), ("C", 8)], because)
    expect(f"{what}: places", hall.running, ["A", "B", "C"])
    expect(f"{what}: queue", hall.waiting, [])
    hall.come(prompt=5)
    found = hall.step()
    because = MISCONCEPTIONS["empty_chunk"] if ("D", 0) in found else ""
    what = "budget 10; A and B write, 22 tokens of C's prompt are left, D comes with 5"
    expect(f"{what}: the step", found, [("A", 1), ("B", 1), ("C", 8)], because)
    expect(f"{what}: queue", hall.waiting, ["D"])
    hall.step()
    what = "budget 10; A and B write, 6 tokens of C's prompt are left, D waits with 5"
    expect(f"{what}: the step", hall.step(), [("A", 1), ("B", 1), ("C", 6), ("D", 2)])

    hall = _hall(exercise, places=4, budget=20, chunk=8)
    for _ in range(3):
        hall.come(prompt=12)
    found = hall.step()
    because = MISCONCEPTIONS["newcomers_unlimited"] if found and found[0] == ("A", 12) else ""
    what = "budget 20, max_chunk_tokens 8; A, B and C wait, with 12 tokens each"
    expect(f"{what}: the step", found, [("A", 8), ("B", 8), ("C", 4)], because)
    expect(f"{what}: the step after it", hall.step(), [("A", 4), ("B", 4), ("C", 8)])

    hall = _hall(exercise, places=2, blocks=2)
    hall.come(prompt=4, max_tokens=4)
    hall.come(prompt=4, max_tokens=4)
    hall.step()
    what = "2 blocks of 4; A and B have one each, and both need another"
    expect(f"{what}: the step", hall.step(), [("A", 1)])
    expect(f"{what}: queue (B had to give way)", hall.waiting, ["B"])
    _beside_the_engine(exercise)


def task_3(exercise: ModuleType) -> None:
    """reaches_end"""
    asked = _scheduler(exercise)
    questions: tuple[tuple[tuple[int, int, int], bool, str], ...] = (
        ((0, 61, 480), False, "drawn_in_mid_prompt"),
        ((61, 61, 480), False, "drawn_in_mid_prompt"),
        ((427, 53, 480), True, "only_a_whole_prompt"),
        ((480, 1, 481), True, "only_a_whole_prompt"),
        ((427, 52, 480), False, "one_token_early"),
        ((0, 4, 5), False, "one_token_early"),
        ((0, 5, 5), True, ""),
        ((0, 1, 1), True, ""),
    )
    for question, expected, known in questions:
        found = asked.reaches_end(*question)
        expect(f"reaches_end{question} (start, num_tokens, total)", found, expected, MISCONCEPTIONS.get(known, ""))


def _scheduler(exercise: ModuleType, chunk: int | None = None) -> Any:
    return Hall(exercise.Scheduler, "all", places=4, budget=600, chunk=chunk).scheduler


def _hall(exercise: ModuleType, **sizes: Any) -> Hall:
    """With the learner's `fill`; what it asks of the other tasks is answered rightly."""
    right = {name: getattr(solution.Scheduler, name) for name in ("share", "reaches_end")}
    return Hall(type("Scheduler", (exercise.Scheduler,), right), "fill", **sizes)


def _beside_the_engine(exercise: ModuleType) -> None:
    """A crowd with long prompts, in little memory, must be served step by step as the engine serves it."""
    for seed in range(12):
        generator = random.Random(seed)
        places = generator.randint(1, 5)
        sizes: dict[str, Any] = {
            "places": places,
            "blocks": generator.randint(9, 25),
            "budget": places + generator.randint(0, 12),
            "chunk": generator.choice([None, 3, 7]),
        }
        halls = [_hall(exercise, **sizes), Hall(scheduler.Scheduler, "all", **sizes)]
        for step in range(80):
            if step < 40 and generator.random() < 0.3:
                prompt, max_tokens = generator.randint(1, 24), generator.randint(1, 12)
                for hall in halls:
                    hall.come(prompt, max_tokens)
            mine, engines = (hall.step() for hall in halls)
            expect(f"a random crowd ({seed}; {sizes}), step {step}: who is in it, tokens", mine, engines)
            expect(f"a random crowd ({seed}; {sizes}), step {step}: queue", halls[0].waiting, halls[1].waiting)
            halls[0].memory.check()
