"""A function on every thread: once in each, on torch's team and on Numba's, and torch keeps its number of threads."""

import numpy as np
import pytest
import torch
from minipaged_kernels import cpu, team
from minipaged_kernels.simd import flat, take_ticket
from numba import carray, cfunc, from_dtype, types

JOB = np.dtype([("counter", np.int64)])


@cfunc(types.void(types.CPointer(from_dtype(JOB))))
def count(address):  # type: ignore[no-untyped-def]
    take_ticket(flat(carray(address, 1)[0].counter, np.int64))


@pytest.fixture(params=["torch", "numba"])
def a_team(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "numba":
        monkeypatch.setattr(team, "_torch_team", lambda: None)
    elif team._torch_team() is None:
        pytest.skip("torch's OpenMP runtime has no GOMP_parallel here")


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.usefixtures("a_team")
def test_the_function_is_called_once_for_each_thread(threads: int) -> None:
    before = torch.get_num_threads()
    counter = np.zeros(1, np.int64)
    job = np.zeros(1, JOB)
    job["counter"] = counter.ctypes.data
    for turn in range(1, 4):
        team.run(threads, count.address, job.ctypes.data)
        assert counter[0] == threads * turn
    assert torch.get_num_threads() == before


@pytest.mark.usefixtures("a_team")
def test_several_threads_give_the_bits_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    kv = torch.randn(40, 2, 3, 4, 16)
    tables = torch.randperm(40, dtype=torch.int32).view(4, 10)
    starts = torch.tensor([0, 1, 2, 9, 10], dtype=torch.int32)
    contexts = torch.tensor([40, 33, 21, 5], dtype=torch.int32)
    query = torch.randn(10, 6, 16)
    pairs = torch.tensor([[1, 2], [2, 3], [3, 1], [7, 7]])
    found = []
    for threads in (1, 3):
        monkeypatch.setattr(team, "num_threads", lambda threads=threads: threads)
        blocks = kv.clone()
        cpu.copy_blocks(blocks, blocks, pairs)
        cpu.write_kv(query[:, :3].repeat(4, 1, 1), query[:, 3:].repeat(4, 1, 1), blocks, torch.arange(40) * 3)
        found.append((blocks, cpu.paged_attention(query, blocks, tables, starts, contexts, 0.25)))
    assert torch.equal(found[0][0], found[1][0])
    assert torch.equal(found[0][1], found[1][1])
