"""Compiles every Triton kernel, in every shape that can be launched, for given GPUs that need not be there.

    python tests/kernels/compile_report.py sm_80 sm_90

One line for each: registers, stack and local memory (either is a spill), shared memory and its limit, matrix
instructions in the machine code. Run by `test_triton_compiles.py` in processes of their own, because Triton's
interpreter, which the other tests use, excludes its compiler. Knows the kernels' parameters; judges nothing.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ.pop("TRITON_INTERPRET", None)
sys.path.insert(0, str(Path(__file__).parents[2] / "kernels"))

import torch
import triton
from minipaged_kernels import triton_attention, triton_cache
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

NAMES = {torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
HEAD_DIMS = (32, 64, 80, 128, 192, 256)  # one whole and one masked of each padded size that the tests use
SHARED_LIMIT = {"sm_80": 163 * 1024, "sm_90": 227 * 1024}  # bytes that one program may have

Job = tuple[str, Any, dict[str, str], dict[str, Any], dict[str, int]]  # label, kernel, types, constants, options


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
                    yield label, triton_attention.attend, types | {"scale": "fp32"}, constants, options
            constants = {"HEAD_DIM": head_dim, "BLOCK_D": triton.next_power_of_2(head_dim)}
            if head_dim in (64, 256):
                types = dict.fromkeys(["part_acc", "part_top", "part_sum"], "*fp32") | {"out": f"*{name}"}
                options = {"num_warps": 4, "num_stages": 2}
                label = f"merge {name} head_dim {head_dim}"
                yield label, triton_attention.merge, types, constants | {"SPLITS": triton_attention.MAX_SPLITS}, options
            if head_dim == 80:
                types = dict.fromkeys(["key", "value", "kv"], f"*{name}") | {"slots": "*i64"}
                label = f"write {name} head_dim {head_dim}"
                yield (
                    label,
                    triton_cache.write,
                    types,
                    constants | {"BLOCK_SIZE": 16},
                    {"num_warps": 1, "num_stages": 2},
                )
        numbers = triton_cache.COPY_BYTES // dtype.itemsize
        types = dict.fromkeys(["source", "destination"], f"*{name}") | {"pairs": "*i64"}
        yield f"copy {name}", triton_cache.copy, types, {"NUMBERS": numbers}, {"num_warps": 4, "num_stages": 2}


def compile_one(job: Job, architecture: str) -> dict[str, Any]:
    """Machine code for one kernel, and what can be read from it."""
    label, kernel, types, constants, options = job
    plain = [n for n in kernel.arg_names if n not in constants]
    signature = {n: "constexpr" if n in constants else types.get(n, "i32") for n in kernel.arg_names}
    # What the launcher finds out at run time: pointers and most strides are multiples of 16.
    hidden = ("num_sequences", "group", "table_stride", "num_tokens", "num_rows", "num_kv_heads", "block_numbers")
    aligned = [n for n in plain if n not in hidden and types.get(n) != "fp32"]
    attributes = {(kernel.arg_names.index(n),): [["tt.divisibility", 16]] for n in aligned}
    constexprs = {(kernel.arg_names.index(n),): v for n, v in constants.items()}
    source = ASTSource(kernel, signature, constexprs, attributes)
    target = GPUTarget("cuda", int(architecture.removeprefix("sm_")), 32)
    compiled = triton.compile(source, target=target, options=options)

    tools = Path(triton.__file__).parent / "backends/nvidia/bin"
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(compiled.asm["cubin"])
        usage = subprocess.run(
            [tools / "cuobjdump", "-res-usage", cubin], capture_output=True, text=True, check=True
        ).stdout
        sass = subprocess.run([tools / "nvdisasm", "-c", cubin], capture_output=True, text=True, check=True).stdout
    used = {k: int(v) for k, v in re.findall(r"(REG|STACK|LOCAL):(\d+)", usage)}
    return {
        "kernel": label,
        "architecture": architecture,
        "registers": used["REG"],
        "stack_bytes": used["STACK"],
        "local_bytes": used["LOCAL"],
        "shared_bytes": compiled.metadata.shared,
        "shared_limit": SHARED_LIMIT[architecture],
        "matrix_instructions": len(re.findall(r"\*/ +(?:@\S+ +)?HG?MMA\.", sass)),
    }


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
        print(json.dumps(compile_one(job, architecture)), flush=True)
