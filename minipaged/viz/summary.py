"""Summary: a whole run in a few plain lines, for where there is nothing to draw on."""

from __future__ import annotations

from minipaged.trace import Trace
from minipaged.viz.theme import many


def summary(trace: Trace) -> list[str]:
    """What a run computed, who had to give way, and what happened to blocks."""
    if not len(trace):
        return ["No step was recorded."]
    computed = drawn = recomputed = preemptions = peak_held = peak_waiting = 0
    seconds = 0.0
    sequences: set[int] = set()
    requests: set[int] = set()
    for index in range(len(trace)):
        record = trace.moment(index).record
        computed += record.num_tokens
        recomputed += sum(chunk.num_recomputed for chunk in record.chunks)
        drawn += len(record.drawn)
        preemptions += sum(event.kind == "preempt" for event in record.events)
        sequences.update(chunk.sequence for chunk in record.chunks)
        requests.update(chunk.request for chunk in record.chunks)
        peak_held = max(peak_held, record.held_slots)
        peak_waiting = max(peak_waiting, record.num_waiting)
        seconds += record.seconds
    counts, header = trace.moment(len(trace) - 1).counts, trace.header
    found = counts["tokens_from_device"] + counts["tokens_from_host"] + counts["tokens_copied"]
    slots = header.num_blocks * header.block_size
    return [
        f"{many(len(trace), 'step')}: {many(len(requests), 'request')}, {many(len(sequences), 'sequence')}, "
        f"{many(drawn, 'token')} drawn in {seconds:.2f} s of engine time ({drawn / max(seconds, 1e-9):.0f} tokens/s).",
        f"{many(computed, 'token')} computed, {recomputed} of them again; {found} found in the cache.",
        f"{many(preemptions, 'preemption')}; up to {peak_waiting} waited; "
        f"{peak_held} of {many(slots, 'slot')} held at most.",
        f"Blocks: {counts['copies']} copied, {counts['evictions']} evicted, {counts['swaps_out']} swapped out, "
        f"{counts['swaps_in']} swapped in, {counts['drops']} lost for good.",
    ]


if __name__ == "__main__":  # python -m minipaged.viz.summary
    from minipaged.viz.example import example_trace

    print("\n".join(summary(example_trace())))
