"""`minipaged doctor`: every check has an outcome, and what fails is repaired by a command that is printed."""

from __future__ import annotations

import json
import sys
import types
from importlib import metadata
from pathlib import Path

import pytest
import torch

from minipaged.cli import doctor, kernel_probe, main
from minipaged.cli.kernel_probe import Backend, probe_kernels
from tests.cli.conftest import needs_shipped_model


@pytest.fixture
def only_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others take seconds to compile, and have tests of their own."""
    monkeypatch.setattr(kernel_probe, "BACKENDS", kernel_probe.BACKENDS[:1])


def test_a_healthy_house(random_model: Path, only_the_reference: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", str(random_model)]) == 0
    shown = capsys.readouterr().out
    for words in ("torch ", "cpu ", "takes ", "token for token", "0 slots held", "comes back as", "\nhealthy\n"):
        assert words in shown
    assert "✗" not in shown and "\033" not in shown


def test_json(random_model: Path, only_the_reference: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", str(random_model), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["healthy"] is True
    sections = {check["section"] for check in report["checks"]}
    assert sections == {"packages", "devices", "kernels", "model", "self-test"}
    versions = {check["name"]: check["note"] for check in report["checks"] if check["section"] == "packages"}
    assert versions["torch"] == metadata.version("torch")


def test_the_self_test_preempts(random_model: Path, only_the_reference: None) -> None:
    checks = {check.name: check for check in doctor._checks(str(random_model))}
    assert int(checks["answers"].note.split("; ")[1].split()[0]) > 0


def test_wrong_kernels_fail_the_self_test(
    random_model: Path, only_the_reference: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from minipaged.runner import TorchRunner

    monkeypatch.setattr(
        TorchRunner, "_attend", lambda self, inputs: lambda layer, query, key, value: torch.zeros_like(query)
    )
    assert main(["doctor", "--model", str(random_model)]) == 1
    shown = capsys.readouterr().out
    assert "✗ answers" in shown and "1 check failed" in shown


def test_a_model_that_is_not_there(only_the_reference: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", "/no/such/folder"]) == 1
    assert "neither a folder nor shipped" in capsys.readouterr().out


def test_each_package_that_is_missing_has_its_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def version(name: str) -> str:
        if name in ("torch", "numba", "triton"):
            raise metadata.PackageNotFoundError(name)
        return "1.0"

    monkeypatch.setattr(doctor.metadata, "version", version)
    monkeypatch.setattr(doctor, "_has_nvidia_driver", lambda: False)
    assert main(["doctor"]) == 1
    shown = capsys.readouterr().out
    assert "pip install torch --index-url https://download.pytorch.org/whl/cpu" in shown
    assert "pip install numba" in shown
    assert "✗ triton" not in shown  # nothing here would use it
    assert "it needs torch, numba" in shown


def backend(monkeypatch: pytest.MonkeyPatch, name: str, **kernels: object) -> None:
    module = types.ModuleType(f"minipaged_kernels.{name}")
    vars(module).update(kernels)
    module.__spec__ = types.SimpleNamespace(name=module.__name__)  # type: ignore[assignment]
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(kernel_probe, "BACKENDS", (Backend(name, (name,), "cpu", "a stand-in"),))


def test_a_backend_that_computes_something_else_does_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from minipaged_kernels import reference

    backend(
        monkeypatch, "sloppy", write_kv=reference.write_kv, paged_attention=lambda query, *rest: torch.zeros_like(query)
    )
    (probe,) = probe_kernels()
    assert not probe.runs and "away from the reference" in probe.note


def test_a_backend_whose_package_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def write_kv(*args: object) -> None:
        raise ModuleNotFoundError("No module named 'warp'", name="warp")

    backend(monkeypatch, "absent", write_kv=write_kv)
    (probe,) = probe_kernels()
    assert (probe.runs, probe.missing) == (False, "warp")


def test_a_backend_that_this_version_does_not_have_is_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_probe, "BACKENDS", (Backend("later", ("no_such_module",), "cpu", "later"),))
    assert probe_kernels() == []


@needs_shipped_model
def test_the_shipped_model_is_healthy(only_the_reference: None) -> None:
    assert main(["doctor"]) == 0
