"""Every Triton kernel that can be launched compiles to machine code for sm_80 and sm_90, fits, and spills nothing.

No GPU is needed: Triton brings its own assembler. `pytest -s` prints the figures.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

from lessons.lesson07_triton_kernel.compiled import MachineCode

pytestmark = pytest.mark.skipif(find_spec("triton") is None, reason="Triton is not installed")
PROCESSES = 2
SHARED_LIMIT = {"sm_80": 163 * 1024, "sm_90": 227 * 1024}  # bytes that one program may have
OLD = tuple(int(part) for part in version("triton").split(".")[:2]) < (3, 6) if find_spec("triton") else False


@pytest.mark.skipif(OLD, reason="compiling without a GPU is written for the interface of Triton 3.6 and later")
def test_every_launch_compiles_for_both_architectures() -> None:
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    report = [sys.executable, str(Path(__file__).parent / "compile_report.py"), "sm_80", "sm_90", "--part"]
    running = [
        subprocess.Popen(
            [*report, f"{i}/{PROCESSES}"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for i in range(PROCESSES)
    ]
    found: list[MachineCode] = []
    for process in running:
        output, errors = process.communicate(timeout=600)
        assert process.returncode == 0, errors
        found += [MachineCode(**json.loads(line)) for line in output.splitlines()]

    assert {code.architecture for code in found} == set(SHARED_LIMIT)
    for code in found:
        print(
            f"{code.architecture} {code.kernel:<44} {code.registers:>4} registers, "
            f"{code.shared_bytes / 1024:>5.1f} KiB shared, {code.matrix_instructions:>4} matrix instructions"
        )
    for code in found:
        what = f"{code.kernel} for {code.architecture}"
        assert code.stack_bytes == code.local_bytes == 0, f"{what} spills"
        assert code.shared_bytes <= SHARED_LIMIT[code.architecture], f"{what} asks for too much shared memory"
        # float32 is told to be exact, which no matrix instruction is.
        claimed = code.kernel.startswith("attend") and "fp32" not in code.kernel
        assert (code.matrix_instructions > 0) == claimed, f"{what}: {code.matrix_instructions} matrix instructions"
