"""A Hugging Face GPT-2 folder in, a `ModelConfig` and a `GPT` out.

Every tensor is accounted for: a missing, unknown or misshapen one is refused by name. Does not know of caches,
tokenizers or devices' sizes, and never unpickles anything (`pytorch_model.bin` is not read).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch.overrides import TorchFunctionMode

from minipaged.config import DTYPES, ModelConfig
from minipaged.model.gpt import GPT

ASSETS = Path(__file__).parent / "assets"

# Hugging Face's Conv1D keeps its weight as (in, out).
_CONV1D = re.compile(r"h\.\d+\.(attn\.c_attn|attn\.c_proj|mlp\.c_fc|mlp\.c_proj)\.weight")
# Causal masks that old checkpoints carry as if they were weights.
_MASK = re.compile(r"h\.\d+\.attn\.(bias|masked_bias)")


def resolve_model(name: str | Path) -> Path:
    """The folder of a model: one shipped with the package ("tiny-gpt"), or a path.

    A shipped name wins over a folder of that name; `./tiny-gpt` is the folder.

    Args:
        name: of a shipped model, or of a folder.

    Raises:
        ValueError: neither a shipped model nor a folder.
    """
    if not isinstance(name, (str, Path)):
        raise ValueError(f"model is {name!r}; it must be the name of a shipped model, or a folder")
    shipped = sorted(folder.name for folder in ASSETS.iterdir() if folder.is_dir()) if ASSETS.is_dir() else []
    if isinstance(name, str) and name in shipped:
        return ASSETS / name
    folder = Path(name)
    if not str(name) or not folder.is_dir():
        raise ValueError(
            f"model {str(name)!r} is neither a folder nor shipped; shipped are {', '.join(shipped) or 'none'}"
        )
    return folder


def load_model(
    folder: str | Path, dtype: str | torch.dtype = "float32", device: str | torch.device = "cpu"
) -> tuple[ModelConfig, GPT]:
    """Loads config.json and the safetensors of a folder in the Hugging Face GPT-2 format.

    Args:
        folder: holds `config.json` and `model.safetensors`, or `model.safetensors.index.json` and its shards. Tensor
            names may start with `transformer.` or not.
        dtype: what the weights become, whatever they are on disk: "float32", "bfloat16", "float16", or torch's own.
        device: where they go.

    Returns:
        The network's shape, and the network, ready to run.

    Raises:
        ValueError: a file is missing or cannot be read, the config is not one that `ModelConfig` knows, or a tensor is
            missing, unknown, doubled, misshapen or not of a floating dtype. One line, naming the path and the tensor.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise ValueError(f"{folder}: no such folder")
    target = _torch_dtype(dtype)
    try:
        config = ModelConfig.from_hugging_face(_read_json(folder / "config.json"))
    except ValueError as error:
        text = str(error)
        raise ValueError(text if str(folder) in text else f"{folder}: {text}") from None

    with torch.device("meta"), _NoInitialValues():  # shapes only: nothing is allocated
        model = GPT(config)
    shapes = {name: tuple(parameter.shape) for name, parameter in model.state_dict().items()}

    weights: dict[str, torch.Tensor] = {}
    for path, full_name, tensor in _tensors(_weight_files(folder)):
        name = full_name.removeprefix("transformer.")
        if _MASK.fullmatch(name):
            continue
        if name not in shapes:
            raise ValueError(f"{path}: tensor {full_name} is not part of a GPT-2 with {config.num_layers} layers")
        if name in weights:
            raise ValueError(f"{path}: tensor {full_name} is there twice")
        expected = shapes[name][::-1] if _CONV1D.fullmatch(name) else shapes[name]
        if tuple(tensor.shape) != expected:
            raise ValueError(
                f"{path}: tensor {full_name} has shape {tuple(tensor.shape)}; config.json asks for {expected}"
            )
        if not tensor.is_floating_point():
            raise ValueError(f"{path}: tensor {full_name} is {tensor.dtype}; only floating dtypes are read")
        if _CONV1D.fullmatch(name):
            tensor = tensor.t()  # (in, out) -> (out, in)
        weights[name] = tensor.to(device=device, dtype=target).contiguous()

    if config.tie_word_embeddings and "wte.weight" in weights:
        # A second copy of the shared weight is harmless. One that differs means that config.json is not this file's.
        if not torch.equal(weights.get("lm_head.weight", weights["wte.weight"]), weights["wte.weight"]):
            raise ValueError(
                f"{folder}: tensor lm_head.weight differs from wte.weight, but tie_word_embeddings is true"
            )
        weights["lm_head.weight"] = weights["wte.weight"]
    for name in shapes:
        if name not in weights:
            raise ValueError(f"{folder}: tensor {name} is missing")
    model.load_state_dict(weights, assign=True)
    if config.tie_word_embeddings:
        model.lm_head.weight = model.wte.weight  # one parameter, not two over the same memory
    return config, model.requires_grad_(False).eval()


class _NoInitialValues(TorchFunctionMode):
    """Modules made under it get no random weights: drawing them on a meta tensor imports torch._dynamo: a second."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.__name__ in ("normal_", "uniform_", "kaiming_uniform_"):  # torch.nn.init's, or the tensor's own
            return args[0] if args else kwargs["tensor"]
        return func(*args, **(kwargs or {}))


def _torch_dtype(dtype: str | torch.dtype) -> torch.dtype:
    if isinstance(dtype, torch.dtype):
        return dtype
    if dtype not in DTYPES:
        raise ValueError(f"load_model: dtype is {dtype!r}; it must be one of {', '.join(DTYPES)}")
    found = getattr(torch, dtype)
    assert isinstance(found, torch.dtype)
    return found


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"{path}: no such file") from None
    except (OSError, ValueError) as error:  # ValueError: not UTF-8, or not JSON
        raise ValueError(f"{path}: cannot be read as JSON ({error})") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path}: holds a JSON {type(content).__name__}; expected an object")
    return content


def _weight_files(folder: Path) -> list[Path]:
    """model.safetensors, or the shards that the index names."""
    single, index = folder / "model.safetensors", folder / "model.safetensors.index.json"
    if single.exists() or not index.exists():
        return [single]
    weight_map = _read_json(index).get("weight_map")
    if not isinstance(weight_map, dict) or not all(isinstance(name, str) for name in weight_map.values()):
        raise ValueError(f"{index}: weight_map is missing or does not name files")
    names = sorted(set(weight_map.values()))
    for name in names:
        if Path(name).name != name:
            raise ValueError(f"{index}: shard {name!r} is not a plain file name")
    return [folder / name for name in names]


def _tensors(paths: list[Path]) -> Iterator[tuple[Path, str, torch.Tensor]]:
    """Every tensor of the files, as (file, name, tensor)."""
    for path in paths:
        if not path.is_file():
            raise ValueError(f"{path}: no such file; weights are read from model.safetensors or its shards")
        try:
            with safe_open(path, framework="pt") as file:
                for name in file.keys():  # noqa: SIM118 (not a dict)
                    yield path, name, file.get_tensor(name)
        except (SafetensorError, OSError) as error:
            raise ValueError(f"{path}: not a readable safetensors file ({error})") from None
