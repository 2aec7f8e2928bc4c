"""The options that several commands share, and how they become `EngineConfig`'s fields. Values are checked there; those
that become no such field are checked here.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from minipaged.config import ATTENTION, DTYPES, EngineConfig

if TYPE_CHECKING:
    from minipaged.config import ModelConfig
    from minipaged.llm import LLM

MOST_BLOCKS = 4_000_000  # in a pool that is books alone: some 50 bytes each
MOST_REQUESTS = 10**9
_UNITS = {"": 1, "k": 2**10, "m": 2**20, "g": 2**30}
_SMALL_MODEL_PARAMETERS = 20_000_000
_ENGINE_OPTIONS = (
    "num_blocks", "kv_cache_bytes", "host_blocks", "host_cache_bytes", "block_size", "share_prefixes",
    "max_batch_tokens", "max_sequences", "max_chunk_tokens", "watermark", "device", "dtype", "attention",
)  # fmt: skip


def add_model_option(parser: argparse.ArgumentParser) -> None:
    """--model."""
    parser.add_argument(
        "--model", metavar="DIR", default="tiny-gpt", help="a Hugging Face GPT-2 folder (default: tiny-gpt, shipped)"
    )


def add_engine_options(parser: argparse.ArgumentParser, own: Mapping[str, Any] | None = None) -> None:
    """One option for each field of `EngineConfig` but the seed.

    Args:
        parser: gets them.
        own: by field, the command's defaults where they are not `EngineConfig`'s: what `--help` says of them.
    """
    default = {field.name: field.default for field in fields(EngineConfig)} | dict(own or {})
    pool = ": by free memory" if default["num_blocks"] is None else f" {default['num_blocks']}"
    group = parser.add_argument_group("engine options")
    group.add_argument("--num-blocks", "--blocks", type=int, metavar="N", help=f"blocks in the KV pool (default{pool})")
    group.add_argument(
        "--kv-cache-bytes", type=parse_bytes, metavar="BYTES", help="size of the KV pool instead, such as 64MiB"
    )
    group.add_argument(
        "--host-blocks",
        type=int,
        metavar="N",
        help=f"blocks in the host pool, to swap to (default {default['host_blocks']})",
    )
    group.add_argument("--host-cache-bytes", type=parse_bytes, metavar="BYTES", help="size of the host pool instead")
    group.add_argument(
        "--no-share-prefixes", dest="share_prefixes", action="store_false", default=None, help="each request for itself"
    )
    group.add_argument(
        "--block-size", type=int, metavar="N", help=f"token slots in a block (default {default['block_size']})"
    )
    group.add_argument(
        "--max-batch-tokens",
        type=int,
        metavar="N",
        help=f"tokens in a step at most (default {default['max_batch_tokens']})",
    )
    group.add_argument(
        "--max-sequences",
        type=int,
        metavar="N",
        help=f"answers written at once at most (default {default['max_sequences']})",
    )
    group.add_argument(
        "--max-chunk-tokens", type=int, metavar="N", help="of one answer in a step at most (default: no limit)"
    )
    group.add_argument(
        "--watermark",
        type=float,
        metavar="SHARE",
        help=f"blocks kept free at admission (default {default['watermark']})",
    )
    group.add_argument("--device", metavar="NAME", help=f"cpu, cuda or auto (default {default['device']})")
    group.add_argument("--attention", choices=ATTENTION, help=f"the kernels' backend (default {default['attention']})")
    group.add_argument("--dtype", choices=DTYPES, help=f"of weights and cache (default {default['dtype']})")


def engine_options(args: argparse.Namespace) -> dict[str, Any]:
    """The fields that the user gave."""
    return {name: value for name in _ENGINE_OPTIONS if (value := getattr(args, name)) is not None}


def parse_bytes(text: str) -> int:
    """A number of bytes: 4096, 512k, 64MiB, 1.5G. Units are powers of 1024.

    Raises:
        argparse.ArgumentTypeError: anything else.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kmg]?)(?:i?b)?", text.strip().lower())
    if match is None:
        raise argparse.ArgumentTypeError(f"{text!r} is not a size; write 4096, 512KiB, 64MiB or 1.5GiB")
    try:
        return int(float(match[1]) * _UNITS[match[2]])
    except OverflowError:
        raise argparse.ArgumentTypeError(f"{text[:20]}… is more than any machine has") from None


def check_range(command: str, option: str, value: float | None, least: float, most: float | None = None) -> None:
    """Refuse an option's value that is not in its range; one that was not given is None, and right.

    Raises:
        ValueError: below `least`, above `most`, or no number.
    """
    if value is None or (value >= least and (most is None or value <= most)):
        return
    range_ = f"at least {least}" if most is None else f"at least {least} and at most {most}"
    raise ValueError(f"{command}: {option} is {value}; it must be {range_}")


def settle_threads(llm: LLM) -> None:
    """As many threads as OMP_NUM_THREADS says; without it, one for a small model.

    Its matrices are too small to gain from more, and threads that wait for each other lose a lot where another program
    keeps a core busy: on two such cores the demo took fifteen times as long.
    """
    import torch

    asked_for = os.environ.get("OMP_NUM_THREADS", "")
    if asked_for.isdecimal() and int(asked_for) > 0:
        threads = int(asked_for)
    elif num_parameters(llm.model_config) < _SMALL_MODEL_PARAMETERS:
        threads = 1
    else:
        return
    torch.set_num_threads(threads)  # the CPU kernels take as many


def num_parameters(config: ModelConfig) -> int:
    """Weights of the big matrices and embeddings; biases and norms are too few to matter here."""
    width, heads = config.hidden_size, config.num_heads + 2 * config.num_kv_heads
    layer = width * config.head_dim * (heads + config.num_heads) + 2 * width * config.intermediate_size
    embeddings = config.vocab_size * (1 if config.tie_word_embeddings else 2) + config.max_positions
    return config.num_layers * layer + embeddings * width
