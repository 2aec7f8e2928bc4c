"""What all tests share."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings

# Before torch is imported anywhere: the tests' matrices are too small to gain from threads, and threads that wait for
# each other on a busy machine make them a hundred times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", os.environ["OMP_NUM_THREADS"])

# Whoever starts the tests in a shell's background has SIGINT ignored, and so has all that they start: Ctrl-C is tested.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Timing is no criterion on a shared machine. `--hypothesis-profile=million` runs a million actions per state machine.
settings.register_profile("ci", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("million", settings.get_profile("ci"), max_examples=20_000, stateful_step_count=50)
settings.register_profile("thorough", settings.get_profile("ci"), max_examples=4_000)
settings.register_profile("quick", settings.get_profile("ci"), phases=[Phase.generate])  # fails fast, does not shrink
settings.load_profile("ci")


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny random GPT-2 with a tokenizer, as a Hugging Face folder."""
    from tests.tiny_folder import make_tiny_folder  # torch is loaded only for those who ask

    return make_tiny_folder(tmp_path_factory.mktemp("models") / "tiny")


@pytest.fixture(scope="session")
def trace_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example run, recorded to a file."""
    from minipaged.trace_file import TraceWriter
    from minipaged.viz.example import example_trace

    path = tmp_path_factory.mktemp("traces") / "example.trace"
    with TraceWriter(path) as writer:
        example_trace(writer)
    return path


@pytest.fixture
def llm(tiny_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """An `LLM` on 24 blocks of 4 slots and 8 on the host, its books checked at every step; nothing may be left."""
    from minipaged import LLM

    monkeypatch.setenv("MINIPAGED_DEBUG", "1")
    llm = LLM(tiny_folder, num_blocks=24, block_size=4, host_blocks=8)
    yield llm
    assert not llm.engine.has_work
    assert not llm._writers
    assert llm.engine.scheduler.memory.held_slots == 0
