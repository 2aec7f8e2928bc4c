"""Checks of lesson 8's exercise: a few requests by hand, then a crowd of them beside the engine's own scheduler."""

from __future__ import annotations

import random
from types import ModuleType
from typing import Any

from lessons.lesson08_continuous_batching.hall import BLOCK_SIZE, Hall, is_reversed
from lessons.runner.checks import expect
from minipaged import scheduler

MISCONCEPTIONS = {
    "newcomers_first": "Who is in the middle of an answer goes first. A step has room for so many tokens, and a "
    "newcomer brings a whole prompt: let it in first, and those who are writing get nothing in this step.",
    "waits_for_the_batch": "There is no batch that must be over. A place that is empty can be taken in the very next "
    "step, however long the others go on.",
    "youngest_first": "The queue is served from its front. Taken from its end, whoever came first waits as long as "
    "others keep coming, for ever if need be.",
    "more_than_there_are_places": "An empty queue is not the only reason to stop. There are max_sequences places, "
    "and each running sequence must get its token in every step.",
    "who_fits_goes_first": "When the first in the queue does not fit, the small ones behind it must wait, too. Let "
    "them overtake, and they take each block that becomes free: the large one never gets in.",
    "one_newcomer_per_step": "One newcomer in a step is too few. If four places are empty, four may come in at once; "
    "else the places stay empty for three steps, which is what we wanted to be rid of.",
    "one_per_computed_token": "A step draws one token for a sequence, behind the last of the tokens that it computed, "
    "however many these were.",
    "drawn_is_computed": "The token just drawn is in the text, but its K and V are in no cache: the next step computes "
    "it. Counted as computed, it would be skipped, and nothing be left to compute.",
    "prompt_counted": "max_tokens limits the answer. The prompt is in `tokens`, too, so it is `draws` that must "
    "be counted.",
    "one_token_too_many": "When the answer has max_tokens tokens it is done. To look for more than that gives one "
    "token more than was asked for, and with it one step more in which the place is taken.",
    "stop_looked_for_too_early": "The token to be looked at is the one just drawn. The last of `tokens`, before it is "
    "put there, is the one before: the answer ends one step late, behind its own end.",
    "stop_not_kept": "The stop token belongs to the text: who reads the answer later wants to see why it ended. Append "
    "first, then look.",
    "length_before_stop": "An answer whose last allowed token is a stop token has said what it wanted to say: that is "
    '"stop", not "length". Look for the stop token first.',
    "stays_for_the_batch": "Who has ended leaves in the same step. To keep the place until the others have ended is "
    "static batching again: an idle place in every step, and the queue waits.",
    "youngest_leaves": "The one that has ended leaves, and that can be any of them. Answers do not end in the order in "
    "which they began.",
    "slots_kept": "A place is not all that it had. Without `memory.release` its blocks stay taken, and soon there is a "
    "free place but no memory for whoever should have it.",
}


def task_1(exercise: ModuleType) -> None:
    """fill"""
    hall = Hall(exercise.Scheduler, "fill", places=2)
    for _ in range(3):
        hall.come(prompt=3)
    found = hall.schedule()
    names = [who for who, _ in found]
    because = ""
    if len(names) > 2:
        because = MISCONCEPTIONS["more_than_there_are_places"]
    elif is_reversed(names):
        because = MISCONCEPTIONS["youngest_first"]
    elif names == ["A"]:
        because = MISCONCEPTIONS["one_newcomer_per_step"]
    what = "2 places; A, B and C wait, prompts of 3 tokens"
    expect(f"{what}: the first step (who, tokens)", found, [("A", 3), ("B", 3)], because)
    expect(f"{what}: places after fill()", hall.running, ["A", "B"])
    expect(f"{what}: queue after fill()", hall.waiting, ["C"])
    hall.commit()
    expect(f"{what}: the second step", hall.step(), [("A", 1), ("B", 1)])

    hall = Hall(exercise.Scheduler, "fill", places=3, budget=4)
    hall.come(prompt=1)
    hall.come(prompt=1)
    hall.step()
    hall.come(prompt=3)
    found = hall.step()
    because = ""
    if found and found[0][0] == "C":
        because = MISCONCEPTIONS["newcomers_first"]
    elif len(found) == 2:
        because = MISCONCEPTIONS["waits_for_the_batch"]
    what = "3 places, room for 4 tokens in a step; A and B are writing, C comes with 3 tokens"
    expect(f"{what}: the next step", found, [("A", 1), ("B", 1), ("C", 2)], because)

    hall = Hall(exercise.Scheduler, "fill", places=3, blocks=3)
    hall.come(prompt=3, max_tokens=2)
    hall.step()
    hall.come(prompt=3 * BLOCK_SIZE, max_tokens=1)
    hall.come(prompt=3, max_tokens=2)
    found = hall.step()
    because = MISCONCEPTIONS["who_fits_goes_first"] if ("C", 3) in found else ""
    what = "3 places, 3 blocks; A has one, B wants three, C behind B wants one"
    expect(f"{what}: the next step", found, [("A", 1)], because)
    expect(f"{what}: queue afterwards", hall.waiting, ["B", "C"], because)
    expect(f"{what}: A has ended; the step after that", hall.step(), [("B", 12)])
    expect("nobody is there: an empty step", Hall(exercise.Scheduler, "fill", places=2).schedule(), [])
    _beside_the_engine(exercise, "fill")


def task_2(exercise: ModuleType) -> None:
    """book"""
    hall = Hall(exercise.Scheduler, "book", places=2)
    one = hall.come(prompt=3, max_tokens=3, stop=0)
    hall.step()
    what = "A has a prompt of 3 tokens [5, 6, 7], max_tokens 3; the step computes it and draws 99"
    because = MISCONCEPTIONS["one_per_computed_token"] if one.tokens.count(99) > 1 else ""
    expect(f"{what}: tokens", list(one.tokens), [5, 6, 7, 99], because)
    expect(f"{what}: number of draws", len(one.draws), 1)
    because = MISCONCEPTIONS["drawn_is_computed"] if one.num_computed == 4 else ""
    expect(f"{what}: num_computed", one.num_computed, 3, because)
    expect(f"{what}: has it ended", one.finish_reason, None, MISCONCEPTIONS["prompt_counted"])
    hall.step()
    expect("A, after its second token: num_computed, tokens", (one.num_computed, len(one.tokens)), (4, 5))
    hall.step()
    what = "A, max_tokens 3, has its third token"
    expect(f"{what}: how it ended", one.finish_reason, "length", MISCONCEPTIONS["one_token_too_many"])
    expect(f"{what}: tokens of the answer", len(one.output_token_ids), 3)

    hall = Hall(exercise.Scheduler, "book", places=2)
    one = hall.come(prompt=3, max_tokens=9, stop=0)
    hall.step()
    hall.step(0)
    what = "A stops at token 0; 99 and 0 are drawn"
    expect(f"{what}: how it ended", one.finish_reason, "stop", MISCONCEPTIONS["stop_looked_for_too_early"])
    expect(f"{what}: the answer", one.output_token_ids, [99, 0], MISCONCEPTIONS["stop_not_kept"])

    hall = Hall(exercise.Scheduler, "book", places=2)
    one = hall.come(prompt=3, max_tokens=1, stop=0)
    hall.step(0)
    what = "A stops at token 0, max_tokens 1; 0 is drawn"
    expect(f"{what}: how it ended", one.finish_reason, "stop", MISCONCEPTIONS["length_before_stop"])

    hall = Hall(exercise.Scheduler, "book", places=2, chunk=2)
    one = hall.come(prompt=5, max_tokens=9)
    hall.step()
    what = "A has a prompt of 5 tokens, the step computes 2 of them and draws nothing"
    expect(f"{what}: num_computed, tokens, draws", (one.num_computed, len(one.tokens), len(one.draws)), (2, 5, 0))
    _beside_the_engine(exercise, "book")


def task_3(exercise: ModuleType) -> None:
    """leave"""
    hall = Hall(exercise.Scheduler, "leave", places=3)
    for max_tokens in (9, 1, 9, 9):
        hall.come(prompt=3, max_tokens=max_tokens)
    hall.step()
    because = ""
    if len(hall.running) == 3:
        because = MISCONCEPTIONS["stays_for_the_batch"]
    elif "B" in hall.running:
        because = MISCONCEPTIONS["youngest_leaves"]
    what = "3 places: A, B, C; D waits. B has ended with its first token"
    expect(f"{what}: places", hall.running, ["A", "C"], because)
    because = MISCONCEPTIONS["slots_kept"]
    expect(f"{what}: slots that are held, in blocks of 4", hall.memory.held_slots, 2 * BLOCK_SIZE, because)
    expect(f"{what}: the next step", hall.step(), [("A", 1), ("C", 1), ("D", 3)])
    hall.scheduler.finish(hall.sequences[2], "cancelled")
    expect("C is cancelled from outside: places", hall.running, ["A", "D"])
    _beside_the_engine(exercise, "leave")


def _beside_the_engine(exercise: ModuleType, checked: str) -> None:
    """A crowd that comes and goes, in little memory, must be served step by step as the engine serves it."""
    for seed in range(12):
        generator = random.Random(seed)
        places = generator.randint(1, 5)
        sizes: dict[str, Any] = {
            "places": places,
            "blocks": generator.randint(6, 20),
            "budget": places + generator.randint(0, 12),
            "chunk": generator.choice([None, 3]),
        }
        halls = [Hall(exercise.Scheduler, checked, **sizes), Hall(scheduler.Scheduler, "all", **sizes)]
        for step in range(80):
            if step < 40 and generator.random() < 0.4:
                prompt, max_tokens = generator.randint(1, 12), generator.randint(1, 12)
                for hall in halls:
                    hall.come(prompt, max_tokens, stop=0)
            drawn = {number: generator.randrange(12) for number in range(40)}
            mine, engines = (hall.step(drawn.__getitem__) for hall in halls)
            what = f"a random crowd ({seed}; {sizes}), step {step}"
            expect(f"{what}: who is in it, tokens", mine, engines)
            standing = [_standing(hall) for hall in halls]
            expect(f"{what}: how all stand now (num_computed, tokens, ended by)", standing[0], standing[1])
            halls[0].memory.check()
            held = [hall.memory.held_slots for hall in halls]
            expect(f"{what}: slots that are held", held[0], held[1])


def _standing(hall: Hall) -> list[tuple[object, ...]]:
    return [(one.num_computed, len(one.tokens), one.finish_reason) for one in hall.sequences]
