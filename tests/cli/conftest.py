"""A model folder for the commands: random weights, so that no test depends on how tiny-gpt was trained."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from minipaged.model.loader import ASSETS
from tests.tiny_folder import make_tiny_folder

needs_shipped_model = pytest.mark.skipif(
    not (ASSETS / "tiny-gpt" / "model.safetensors").is_file(), reason="the shipped model tiny-gpt is not here yet"
)


@pytest.fixture(scope="session")
def random_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder; its context holds the demo's prompts though nearly every byte is a token."""
    return make_tiny_folder(tmp_path_factory.mktemp("models") / "random", max_positions=4096)


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels() -> None:
    """The first LLM on a machine says that it compiles; that line is not what these tests look at.

    Starting Numba's threads sets torch's number of threads; both go back to one, as tests/conftest.py wants it.
    """
    pytest.importorskip("minipaged_kernels.cpu").warm_up(torch.float32)
    pytest.importorskip("numba").set_num_threads(1)
    torch.set_num_threads(1)
