"""`minipaged doctor`: every check has an outcome, and what fails is repaired by a command that is printed."""

from __future__ import annotations

import json
import types
from importlib import metadata
from pathlib import Path

import pytest
import torch
from minipaged_kernels import backends, reference

from minipaged.cli import doctor, main
from minipaged.cli.kernel_probe import Probe, probe_kernels
from tests.cli.conftest import needs_shipped_model


def test_a_healthy_house(random_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", str(random_model)]) == 0
    shown = capsys.readouterr().out
    for words in ("torch ", "cpu ", "takes ", "token for token", "0 slots held", "comes back as", "\nhealthy\n"):
        assert words in shown
    assert "✗" not in shown and "\033" not in shown


def test_json(random_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--model", str(random_model), "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["healthy"] is True
    sections = {check["section"] for check in report["checks"]}
    assert sections == {"packages", "devices", "kernels", "model", "self-test"}
    versions = {check["name"]: check["note"] for check in report["checks"] if check["section"] == "packages"}
    assert versions["torch"] == metadata.version("torch")


def test_the_self_test_preempts(random_model: Path) -> None:
    checks = {check.name: check for check in doctor._checks(str(random_model))}
    assert int(checks["answers"].note.split("; ")[1].split()[0]) > 0


def test_wrong_kernels_fail_the_self_test(
    random_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from minipaged.runner import TorchRunner

    monkeypatch.setattr(
        TorchRunner, "_attend", lambda self, inputs: lambda layer, query, key, value: torch.zeros_like(query)
    )
    assert main(["doctor", "--model", str(random_model)]) == 1
    shown = capsys.readouterr().out
    assert "✗ answers" in shown and "1 check failed" in shown


def test_a_model_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
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


def test_a_backend_that_computes_something_else_is_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reference, "paged_attention", lambda query, *rest: torch.zeros_like(query))
    probes = {probe.name: probe for probe in probe_kernels()}
    # It is the others that differ from the reference, as far as this goes.
    assert probes["reference"].right and probes["cpu"].right is False
    assert "away from the reference" in probes["cpu"].note


def test_a_backend_that_raises_is_wrong_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("no such instruction")

    monkeypatch.setattr(backends, "choose", lambda name, device: types.SimpleNamespace(write_kv=fail))
    assert probe_kernels()[0] == Probe("reference", False, "fails: RuntimeError: no such instruction")


def test_a_backend_for_another_machine_is_no_fault(
    random_model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        backends, "unavailable", lambda name, device: None if name == "reference" else "buy another machine"
    )
    assert main(["doctor", "--model", str(random_model)]) == 0
    shown = capsys.readouterr().out
    assert "– triton           buy another machine" in shown and "takes reference: " in shown


@needs_shipped_model
def test_the_shipped_model_is_healthy() -> None:
    assert main(["doctor"]) == 0
