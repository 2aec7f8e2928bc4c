"""How much a prefix cache finds: by the engine, and by a count that knows nothing of it."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from collections.abc import Iterable
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.serving.prefix_hits import PrefixHits, prefix_hits
from minipaged.traffic import TimedRequest, read_mooncake

SHARED = Path(os.environ.get("MINIPAGED_SHARED", Path(__file__).parents[2].parent / "shared"))
MOONCAKE = SHARED / "traces" / "mooncake_conversation_trace.jsonl"


def counted(prompts: Iterable[list[int]], pool_blocks: int) -> PrefixHits:
    """Least recently used first out, children before parents; a block is named by all that comes before it."""
    cache: OrderedDict[tuple[int, ...], None] = OrderedDict()
    requests = blocks = found = last = 0
    for prompt in prompts:
        names = [tuple(prompt[: i + 1]) for i in range(len(prompt))]
        run = next((i for i, name in enumerate(names) if name not in cache), len(names))
        requests += 1
        blocks += len(names)
        found += min(run, len(names) - 1)
        last += run == len(names)
        if run == len(names) == len(prompt) and len(cache) == pool_blocks:  # the last one is computed into a block
            cache.pop(next(name for name in cache if name not in names[:-1]))
        for name in reversed(names):
            cache.pop(name, None)
            cache[name] = None
        while len(cache) > pool_blocks:
            cache.popitem(last=False)
    return PrefixHits(requests, blocks, found, last)


def served(prompts: Iterable[list[int]], pool_blocks: int) -> PrefixHits:
    return prefix_hits((TimedRequest(0.0, tuple(prompt), 1) for prompt in prompts), pool_blocks)


def test_by_hand() -> None:
    prompts = [[1, 2, 3], [1, 2, 4], [1, 2, 3], [5]]
    assert served(prompts, 100) == PrefixHits(num_requests=4, num_blocks=10, num_found=4, num_last=1)
    assert served(prompts, 100).rate == 0.5 and served(prompts, 100).engine_rate == 0.4
    # Three blocks hold the last prompt only, and of the second the end is given up for [1, 2, 3]'s.
    assert served(prompts, 3) == PrefixHits(4, 10, 4, 0)


@given(st.lists(st.lists(st.integers(0, 2), min_size=1, max_size=5), min_size=1, max_size=30), st.integers(5, 12))
def test_the_engine_finds_what_the_count_finds(prompts: list[list[int]], pool_blocks: int) -> None:
    assert served(prompts, pool_blocks) == counted(prompts, pool_blocks)


@pytest.mark.skipif(not MOONCAKE.is_file(), reason="the traces are not here; MINIPAGED_SHARED says where")
@pytest.mark.parametrize(("pool_blocks", "rate"), [(300_000, 0.366), (30_000, 0.326)])
def test_the_conversations_of_an_hour(pool_blocks: int, rate: float) -> None:
    """The rates that were counted by others: 288,500 blocks, of which a cache without end finds 0.366."""
    hits = prefix_hits(read_mooncake(MOONCAKE, tokens_per_hash=1), pool_blocks)
    assert hits.num_blocks == 288_500
    assert hits.rate == pytest.approx(rate, abs=0.0005)
    assert hits.engine_rate == pytest.approx(rate, abs=0.001), "the last blocks make hardly a difference here"


@pytest.mark.skipif(not MOONCAKE.is_file(), reason="the traces are not here; MINIPAGED_SHARED says where")
@pytest.mark.parametrize("pool_blocks", [1_000_000, 1_000, 300])
def test_the_first_conversations_to_the_block(pool_blocks: int) -> None:
    with MOONCAKE.open() as file:
        prompts = [json.loads(line)["hash_ids"] for line in islice(file, 800)]
    found = prefix_hits(islice(read_mooncake(MOONCAKE, tokens_per_hash=1), 800), pool_blocks)
    assert found == counted(prompts, pool_blocks) and found.num_found > 0
