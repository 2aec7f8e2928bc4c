"""What a Triton kernel becomes on a GPU that need not be there: registers, memory, and which instructions.

    TRITON_INTERPRET=0 python -m lessons.lesson07_triton_kernel.compiled sm_80 sm_90

prints the lesson's kernels, one line of JSON each; with kernels' names behind, only those. Triton brings its own
assembler and disassembler. It has to be a process of its own, with `TRITON_INTERPRET=0`: the interpreter excludes the
compiler. Counts instructions as they stand in the machine code; how often each is executed, nobody can read there.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

HEAD_DIM, BLOCK_SIZE, TILE, SPLITS = 64, 16, 64, 8  # of the lesson's kernels as they are compiled here
_OPCODE = re.compile(r"\*/ +(?:@!?U?P\w+ +)?([A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)")


@dataclass(frozen=True, slots=True)
class Job:
    """One kernel to compile.

    Args:
        label: what it is called in the report.
        kernel: a `@triton.jit` function.
        types: a parameter's type, such as "*fp16" or "fp32"; those that are not named are "i32".
        constants: the compiled-in values.
        options: num_warps and num_stages.
        unaligned: numbers that are no multiples of 16, as the launcher would find out.
    """

    label: str
    kernel: Any
    types: Mapping[str, str]
    constants: Mapping[str, Any]
    options: Mapping[str, int]
    unaligned: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class MachineCode:
    """What can be read from a compiled kernel.

    Args:
        kernel, architecture: which, and for what: "sm_80" is an A100, "sm_90" an H100.
        registers: of each thread, of which there are `32 * warps` in a program.
        stack_bytes, local_bytes: memory in the place of registers that were not enough; either is a spill.
        shared_bytes: that a program shares among its threads.
        opcodes: how many instructions of each kind stand in the code: "LDG.E.128" → 4.
    """

    kernel: str
    architecture: str
    registers: int
    stack_bytes: int
    local_bytes: int
    shared_bytes: int
    opcodes: Mapping[str, int]

    def count(self, *names: str) -> int:
        """Instructions whose name begins with one of `names`, whole words: "LDG" counts LDG.E.128, and no LDGSTS."""
        return sum(n for code, n in self.opcodes.items() if any((code + ".").startswith(name + ".") for name in names))

    @property
    def matrix_instructions(self) -> int:
        """Products of small matrices, each a warp's or four warps' work (HMMA, HGMMA)."""
        return self.count("HMMA", "HGMMA")

    @property
    def loads_by_bytes(self) -> dict[int, int]:
        """Loads from the GPU's memory by how many bytes each thread gets, the asynchronous ones (LDGSTS) included."""
        found: Counter[int] = Counter()
        for code, n in self.opcodes.items():
            words = code.split(".")
            if words[0] in ("LDG", "LDGSTS"):
                bits = [int(word.lstrip("US")) for word in words[1:] if re.fullmatch(r"[US]?(8|16|64|128)", word)]
                found[bits[0] // 8 if bits else 4] += n
        return dict(sorted(found.items()))


def compile_one(job: Job, architecture: str) -> MachineCode:
    """Machine code for one kernel and architecture. Written for the interface of Triton 3.6 and later."""
    import triton
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    names = job.kernel.arg_names
    signature = {name: "constexpr" if name in job.constants else job.types.get(name, "i32") for name in names}
    # What the launcher finds out at run time: pointers and most strides are multiples of 16.
    aligned = [n for n in names if signature[n] not in ("constexpr", "fp32") and n not in job.unaligned]
    source = ASTSource(
        job.kernel,
        signature,
        {(names.index(name),): value for name, value in job.constants.items()},
        {(names.index(name),): [["tt.divisibility", 16]] for name in aligned},
    )
    target = GPUTarget("cuda", int(architecture.removeprefix("sm_")), 32)
    compiled = triton.compile(source, target=target, options=dict(job.options))

    tools = Path(triton.__file__).parent / "backends/nvidia/bin"
    with tempfile.TemporaryDirectory() as folder:
        cubin = Path(folder) / "kernel.cubin"
        cubin.write_bytes(compiled.asm["cubin"])
        usage = _output(tools / "cuobjdump", "-res-usage", cubin)
        code = _output(tools / "nvdisasm", "-c", cubin)
    used = {k: int(v) for k, v in re.findall(r"(REG|STACK|LOCAL):(\d+)", usage)}
    return MachineCode(
        kernel=job.label,
        architecture=architecture,
        registers=used["REG"],
        stack_bytes=used["STACK"],
        local_bytes=used["LOCAL"],
        shared_bytes=compiled.metadata.shared,
        opcodes=dict(sorted(Counter(_OPCODE.findall(code)).items())),
    )


def _output(*command: str | Path) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def jobs() -> Iterator[Job]:
    """The ladder's kernels, for float16."""
    from lessons.lesson07_triton_kernel import decode_kernel, naive_kernel, solution, tiled_kernel
    from lessons.lesson07_triton_kernel.request import LEAST

    types = dict.fromkeys(["query", "kv", "out"], "*fp16") | dict.fromkeys(["tables", "contexts"], "*i32")
    types |= dict.fromkeys(["part_top", "part_total", "part_acc"], "*fp32") | {"scale": "fp32"}
    sizes = {"HEAD_DIM": HEAD_DIM, "BLOCK_SIZE": BLOCK_SIZE, "counter": None}
    options = {"num_warps": 4, "num_stages": 3}
    unaligned = ("group", "table_stride")
    yield Job("naive", naive_kernel.naive, types, sizes, options, unaligned)
    yield Job("tiled", tiled_kernel.tiled, types, sizes | {"TILE": TILE}, options, unaligned)
    sizes |= {"TILE": TILE, "ROWS": LEAST, "TILE_LOOP": solution.tile_loop}
    no_parts = dict.fromkeys(["part_top", "part_total", "part_acc"])
    yield Job("grouped", decode_kernel.decode, types, sizes | no_parts | {"IN_PARTS": False}, options, unaligned)
    yield Job("split", decode_kernel.decode, types, sizes | {"out": None, "IN_PARTS": True}, options, unaligned)
    merging = {"HEAD_DIM": HEAD_DIM, "SPLITS": SPLITS, "MERGE_SPLITS": solution.merge_splits}
    yield Job("its merge", decode_kernel.reduce, types, merging, options)


def possible() -> bool:
    """Whether `compile_one` can work here: Triton 3.6 or later, and its assembler and disassembler."""
    if find_spec("triton") is None:
        return False
    return tuple(int(part) for part in version("triton").split(".")[:2]) >= (3, 6)


def start(*arguments: str) -> subprocess.Popen[str]:
    """Compile the lesson's kernels in a process of its own, which goes on while others work; for `finish`."""
    found_in = os.pathsep.join(path or os.curdir for path in sys.path)
    environment = os.environ | {"TRITON_INTERPRET": "0", "PYTHONPATH": found_in}
    command = [sys.executable, "-m", "lessons.lesson07_triton_kernel.compiled", *arguments]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> list[MachineCode]:
    """What a process from `start` has found.

    Raises:
        ValueError: it failed; its last line.
    """
    output, errors = process.communicate()
    if process.returncode:
        raise ValueError(f"lesson 7: the kernels did not compile: {(errors.strip().splitlines() or ['?'])[-1]}")
    return [MachineCode(**json.loads(line)) for line in output.splitlines()]


def main(arguments: list[str]) -> int:
    """Print the kernels that are named, or all, for the architectures that are named, one line of JSON each."""
    architectures = [argument for argument in arguments if argument.startswith("sm_")]
    names = [argument for argument in arguments if argument not in architectures]
    for job in jobs():
        for architecture in architectures if job.label in (names or [job.label]) else ():
            print(json.dumps(asdict(compile_one(job, architecture))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
