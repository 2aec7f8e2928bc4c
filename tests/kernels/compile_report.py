"""Compiles every Triton kernel, in every shape that can be launched, for given GPUs that need not be there.

    TRITON_INTERPRET=0 python tests/kernels/compile_report.py sm_80 sm_90

One line of JSON for each. Run by `test_triton_compiles.py` in processes of their own, because Triton's interpreter,
which the other tests use, excludes its compiler. Knows the kernels' parameters; how one is compiled and what can be
read from its machine code, lesson 7 knows (`lessons/lesson07_triton_kernel/compiled.py`). Judges nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "0"
sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[2] / "kernels"))

import torch
import triton
from minipaged_kernels import triton_attention, triton_cache

from lessons.lesson07_triton_kernel.compiled import Job, compile_one

NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
HEAD_DIMS = (32, 64, 80, 128, 192, 256)  # one whole and one masked of each padded size that the tests use
# Numbers that are multiples of 16 by chance only.
UNALIGNED = ("num_sequences", "group", "table_stride", "num_tokens", "num_rows", "num_kv_heads", "block_numbers")


def jobs() -> Iterator[Job]:
    """Every kernel with every set of compiled-in values that `paged_attention`, `write_kv` and `copy_blocks` launch."""
    for dtype, name in NAMES.items():
        for head_dim in HEAD_DIMS if dtype != torch.float16 else (64, 128):  # as bfloat16, but for one letter
            for rows in (1, 1000) if dtype != torch.float32 else (1,):
                for splits in (1, 4) if head_dim in (32, 64, 128, 256) and dtype != torch.float16 else (1,):
                    shape = triton_attention.choose(dtype, head_dim, rows, splits)
                    types = dict.fromkeys(["query", "kv", "out"], f"*{name}")
                    types |= dict.fromkeys(["tables", "starts", "contexts"], "*i32")
                    types |= dict.fromkeys(["part_acc", "part_top", "part_sum"], "*fp32")
                    constants = {"HEAD_DIM": head_dim, "BLOCK_D": shape.block_d, "BLOCK_M": shape.block_m}
                    constants |= {"BLOCK_N": shape.block_n, "BLOCK_SIZE": 16, "SPLITS": splits, "WIDEN": False}
                    options = {"num_warps": shape.num_warps, "num_stages": shape.num_stages}
                    label = f"attend {name} head_dim {head_dim} rows {shape.block_m} splits {splits}"
                    types |= {"scale": "fp32"}
                    yield Job(label, triton_attention.attend, types, constants, options, UNALIGNED)
            constants = {"HEAD_DIM": head_dim, "BLOCK_D": triton.next_power_of_2(head_dim)}
            if head_dim in (64, 256):
                types = dict.fromkeys(["part_acc", "part_top", "part_sum"], "*fp32") | {"out": f"*{name}"}
                constants |= {"SPLITS": triton_attention.MAX_SPLITS}
                options = {"num_warps": 4, "num_stages": 2}
                yield Job(
                    f"merge {name} head_dim {head_dim}", triton_attention.merge, types, constants, options, UNALIGNED
                )
            if head_dim == 80:
                types = dict.fromkeys(["key", "value", "kv"], f"*{name}") | {"slots": "*i64"}
                options = {"num_warps": 1, "num_stages": 2}
                constants |= {"BLOCK_SIZE": 16}
                yield Job(f"write {name} head_dim {head_dim}", triton_cache.write, types, constants, options, UNALIGNED)
        numbers = triton_cache.COPY_BYTES // dtype.itemsize
        types = dict.fromkeys(["source", "destination"], f"*{name}") | {"pairs": "*i64"}
        options = {"num_warps": 4, "num_stages": 2}
        yield Job(f"copy {name}", triton_cache.copy, types, {"NUMBERS": numbers}, options, UNALIGNED)


if __name__ == "__main__":
    # `--part i/n`: every n-th job from the i-th on, so that several processes share the list.
    part, parts = 0, 1
    arguments = sys.argv[1:]
    if "--part" in arguments:
        at = arguments.index("--part")
        part, parts = (int(n) for n in arguments[at + 1].split("/"))
        del arguments[at : at + 2]
    work = [(job, architecture) for job in jobs() for architecture in arguments]
    for job, architecture in work[part::parts]:
        print(json.dumps(asdict(compile_one(job, architecture))), flush=True)
