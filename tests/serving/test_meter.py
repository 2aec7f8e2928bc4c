"""What the meter makes of records, by hand."""

from __future__ import annotations

import pytest

from minipaged.plan import CopyBlock, SwapIn, SwapOut
from minipaged.serving.meter import ServingMeter
from minipaged.trace import ChunkRecord, Event, StepRecord


def record(started: float, seconds: float, chunks: tuple[ChunkRecord, ...], **others: object) -> StepRecord:
    fields: dict[str, object] = {
        "events": (), "num_running": 0, "num_waiting": 0, "total_slots": 100, "held_slots": 0, "live_slots": 0,
    }  # fmt: skip
    return StepRecord(0, started, seconds, chunks, **(fields | others))  # type: ignore[arg-type]


def chunk(sequence: int, start: int, n: int, blocks: int, kind: str, again: int = 0) -> ChunkRecord:
    return ChunkRecord(sequence, sequence, start, n, again, kind, tuple(range(blocks)))


def test_two_requests_by_hand() -> None:
    """One of 6 and 3 tokens that shares 4; one of 2 and 1. A pool of 100 slots, blocks of 4."""
    meter = ServingMeter(block_size=4, long_from=5)
    meter.expect(0, arrival=1.0, num_prompt=6, num_output=3)  # 8 slots in the end
    meter.expect(1, arrival=2.5, num_prompt=2, num_output=1)  # 2 slots in the end
    meter.refuse()
    meter(record(2.0, 1.0, (chunk(0, 4, 2, 2, "prefill"),), held_slots=8, live_slots=6, drawn=((0, 9),)))
    done = Event("finish", 1, "stop")
    meter(
        record(
            3.0, 2.0, (chunk(0, 6, 1, 2, "decode"), chunk(1, 0, 2, 1, "prefill")), held_slots=12, live_slots=9,
            drawn=((0, 9), (1, 0)), events=(done,), operations=(SwapOut(1, 1), SwapIn(1, 1), CopyBlock(1, 2)),
        )
    )  # fmt: skip
    preempted = (Event("preempt", 0, "for the test"),)
    meter(record(5.0, 1.0, (), events=preempted))
    end = (Event("finish", 0, "length"),)
    meter(
        record(6.0, 1.0, (chunk(0, 0, 8, 2, "recompute", 7),), held_slots=8, live_slots=8, drawn=((0, 0),), events=end)
    )

    figures = meter.figures("by hand")
    assert (figures.num_requests, figures.num_refused, figures.num_finished) == (2, 1, 2)
    assert (figures.prompt_tokens, figures.output_tokens, figures.num_steps) == (8, 4, 4)
    assert (figures.seconds, figures.busy_seconds) == (6.0, 5.0)
    assert figures.cached_tokens == 4 and figures.hit_rate == 0.5
    assert (figures.recomputed_tokens, figures.preemptions) == (7, 1)
    assert (figures.swapped_blocks, figures.copied_blocks) == (2, 1)
    assert figures.batch_size == pytest.approx((1 * 1 + 2 * 2 + 0 + 1 * 1) / 5)
    every = figures.all
    assert every.first_token.mean == pytest.approx((2.0 + 2.5) / 2) and every.first_token.longest == 2.5
    assert every.waiting.mean == pytest.approx((1.0 + 0.5) / 2)
    assert every.between_tokens.mean == pytest.approx((2.0 + 2.0) / 2)  # 3 to 5, and 5 to 7 with the preemption
    assert every.normalised.mean == pytest.approx((6.0 / 3 + 2.5 / 1) / 2)
    assert (figures.short.num_requests, figures.long.num_requests) == (1, 1)
    assert figures.long.normalised.mean == pytest.approx(2.0)
    assert figures.short.normalised.mean == pytest.approx(2.5)
    memory = figures.memory
    assert memory.live == pytest.approx((6 * 1 + 9 * 2 + 0 + 8 * 1) / 500)
    # Reserved: 8 - 6 of the first in its first step, 8 - 7 in its second. The other's block keeps two slots empty.
    assert memory.reserved == pytest.approx((2 * 1 + 1 * 2) / 500)
    assert memory.internal == pytest.approx(2 * 2 / 500)
    assert memory.external == 0
    assert memory.free == pytest.approx((92 * 1 + 88 * 2 + 100 * 1 + 92 * 1) / 500)
    assert memory.live + memory.reserved + memory.internal + memory.free == pytest.approx(1)


@pytest.mark.parametrize(
    ("cause", "wanted", "external"), [("no blocks", 40, 0.6), ("no blocks", 61, 0.0), ("no place", 40, 0.0)]
)
def test_free_slots_are_lost_when_they_would_do_in_one_piece(cause: str, wanted: int, external: float) -> None:
    meter = ServingMeter(1, slots_wanted=lambda: wanted)
    meter.expect(0, 0.0, 40, 1)
    chunks = (ChunkRecord(0, 0, 0, 40, 0, "prefill", tuple(range(40))),)
    meter(record(0.0, 1.0, chunks, held_slots=40, live_slots=40, waiting_cause=cause))
    assert meter.figures("").memory.external == pytest.approx(external)
    assert meter.figures("").memory.free == pytest.approx(0.6 - external)


def test_without_a_step_there_are_no_figures_to_divide_by() -> None:
    figures = ServingMeter(4).figures("")
    assert (figures.hit_rate, figures.requests_per_second, figures.output_tokens_per_second) == (0, 0, 0)
    assert figures.memory.utilisation == 1.0 and figures.batch_size == 0
