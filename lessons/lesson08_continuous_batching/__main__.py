"""Lesson 8, played: places stay empty until the slowest has ended; then they are given away in every step."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lessons.lesson08_continuous_batching import LESSON
from lessons.lesson08_continuous_batching.experiment import (
    PLACES,
    SMALL_PLACES,
    SMALL_WORK,
    WORK,
    Figures,
    Requests,
    Way,
    crowd,
)
from lessons.lesson08_continuous_batching.place_chart import legend, place_chart, steps_per_mark
from lessons.lesson08_continuous_batching.reckoning import continuous_steps, idle_places, static_steps
from lessons.runner.stage import Stage, run
from minipaged.viz.picture import Picture
from minipaged.viz.theme import Theme, letter

TIMES = (1, 2, 8, 64)  # the same requests so many times over


def play(stage: Stage) -> Figures:
    """Both acts."""
    parts = stage.mine.parts()
    requests = Requests(SMALL_WORK if stage.small else WORK, SMALL_PLACES if stage.small else PLACES, stage.device)
    places, width = requests.places, min(stage.console.width, 100)

    stage.act(1, "the batch ends with its slowest")
    static = requests.static()
    lengths = [len(answer) for answer in static.answers]
    stage.say(
        f"{len(lengths)} requests, {places} places. A place is one request's part in a step: it gets one token. A "
        "batch takes all places, and the next one begins when all its members have ended."
    )
    stage.table(
        "Static batches",
        ["request", "answer, tokens", "first in step", "last in step"],
        [
            (f"{letter(stay.request)}  {stage.theme.cut(title, 32)}", length, stay.first, stay.last)
            for stay, title, length in zip(static.stays, requests.titles, lengths, strict=True)
        ],
        highlight="",
    )
    batches = [lengths[first : first + places] for first in range(0, len(lengths), places)]
    longest = " + ".join(str(max(batch)) for batch in batches)
    reckoned = static_steps(lengths, places)
    stage.say(
        f"{longest} = [bold]{reckoned} steps[/], since each batch is as long as its longest answer. {places} places × "
        f"{static.steps} steps = {places * static.steps}, and {sum(lengths)} tokens were written: "
        f"[bold]{static.idle} times a place was idle[/] while others waited for it."
    )
    predicted_steps = continuous_steps(lengths, places)
    first = stage.predict(
        "steps",
        predicted_steps,
        "steps",
        hint="Now whoever ends leaves at once, and the next in the queue has the place in the next step. The table is "
        f"enough: begin with the first {places} requests, look who ends first, and give that place away.",
    )
    second = stage.predict("idle places", idle_places(lengths, places, predicted_steps), "idle")

    stage.act(2, "a new batch in every step")
    ways = (requests.without_cache(), requests.one_at_a_time(), static, requests.continuous(parts))
    continuous = ways[-1]
    stage.table(
        "The same requests, four ways",
        ["way", "places", "steps", "idle", "busy", "time", "speed"],
        [
            (
                way.name,
                way.places,
                way.steps,
                way.idle,
                f"{way.busy:.0%}",
                f"{way.seconds:.2f} s",
                f"{way.num_generated / way.seconds:.0f} tokens/s",
            )
            for way in ways
        ],
    )
    stage.picture(_charts(stage.theme, static, continuous, width), "static and continuous batching")
    stage.say(_who_gained(static, continuous))
    crowds = tuple(crowd(lengths, places, times) for times in TIMES)
    stage.table(
        "The same requests again and again, reckoned: steps, and the share of the places that is busy",
        ["requests", "static", "continuous", "at least", "busy, static", "busy, continuous"],
        [
            (one.requests, one.static, one.continuous, one.least, f"{one.busy_static:.1%}",
             f"{one.busy_continuous:.1%}")
            for one in crowds
        ],
    )  # fmt: skip
    same = all(way.answers == static.answers for way in ways)
    stage.say(f"All ways gave {'the same answers, token for token' if same else '[red]different answers[/]'}.")
    stage.score(first, continuous.steps)
    stage.score(second, continuous.idle)
    return Figures(
        answer_lengths=tuple(lengths),
        predicted_static=reckoned,
        predicted_steps=predicted_steps,
        predicted_idle=idle_places(lengths, places, predicted_steps),
        ways=ways,
        same_answers=same,
        crowds=crowds,
    )


def _charts(theme: Theme, static: Way, continuous: Way, width: int) -> Picture:
    per_mark = steps_per_mark(static.steps, width)
    lines = [
        line
        for way in (static, continuous)
        for line in place_chart(theme, way.name, way.stays, way.places, way.steps, per_mark, width)
    ]
    return Picture([*lines, legend(theme, per_mark)])


def _who_gained(static: Way, continuous: Way) -> str:
    """The request whose first token came earlier by most."""
    gains = [before.first - after.first for before, after in zip(static.stays, continuous.stays, strict=True)]
    request = gains.index(max(gains))
    before, after = static.stays[request], continuous.stays[request]
    return (
        f"{letter(request)} had its first token in step {after.first} instead of {before.first}, and its last in step "
        f"{after.last} instead of {before.last}. Nobody's came later."
        if min(gains) >= 0
        else f"{letter(request)} had its first token in step {after.first} instead of {before.first}."
    )


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
