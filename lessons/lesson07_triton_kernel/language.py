"""Triton as this lesson uses it: `jit`, `tl`, and `load_kv`, which counts what it loads. Import it in Triton's place.

Triton decides at its import whether `@jit` compiles or interprets, so that is settled here, before: where there is no
GPU, and nobody has said otherwise, it interprets. Where there is no Triton at all, files that use `jit` and `tl` can
still be imported, and `require` says what is missing.
"""

# Triton reads the functions below itself; they have no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

import ast
import inspect
import os
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any

import numpy as np
import torch

MISSING = None if find_spec("triton") else "lesson 7 needs Triton, which runs on Linux: pip install triton"


def settle() -> None:
    """Choose the interpreter where there is no GPU and the environment says nothing of it."""
    if torch.cuda.is_available() or "TRITON_INTERPRET" in os.environ:
        return
    os.environ["TRITON_INTERPRET"] = "1"
    # Somebody has imported Triton before (transformers does it): it is imported anew, all but its C part.
    for name in list(sys.modules):
        kernel = name in ("minipaged_kernels.triton_attention", "minipaged_kernels.triton_cache")
        if kernel or (name.split(".")[0] == "triton" and not name.startswith("triton._C")):
            del sys.modules[name]


def require() -> None:
    """Triton is here, or an error says how it comes here.

    Raises:
        ValueError: it is not.
    """
    if MISSING:
        raise ValueError(MISSING)


if MISSING is None:
    settle()
    import triton
    import triton.language as tl

    jit = triton.jit
else:  # pragma: no cover

    class _Names:
        """So that `tl.constexpr` can stand in a signature."""

        constexpr = object

    tl: Any = _Names  # type: ignore[no-redef]

    def jit(function: Callable[..., Any]) -> Callable[..., Any]:
        return function


INTERPRETED = os.environ.get("TRITON_INTERPRET", "0") == "1"


def device() -> str:
    """Where the kernels' tensors lie: "cpu" for the interpreter, else "cuda"."""
    return "cpu" if INTERPRETED or MISSING else "cuda"


@jit
def count_program(counter):
    """Adds this program to the second number of `counter`; with None nothing is counted."""
    if counter is not None:
        tl.atomic_add(counter + 1, 1)


@jit
def load_kv(pointers, mask, counter):
    """`tl.load(pointers, mask=mask, other=0)`, of K or of V. What is masked out is not read, and gives 0.

    How many numbers were read is added to the first number of `counter`; with None nothing is counted.
    """
    if counter is not None:
        read = tl.broadcast_to(mask.to(tl.int32), pointers.shape)
        tl.atomic_add(counter, tl.sum(tl.sum(read, 1), 0).to(tl.int64))
    return tl.load(pointers, mask=mask, other=0.0)


def refuse_stub(function: Any) -> None:
    """Says that a kernel function is not written yet. Triton could not: it does not compile `raise`.

    Raises:
        NotImplementedError: with the words of the one in its body.
    """
    if not hasattr(function, "fn"):
        raise TypeError(f"{function.__name__} is not a Triton function: put @jit above it")
    source = textwrap.dedent(inspect.getsource(function.fn))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            name, words = node.exc.func, node.exc.args
            if isinstance(name, ast.Name) and name.id == "NotImplementedError":
                raise NotImplementedError(ast.literal_eval(words[0]) if words else function.fn.__name__)


@contextmanager
def bare_errors() -> Iterator[None]:
    """An error inside a kernel as itself: the interpreter wraps it, once for each function it passes through.

    And as little warned of as on a GPU, where inf and NaN come and go in silence.
    """
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            yield
    except Exception as error:
        while type(error).__name__ == "InterpreterError" and isinstance(error.__cause__, Exception):
            error = error.__cause__
        raise error from None
