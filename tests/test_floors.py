"""Imports go down only, the books know no tensors, and the lowest floors load in no time."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# The first prefix that fits says a module's floor; the longer ones stand first.
FLOORS = {
    "minipaged.cli": 6,
    "minipaged.viz": 6,
    "minipaged.__main__": 7,
    "minipaged.llm": 5,
    "minipaged.serving": 5,
    "minipaged.progress": 5,
    "minipaged.answer_writer": 5,
    "minipaged.engine": 4,
    "minipaged.parts": 4,
    "minipaged.recorder": 4,
    "minipaged.interrupts": 1,
    "minipaged.scheduler": 3,
    "minipaged.prefill_first": 3,
    "minipaged.static_batches": 3,
    "minipaged.runner": 3,
    "minipaged.scripted_runner": 3,
    "minipaged.timed_runner": 3,
    "minipaged.simulation": 3,
    "minipaged.memory": 2,
    "minipaged.model": 2,
    "minipaged.plan": 1,
    "minipaged.request": 1,
    "minipaged.sampling_params": 1,
    "minipaged.config": 1,
    "minipaged.order": 1,
    "minipaged.pool_size": 1,
    "minipaged.traffic": 1,
    "minipaged.cost_model": 1,
    "minipaged.virtual_clock": 1,
    "minipaged.trace": 1,
    "minipaged.trace_state": 1,
    "minipaged.trace_file": 1,
    "minipaged_kernels": 0,
}
# Rooms on the same floor that do not know each other.
STRANGERS = [
    {"minipaged.memory", "minipaged.model"},
    {"minipaged.scheduler", "minipaged.runner"},
    {"minipaged.scheduler", "minipaged.simulation"},
    {"minipaged.runner", "minipaged.simulation"},
    {"minipaged.scheduler", "minipaged.scripted_runner"},
    {"minipaged.scheduler", "minipaged.timed_runner"},
    {"minipaged.runner", "minipaged.timed_runner"},
    {"minipaged.scheduler", "minipaged.memory"},
    {"minipaged.scheduler", "minipaged.model"},
    {"minipaged.runner", "minipaged.memory"},
    {"minipaged.runner", "minipaged.request"},
    {"minipaged.model", "minipaged.request"},
]
WITHOUT_TENSORS = (
    "minipaged.memory", "minipaged.scheduler", "minipaged.prefill_first", "minipaged.static_batches",
    "minipaged.simulation", "minipaged.scripted_runner", "minipaged.timed_runner", "minipaged.engine",
    "minipaged.serving",
)  # fmt: skip


def modules() -> dict[str, Path]:
    found = {}
    for top in (ROOT / "minipaged", ROOT / "kernels" / "minipaged_kernels"):
        for path in top.rglob("*.py"):
            parts = path.relative_to(top.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def room(module: str) -> str | None:
    return next((name for name in FLOORS if module == name or module.startswith(name + ".")), None)


def imports(path: Path) -> set[str]:
    """What a file imports, wherever it does so; not what is only there for the type checker."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    hidden: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            hidden.update(child for statement in node.body for child in ast.walk(statement))
    found: set[str] = set()
    for node in ast.walk(tree):
        if node in hidden:
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are written out in full"
            assert node.module is not None
            found.add(node.module)
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


@pytest.mark.parametrize("module", sorted(MODULES))
def test_imports_go_down(module: str) -> None:
    here = room(module)
    if module == "minipaged":
        return  # lazy: see below
    assert here is not None, f"{module} is on no floor; give it one in this file"
    for imported in imports(MODULES[module]):
        assert imported != "lessons" and not imported.startswith("lessons."), f"{module} imports {imported}"
        there = room(imported)
        if there is None or there == here:
            continue
        assert FLOORS[there] <= FLOORS[here], f"{module} (floor {FLOORS[here]}) imports {imported} ({FLOORS[there]})"
        assert {here, there} not in STRANGERS, f"{module} imports {imported}"


@pytest.mark.parametrize("module", sorted(MODULES))
def test_the_books_know_no_tensors(module: str) -> None:
    here = room(module)
    if here in WITHOUT_TENSORS or (here is not None and FLOORS[here] == 1):
        tops = {imported.split(".")[0] for imported in imports(MODULES[module])}
        assert not tops & {"torch", "numpy", "minipaged_kernels"}, f"{module} imports {tops}"


@pytest.mark.parametrize(
    "module",
    ["minipaged", "minipaged.scheduler", "minipaged.engine", "minipaged.simulation", "minipaged.serving.service"],
)
def test_the_books_load_neither_torch_nor_numpy(module: str) -> None:
    code = f"import sys, {module}; print(sorted({{'torch', 'numpy', 'rich', 'tokenizers'}} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_every_package_is_shipped() -> None:
    """setuptools finds a package by its `__init__.py`."""
    for path in MODULES.values():
        assert (path.parent / "__init__.py").exists(), f"{path.parent} is not a package"
