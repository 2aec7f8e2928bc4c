"""`minipaged doctor`: what is installed, what runs here, and whether it is right.

Every line is a check: fine, failed, or not there and not needed. It works where nothing else does, so it imports only
the standard library until it knows what there is.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import TYPE_CHECKING

from minipaged import __version__
from minipaged.cli.options import add_model_option, num_parameters, settle_threads

if TYPE_CHECKING:
    from minipaged.llm import LLM

_PACKAGES = ("torch", "numpy", "numba", "tokenizers", "safetensors", "sortedcontainers", "rich", "triton")
_CPU_TORCH = "pip install torch --index-url https://download.pytorch.org/whl/cpu"


@dataclass(frozen=True, slots=True)
class Check:
    """One line of the report.

    Args:
        section: the heading that it stands under.
        name: what was looked at.
        ok: False only for what must be repaired; None for what is not there and not needed.
        note: what was found.
        install: the command that repairs it, or that would bring what is not there.
    """

    section: str
    name: str
    ok: bool | None
    note: str
    install: str | None = None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the options of `minipaged doctor`."""
    parser.description = "Show versions, devices and kernels, and run a self-test. Exit status 1 when something fails."
    add_model_option(parser)
    parser.add_argument("--json", action="store_true", help="print the report as one JSON object")


def run(args: argparse.Namespace) -> int:
    """Prints the report as it is made; 0 when nothing has failed."""
    checks: list[Check] = []
    if not args.json:
        print(f"minipaged {__version__}, Python {platform.python_version()}, {platform.system()} {platform.machine()}")
    for check in _checks(args.model):
        if not args.json:
            _print(check, new_section=not checks or checks[-1].section != check.section)
        checks.append(check)
    num_failed = sum(check.ok is False for check in checks)
    if args.json:
        report = {
            "healthy": num_failed == 0,
            "minipaged": __version__,
            "python": platform.python_version(),
            "platform": f"{platform.system()} {platform.machine()}",
            "checks": [asdict(check) for check in checks],
        }
        print(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        print(
            "\nhealthy" if not num_failed else f"\n{num_failed} checks failed" if num_failed > 1 else "\n1 check failed"
        )
    return int(num_failed > 0)


def _print(check: Check, new_section: bool) -> None:
    if new_section:
        print(f"\n{check.section}")
    mark = {True: "✓", False: "✗", None: "–"}[check.ok]
    colours = {True: "32", False: "31", None: "2"}
    if sys.stdout.isatty() and "NO_COLOR" not in os.environ:
        mark = f"\033[{colours[check.ok]}m{mark}\033[0m"
    print(f"  {mark} {check.name:16} {check.note}", flush=True)
    if check.install is not None:
        print(f"    {'':16} {check.install}")


def _checks(model: str) -> Iterator[Check]:
    """All checks, each when it is done."""
    packages = list(_check_packages())
    yield from packages
    broken = [check.name for check in packages if check.ok is False]
    if not broken:
        try:
            import torch  # noqa: F401
        except Exception as error:  # installed, and yet it cannot be loaded: a library is missing, or of a wrong build
            yield Check("packages", "torch", False, f"cannot be imported: {error}", _CPU_TORCH)
            broken = ["torch"]
    if broken:
        yield Check("self-test", "not run", False, f"it needs {', '.join(broken)}")
        return
    yield from _check_devices()
    yield from _check_kernels()
    yield from _check_model(model)


def _check_packages() -> Iterator[Check]:
    for name in _PACKAGES:
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            if name != "triton":
                install = _CPU_TORCH if name == "torch" and not _has_nvidia_driver() else f"pip install {name}"
                yield Check("packages", name, False, "not installed", install)
            elif platform.system() != "Linux":
                yield Check("packages", name, None, f"there is none for {platform.system()}; only CUDA kernels need it")
            elif not _has_nvidia_driver():
                yield Check("packages", name, None, "not installed; only CUDA kernels need it", "pip install triton")
            else:
                yield Check("packages", name, False, "not installed; the CUDA kernels need it", "pip install triton")
        else:
            yield Check("packages", name, True, version)


def _has_nvidia_driver() -> bool:
    return os.path.exists("/proc/driver/nvidia/version")


def _check_devices() -> Iterator[Check]:
    import torch

    from minipaged.pool_size import free_host_bytes

    # Cores that this process may use, which in a container are fewer than there are.
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    note = (
        f"{_cpu_name()}, {_count(cores, 'core')}, {_count(torch.get_num_threads(), 'torch thread')}, "
        f"{free_host_bytes() / 2**30:.1f} GiB of memory free"
    )
    yield Check("devices", "cpu", True, note)
    for index in range(torch.cuda.device_count() if torch.cuda.is_available() else 0):
        device = torch.cuda.get_device_properties(index)
        free_bytes, total_bytes = torch.cuda.mem_get_info(index)
        memory = f"{free_bytes / 2**30:.1f} of {total_bytes / 2**30:.1f} GiB free"
        yield Check("devices", f"cuda:{index}", True, f"{device.name}, compute {device.major}.{device.minor}, {memory}")
    if not torch.cuda.is_available():
        if torch.version.cuda is None and _has_nvidia_driver():
            note = f"there is an NVIDIA driver, but torch {torch.__version__} is built without CUDA"
            yield Check("devices", "cuda", None, note, "pip install --force-reinstall torch")
        else:
            yield Check("devices", "cuda", None, "no device; everything runs on the CPU")


def _check_kernels() -> Iterator[Check]:
    from minipaged.cli.kernel_probe import probe_kernels

    for probe in probe_kernels():
        yield Check("kernels", probe.name, probe.right, probe.note)


def _check_model(model: str) -> Iterator[Check]:
    from minipaged.llm import LLM

    try:
        # Blocks of 4 and only 9 of them: the self-test's requests must give way to each other.
        llm = LLM(model, block_size=4, num_blocks=9, watermark=0.0)
    except Exception as error:
        # The model is part of the package, so a package without it was cut short on its way.
        install = "pip install --force-reinstall minipaged" if model == "tiny-gpt" else None
        yield Check("model", model, False, f"cannot be loaded: {error}", install)
        return
    settle_threads(llm)
    yield Check("kernels", "auto", True, f"takes {llm.backend.name}: {llm.backend.reason}")
    tokenizer = f"{llm.tokenizer.vocab_size} tokens" if llm.tokenizer else "no tokenizer: token ids only"
    context = f"context {llm.model_config.max_positions}"
    yield Check(
        "model", model, True, f"{num_parameters(llm.model_config) / 1e6:.1f} M parameters, {context}, {tokenizer}"
    )
    try:
        yield from _self_test(llm)
    except Exception as error:
        yield Check("self-test", "run", False, f"{type(error).__name__}: {error}")


def _self_test(llm: LLM) -> Iterator[Check]:
    """Four prompts on a pool for one and a half of them, against the plain loop."""
    from minipaged.cli.agreement import Agreement
    from minipaged.cli.step_meter import StepMeter
    from minipaged.model.plain_loop import generate_plain
    from minipaged.sampling_params import SamplingParams

    params = SamplingParams(max_tokens=12, temperature=0, ignore_eos=True)
    vocab_size = llm.model_config.vocab_size
    prompts = [[(31 * number + 7 * i) % vocab_size for i in range(n)] for number, n in enumerate((9, 17, 5, 21))]
    meter = StepMeter()
    llm.engine.listeners.append(meter)
    outputs = llm.generate(prompts, params, progress=False)
    llm.engine.listeners.remove(meter)
    plain = [generate_plain(llm.model, prompt, params) for prompt in prompts]
    agreement = Agreement.of(plain, [output.outputs[0].token_ids for output in outputs])
    note = f"{agreement.identical} of {len(prompts)} answers are the plain loop's, token for token"
    if agreement.near_ties:
        note += f"; {agreement.near_ties} parted at a near-tie"
    note += f"; {_count(meter.num_preemptions, 'preemption')} on the way"
    yield Check("self-test", "answers", agreement.different == 0, note)

    memory = llm.engine.scheduler.memory
    check_books = getattr(memory, "check", None)
    try:
        if check_books is not None:
            check_books()
        held = memory.held_slots
        yield Check("self-test", "memory books", held == 0, f"in order; {held} slots held when all was done")
    except AssertionError as error:
        yield Check("self-test", "memory books", False, str(error))

    if llm.tokenizer is not None:
        text = "black holes, 黑洞"
        back = llm.tokenizer.decode(llm.tokenizer.encode(text))
        yield Check("self-test", "tokenizer", back == text, f"{text!r} comes back as {back!r}")


def _cpu_name() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            name = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        name = platform.processor()
    return name or platform.machine()


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
