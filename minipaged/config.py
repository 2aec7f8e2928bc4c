"""ModelConfig (what the network is) and EngineConfig (how to run it): frozen, checked when made, no torch.

Knows nothing of files: `minipaged/model/loader.py` reads `config.json` and calls `ModelConfig.from_hugging_face`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

DTYPES = ("float32", "bfloat16", "float16")
ATTENTION = ("auto", "triton", "cpu", "reference")


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """The shape of a GPT. `num_kv_heads` and `head_dim` are explicit, so that grouped heads need no new field.

    Args:
        vocab_size: tokens that the model knows; ids are 0 … vocab_size - 1.
        max_positions: the context, in tokens. It holds prompt + answer - 1: the last token drawn is never fed back.
        num_layers: layers, each with attention and two linear maps.
        num_heads: query heads of a layer.
        num_kv_heads: key and value heads of a layer; num_heads is a multiple of it.
        head_dim: numbers in a head's query, key or value.
        hidden_size: numbers in a token's vector between the layers.
        intermediate_size: numbers between a layer's two linear maps.
        layer_norm_epsilon: added to the variance before a norm divides by its root.
        activation: between the two linear maps: "gelu_new" (by tanh), "gelu" or "relu".
        tie_word_embeddings: the head that makes the logits is the token embedding.
        eos_token_ids: end-of-text tokens: they end an answer unless `SamplingParams.ignore_eos`.

    Raises:
        ValueError: an impossible value; the message names it.
    """

    vocab_size: int
    max_positions: int
    num_layers: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    hidden_size: int
    intermediate_size: int
    layer_norm_epsilon: float = 1e-5
    activation: str = "gelu_new"
    tie_word_embeddings: bool = True
    eos_token_ids: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        sizes = ("vocab_size", "max_positions", "num_layers", "num_heads", "num_kv_heads", "head_dim", "hidden_size",
                 "intermediate_size")  # fmt: skip
        for name in sizes:
            _require_int("ModelConfig", name, getattr(self, name), 1)
        if self.num_heads % self.num_kv_heads:
            raise ValueError(
                f"ModelConfig: num_heads {self.num_heads} is not a multiple of num_kv_heads {self.num_kv_heads}"
            )
        epsilon = self.layer_norm_epsilon
        if isinstance(epsilon, bool) or not isinstance(epsilon, (int, float)) or not 0 < epsilon < 1:
            raise ValueError(f"ModelConfig: layer_norm_epsilon is {epsilon!r}; it must be above 0 and below 1")
        if not isinstance(self.tie_word_embeddings, bool):
            raise ValueError(
                f"ModelConfig: tie_word_embeddings is {self.tie_word_embeddings!r}; it must be true or false"
            )
        for token_id in self.eos_token_ids:
            _require_int("ModelConfig", "eos_token_ids", token_id, 0)
        if self.activation not in ("gelu_new", "gelu", "relu"):
            raise ValueError(f"ModelConfig: activation is {self.activation!r}; it must be gelu_new, gelu or relu")

    def kv_bytes_per_token(self, itemsize: int) -> int:
        """Bytes of K and V that one token slot holds, all layers.

        Args:
            itemsize: bytes of one number: 4 in float32, 2 in bfloat16 and float16.
        """
        return 2 * self.num_layers * self.num_kv_heads * self.head_dim * itemsize

    @classmethod
    def from_hugging_face(cls, config: Mapping[str, Any]) -> ModelConfig:
        """The shape of a Hugging Face GPT-2 `config.json`.

        A key that changes no arithmetic (dropout, generation defaults, the writer's version) is passed over; one that
        asks for arithmetic which is not here is refused.

        Args:
            config: the file's content.

        Raises:
            ValueError: not a GPT-2, a missing size, or a variant that is not supported; the message names the key.
        """
        if config.get("model_type") != "gpt2":
            raise ValueError(f"config.json: model_type is {config.get('model_type')!r}; only 'gpt2' is supported")
        for key, supported in (
            ("scale_attn_weights", True),
            ("scale_attn_by_inverse_layer_idx", False),
            ("add_cross_attention", False),
        ):
            if config.get(key, supported) != supported:
                raise ValueError(f"config.json: {key} is {config[key]!r}; only {supported} is supported")
        for key in ("vocab_size", "n_embd", "n_layer", "n_head"):
            if key not in config:
                raise ValueError(f"config.json: {key} is missing")
        hidden_size, num_heads = config["n_embd"], config["n_head"]
        _require_int("config.json", "n_embd", hidden_size, 1)
        _require_int("config.json", "n_head", num_heads, 1)
        if hidden_size % num_heads:
            raise ValueError(f"config.json: n_embd {hidden_size} is not a multiple of n_head {num_heads}")
        activation = config.get("activation_function", "gelu_new")
        eos = config.get("eos_token_id")
        return cls(
            vocab_size=config["vocab_size"],
            max_positions=config.get("n_positions", config.get("n_ctx", 1024)),
            num_layers=config["n_layer"],
            num_heads=num_heads,
            num_kv_heads=num_heads,
            head_dim=hidden_size // num_heads,
            hidden_size=hidden_size,
            intermediate_size=config.get("n_inner") or 4 * hidden_size,
            layer_norm_epsilon=config.get("layer_norm_epsilon", 1e-5),
            activation="gelu_new" if activation == "gelu_pytorch_tanh" else activation,
            tie_word_embeddings=config.get("tie_word_embeddings", True),
            eos_token_ids=() if eos is None else tuple(eos) if isinstance(eos, list) else (eos,),
        )


@dataclass(frozen=True, slots=True)
class EngineConfig:
    """How to run a model.

    Args:
        block_size: token slots in a block.
        num_blocks: blocks in the device pool; None sizes the pool by `kv_cache_bytes`.
        kv_cache_bytes: bytes for the device pool; None takes a share of what is free once the weights are in.
        host_blocks: blocks in the host pool, for what the device pool gives up; 0 to recompute instead.
        host_cache_bytes: bytes for the host pool, instead of `host_blocks`.
        share_prefixes: False keeps what each request computes to itself, and forgets it with the request.
        max_batch_tokens: tokens that one step computes at most; at least `max_sequences`, so that each running
            sequence advances in every step.
        max_sequences: sequences that run at the same time at most.
        max_chunk_tokens: tokens of one sequence in one step at most; None sets no limit but the batch's.
        watermark: share of the blocks that an admission leaves free for those already running, in [0, 1).
        seed: noise for the requests that bring no seed of their own.
        device: "cpu", "cuda" or "auto" (CUDA where there is one).
        dtype: of weights and cache.
        attention: the kernels' backend; "auto" takes Triton on CUDA, Numba on a CPU, the reference where neither is.

    Raises:
        ValueError: an impossible value; the message names it.
    """

    block_size: int = 16
    num_blocks: int | None = None
    kv_cache_bytes: int | None = None
    host_blocks: int = 0
    host_cache_bytes: int | None = None
    share_prefixes: bool = True
    max_batch_tokens: int = 2048
    max_sequences: int = 64
    max_chunk_tokens: int | None = None
    watermark: float = 0.01
    seed: int = 0
    device: str = "cpu"
    dtype: str = "float32"
    attention: str = "auto"

    def __post_init__(self) -> None:
        for name in ("block_size", "max_batch_tokens", "max_sequences"):
            _require_int("EngineConfig", name, getattr(self, name), 1)
        for name in ("num_blocks", "kv_cache_bytes", "host_cache_bytes", "max_chunk_tokens"):
            if getattr(self, name) is not None:
                _require_int("EngineConfig", name, getattr(self, name), 1)
        _require_int("EngineConfig", "seed", self.seed, 0)
        _require_int("EngineConfig", "host_blocks", self.host_blocks, 0)
        if not isinstance(self.share_prefixes, bool):
            raise ValueError(f"EngineConfig: share_prefixes is {self.share_prefixes!r}; it must be True or False")
        if self.host_blocks and self.host_cache_bytes is not None:
            raise ValueError("EngineConfig: host_blocks and host_cache_bytes both size the host pool; give one of them")
        if self.num_blocks is not None and self.kv_cache_bytes is not None:
            raise ValueError("EngineConfig: num_blocks and kv_cache_bytes both size the pool; give one of them")
        if (
            isinstance(self.watermark, bool)
            or not isinstance(self.watermark, (int, float))
            or not 0 <= self.watermark < 1
        ):
            raise ValueError(f"EngineConfig: watermark is {self.watermark!r}; it must be at least 0 and below 1")
        if self.dtype not in DTYPES:
            raise ValueError(f"EngineConfig: dtype is {self.dtype!r}; it must be one of {', '.join(DTYPES)}")
        if self.device != "auto" and str(self.device).split(":")[0] not in ("cpu", "cuda"):
            raise ValueError(f"EngineConfig: device is {self.device!r}; it must be cpu, cuda or auto")
        if self.attention not in ATTENTION:
            raise ValueError(f"EngineConfig: attention is {self.attention!r}; it must be one of {', '.join(ATTENTION)}")
        if self.max_batch_tokens < self.max_sequences:
            raise ValueError(
                f"EngineConfig: max_batch_tokens {self.max_batch_tokens} is below max_sequences {self.max_sequences}; "
                "each running sequence needs one token of every step"
            )

    @classmethod
    def from_dict(cls, options: Mapping[str, Any]) -> EngineConfig:
        """As the constructor, for options that a user wrote.

        Args:
            options: by their names, any number of them.

        Raises:
            ValueError: an unknown option; the message lists the known ones. Or an impossible value.
        """
        known = [field.name for field in fields(cls)]
        for name in options:
            if name not in known:
                raise ValueError(f"EngineConfig: unknown option {name!r}; known are {', '.join(known)}")
        return cls(**options)


def _require_int(who: str, name: str, value: object, least: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ValueError(f"{who}: {name} is {value!r}; it must be a whole number of at least {least}")
