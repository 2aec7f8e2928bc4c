"""Lesson 8: a scheduler's three decisions. Three tasks; `python -m lessons check 8` says how you stand.

What is given: `self.places` (the sequences that run) and `self.queue` (those that wait), two plain lists, both oldest
first; `self.max_sequences`, how many may run at the same time; `self.memory`. Of a sequence you need `tokens` (prompt
and answer so far), `draws` (one for each token of the answer), `num_computed` (how many of its tokens have their K and
V in the cache), `request.stop_token_ids` and `request.params.max_tokens`.

The engine goes round like this: `fill` a step; the model computes it; `book` for each sequence that was in it.
"""

from __future__ import annotations

from lessons.lesson08_continuous_batching.given import GivenScheduler
from minipaged.plan import Draw
from minipaged.request import Sequence


class Scheduler(GivenScheduler):
    """Who is in the next step, and what came of the last one."""

    def fill(self) -> None:
        """Task 1. Put this step together: who has a place goes on; then who waits comes in.

        `self.compute(sequence)` puts a running sequence into the step. Each of them is in every step.
        `self.admit(sequence)` asks memory for a waiting one and, if there is room, puts it into the step. It returns 0
        when there is none; then nobody behind it may come in either, or the large requests would wait for ever. Else
        it leaves the queue and takes a place: that is yours to do.

        max_sequences 3, places [A, B], queue [C, D]: A and B are computed, C is admitted.
        Now places == [A, B, C] and queue == [D].
        """
        raise NotImplementedError("lesson 8, task 1: fill a step")

    def book(self, sequence: Sequence, num_tokens: int, draw: Draw | None) -> None:
        """Task 2. Book what a step did for one sequence.

        Args:
            sequence: was in the step.
            num_tokens: so many more of its tokens are computed now.
            draw: what was drawn behind them; its `token_id` is the next token of the text. None when the step ended
                in the middle of the prompt: then there is nothing more to do.

        An answer ends with "stop" when the token just drawn is one of the request's stop tokens, which stays in the
        text; else with "length" when it has `max_tokens` tokens. `self.end(sequence, reason)` says so.

        tokens [5, 6, 7], num_computed 0; book(sequence, 3, Draw(9, …)): tokens [5, 6, 7, 9], one draw, num_computed 3.
        The 9 is not computed yet; the next step does that.
        """
        raise NotImplementedError("lesson 8, task 2: book what came back")

    def leave(self, sequence: Sequence) -> None:
        """Task 3. A running sequence has ended: give its place and its token slots back, now.

        `self.memory.release(sequence)` takes the slots. The others go on.

        places [A, B, C]; leave(B): places == [A, C], and B's slots are free.
        """
        raise NotImplementedError("lesson 8, task 3: leave at once")
