"""Which backends run here, which one `auto` takes, and why. Imports a backend only when it is asked for.

Knows no kernel's inside: a backend is three functions with one signature, see `reference.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import torch

NAMES = ("triton", "cpu", "reference")
KERNELS = ("paged_attention", "write_kv", "copy_blocks")


@dataclass(frozen=True, slots=True)
class Backend:
    """The three kernels of one backend.

    Args:
        name: one of `NAMES`, or that of a backend of your own.
        reason: why it was taken, in a few words.
        paged_attention: see `minipaged_kernels.reference.paged_attention`.
        write_kv: see `minipaged_kernels.reference.write_kv`.
        copy_blocks: see `minipaged_kernels.reference.copy_blocks`.
    """

    name: str
    reason: str
    paged_attention: Callable[..., torch.Tensor]
    write_kv: Callable[..., Any]
    copy_blocks: Callable[..., Any]


def unavailable(name: str, device_type: str) -> str | None:
    """None when a backend can run on a kind of device, else one line: why not, and the command that would change it.

    Args:
        name: one of `NAMES`.
        device_type: "cpu" or "cuda".
    """
    if name == "reference":
        return None
    if name == "cpu":
        if device_type != "cpu":
            return f"it reads the CPU's memory, not {device_type}'s; use --device cpu"
        return None if find_spec("numba") else "Numba is not installed; pip install numba"
    if not find_spec("triton"):
        return "Triton is not installed (it runs on Linux); pip install triton"
    reason: str | None = import_module("minipaged_kernels.triton_attention").available()
    if reason is None and device_type == "cuda" and not torch.cuda.is_available():
        return "no CUDA device here; Triton's interpreter runs it on --device cpu"
    if reason is None and device_type == "cpu" and torch.cuda.is_available():
        return "it runs on the GPU, and the model is on the CPU; use --device cuda"
    return reason


def choose(name: str, device_type: str) -> Backend:
    """Take a backend by name, or the best one with "auto": Triton on CUDA, Numba on a CPU, else the reference.

    Args:
        name: one of `NAMES`, or "auto".
        device_type: "cpu" or "cuda".

    Raises:
        ValueError: no such backend, or it cannot run here; the message has the command that would make it run.
    """
    if name == "auto":
        wanted = "triton" if device_type == "cuda" else "cpu"
        reason = unavailable(wanted, device_type)
        if reason is not None:
            return _load("reference", f"{wanted} is not available: {reason}")
        return _load(wanted, f"the fastest on {device_type}")
    if name not in NAMES:
        raise ValueError(f"attention is {name!r}; it must be auto, {', '.join(NAMES)}")
    reason = unavailable(name, device_type)
    if reason is not None:
        raise ValueError(f"attention {name!r} is not available: {reason}")
    return _load(name, "as asked")


def from_file(path: Path) -> Backend:
    """A backend of your own: a Python file with `paged_attention`, `write_kv` and `copy_blocks`, which is run.

    One that it lacks is the reference's. Its name is the file's.

    Raises:
        ValueError: it is no file, it has the name of one of ours, Python cannot import it, it has none of the three,
            or one that cannot be called.
    """
    if path.stem in NAMES:
        raise ValueError(f"backend {path}: {path.stem} is one of ours; give the file another name")
    spec = spec_from_file_location(f"kernels_from_{path.stem}", path)
    if not path.is_file() or spec is None or spec.loader is None:
        raise ValueError(f"backend {path}: it must be a Python file with one of {', '.join(KERNELS)}")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up there
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:  # a script that ends with sys.exit(main()) is no backend either
        said = " ".join(str(error).split())
        raise ValueError(f"backend {path}: Python cannot import it: {type(error).__name__}: {said}") from error
    reference = import_module("minipaged_kernels.reference")
    functions = [getattr(module, kernel, getattr(reference, kernel)) for kernel in KERNELS]
    for kernel, function in zip(KERNELS, functions, strict=True):
        if not callable(function):
            raise ValueError(f"backend {path}: {kernel} is a {type(function).__name__}; it must be a function")
    if all(function is getattr(reference, kernel) for kernel, function in zip(KERNELS, functions, strict=True)):
        raise ValueError(f"backend {path}: it has no function of its own; it must have one of {', '.join(KERNELS)}")
    return Backend(path.stem, "your file", *functions)


def _load(name: str, reason: str) -> Backend:
    modules = ("triton_attention", "triton_cache") if name == "triton" else (name, name)
    of_attention, of_cache = (import_module(f"minipaged_kernels.{module}") for module in modules)
    return Backend(name, reason, of_attention.paged_attention, of_cache.write_kv, of_cache.copy_blocks)
