"""The checks of lesson 2: figures to be reckoned in the head first, then pieces of random texts against the whole."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from types import ModuleType
from typing import Any

import torch

from lessons.runner.checks import Wrong, expect
from minipaged.config import ModelConfig
from minipaged.model.gpt import full_attention

MISCONCEPTIONS = {
    "positions_restart": "You count the positions of each pass from 0. A token's position is its place in the whole "
    "sequence; the model would take the new word for the first one of a text.",
    "positions_elsewhere": "You make the positions where torch makes tensors if nothing is said, in the main memory. "
    "The model looks them up beside its weights, and on a GPU it would find the two in different places.",
    "overwrites_the_first": "You write at the beginning of the cache. Those slots belong to the sequence's first "
    "tokens; new ones go behind the `num_computed` that are there.",
    "advanced_too_early": "You move `num_computed` on in the middle of a pass. Every layer writes the same tokens into "
    "the same slots; the first layer must not push the second one further. It moves when all layers are done.",
    "reshaped_not_turned": "You reshape (new, kv_heads, head_dim) into (kv_heads, new, head_dim). That keeps the "
    "numbers in their order and gives a head's slots to another head; two dimensions are exchanged by `transpose`.",
    "misses_itself": "A token does not see itself. Its own key and value are part of its context: append before you "
    "attend, and let row j see the keys up to and including its own.",
    "whole_buffer": "You attend over the whole buffer. Slots that were not written yet hold anything, and each takes a "
    "share of the weight; a weight of zero is no help either, for 0 times NaN is NaN. Cut the slice at the context.",
    "sees_the_future": "A row sees tokens behind its own. In the text that it was trained on, what comes next is what "
    "a token has to guess; and if earlier rows looked at later ones, K and V could not be kept.",
    "mask_ignores_start": "You mask as if the new tokens were the first ones. Row j stands at position num_computed + "
    "j, so it sees all cached keys and j + 1 of the new ones. (With an empty cache both are the same.)",
    "scaled_by_hidden_size": "You divide the scores by the root of hidden_size. A score is a product of head_dim "
    "numbers, so it is head_dim that says how large it grows.",
    "not_scaled": "You do not divide the scores by the root of head_dim. The weights come out too sharp: the model was "
    "trained with the division.",
    "heads_interleaved": "You give the KV heads to the query heads in turns, 0, 1, 0, 1. Neighbours share: query head "
    "h reads KV head h // group.",
    "only_keys": "You count the keys and forget the values: a factor of 2.",
    "by_query_heads": "You count query heads. What is kept are keys and values, one per KV head; the queries of "
    "earlier tokens are not asked for again, and grouped heads share what is kept.",
    "one_layer": "You count one layer. Every layer has keys and values of its own, made from its own input.",
    "numbers_not_bytes": "You count numbers and not bytes. A float32 takes four of them, a float16 two.",
}


def _config(layers: int = 1, heads: int = 1, kv_heads: int = 1, head_dim: int = 4) -> ModelConfig:
    return ModelConfig(10, 64, layers, heads, kv_heads, head_dim, hidden_size=4 * head_dim, intermediate_size=8)


def _cache(exercise: ModuleType, config: ModelConfig, max_tokens: int) -> Any:
    """An empty cache full of NaN, so that a slot which was not written shows."""
    cache = exercise.ContiguousCache(config, max_tokens)
    cache.kv.fill_(math.nan)
    return cache


def task_1(exercise: ModuleType) -> None:
    """Positions and slots of new tokens."""
    cache = _cache(exercise, _config(), 8)
    _positions(cache, 3, [0, 1, 2])
    cache.num_computed = 3
    _positions(cache, 2, [3, 4], "positions_restart")
    _positions(cache, 1, [3], "positions_restart")
    elsewhere = exercise.ContiguousCache(_config(), 8, device="meta")  # a device without memory, there on any machine
    expect("the device of the positions, where the cache is on 'meta'", str(elsewhere.positions(2).device), "meta",
           MISCONCEPTIONS["positions_elsewhere"])  # fmt: skip

    # 2 layers, 2 KV heads, head_dim 1: K of token t and head h is 10 t + h, V the same with a minus.
    cache = _cache(exercise, _config(layers=2, kv_heads=2, heads=2, head_dim=1), 4)
    what = "2 KV heads, 4 slots, head_dim 1, K of token t and head h is 10 t + h, V is −K; None is a slot not written"
    for layer in (0, 1):
        cache.append(layer, *_numbered([0, 1]))
        swapped = [[0.0, 1.0, None, None], [10.0, 11.0, None, None]]
        _keys(f"{what}: keys of layer {layer} after tokens 0 and 1", cache, layer,
              [[0.0, 10.0, None, None], [1.0, 11.0, None, None]], [(swapped, "reshaped_not_turned")])  # fmt: skip
        expect("num_computed in the middle of a pass", cache.num_computed, 0, MISCONCEPTIONS["advanced_too_early"])
    cache.num_computed = 2
    for layer in (0, 1):
        cache.append(layer, *_numbered([2]))
        first = [[20.0, 10.0, None, None], [21.0, 11.0, None, None]]
        _keys(f"{what}: keys of layer {layer} after token 2", cache, layer,
              [[0.0, 10.0, 20.0, None], [1.0, 11.0, 21.0, None]], [(first, "overwrites_the_first")])  # fmt: skip
        expect(f"{what}: values of layer {layer}", _shown(cache.kv[layer, 1, :, :3, 0]),
               [[-0.0, -10.0, -20.0], [-1.0, -11.0, -21.0]])  # fmt: skip
    cache.num_computed = 3
    cache.append(0, *_numbered([3]))  # the last slot
    expect(f"{what}: keys after token 3", _shown(cache.kv[0, 0, :, :, 0]), [[0, 10, 20, 30], [1, 11, 21, 31]])
    expect(f"{what}: keys of the layer that was not written", _shown(cache.kv[1, 0, :, 3, 0]), [None, None])


def _positions(cache: Any, num_new: int, expected: list[int], because: str = "") -> None:
    got = cache.positions(num_new)
    what = f"{cache.num_computed} tokens are in the cache: positions({num_new})"
    if not isinstance(got, torch.Tensor) or got.is_floating_point() or got.dim() != 1:
        raise Wrong(f"{what} (a tensor of integers)", got, torch.tensor(expected))
    misled = got.tolist() == list(range(num_new))
    expect(what, got.tolist(), expected, MISCONCEPTIONS.get(because, "") if misled else "")


def _numbered(tokens: list[int], heads: int = 2) -> tuple[torch.Tensor, torch.Tensor]:
    key = torch.tensor([[[10.0 * token + head] for head in range(heads)] for token in tokens])  # (new, kv_heads, 1)
    return key, -key


def _keys(what: str, cache: Any, layer: int, expected: list[Any], misled: list[tuple[list[Any], str]]) -> None:
    got = _shown(cache.kv[layer, 0, :, :, 0])
    because = next((name for wrong, name in misled if wrong == got), "")
    expect(what, got, expected, MISCONCEPTIONS.get(because, ""))


def _shown(numbers: torch.Tensor) -> Any:
    """As nested lists; None for NaN, which is not equal to itself."""
    if numbers.dim():
        return [_shown(row) for row in numbers]
    return None if numbers.isnan() else round(numbers.item(), 4)


def task_2(exercise: ModuleType) -> None:
    """Attention over what is kept."""
    # All keys are 0, so all that a row sees has the same weight: the result is a mean.
    cache = _cache(exercise, _config(), 8)
    got = _one_number(cache, [1.0, 2.0, 3.0])
    expect(
        "keys 0, values 1, 2, 3 into an empty cache: shape of the result (new, num_heads, head_dim)",
        tuple(got.shape),
        (3, 1, 4),
    )
    _rows("keys 0, values 1, 2, 3 into an empty cache of 8 slots: the three rows", got, [1.0, 1.5, 2.0], {
        (2.0, 2.0, 2.0): "sees_the_future", (None, 1.0, 1.5): "misses_itself", (None,) * 3: "whole_buffer",
    })  # fmt: skip
    expect("num_computed after `attend`, which is in the middle of a pass", cache.num_computed, 0,
           MISCONCEPTIONS["advanced_too_early"])  # fmt: skip
    cache.num_computed = 3
    got = _one_number(cache, [6.0])
    _rows("then a decode with value 6", got, [3.0], {(2.0,): "misses_itself", (None,): "whole_buffer",
          (1.0,): "mask_ignores_start", (6.0,): "overwrites_the_first"})  # fmt: skip
    cache = _cache(exercise, _config(), 8)
    _one_number(cache, [1.0, 3.0])
    cache.num_computed = 2
    got = _one_number(cache, [5.0, 7.0])
    _rows("keys 0, values 1 and 3 are in the cache, 5 and 7 come: their rows", got, [3.0, 4.0], {
        (1.0, 2.0): "mask_ignores_start", (4.0, 4.0): "sees_the_future", (2.0, 3.0): "misses_itself",
    })  # fmt: skip

    # Scores 2 ln 3 and 0. Halved, since head_dim is 4: weights 3/4 and 1/4.
    cache = _cache(exercise, _config(heads=4, kv_heads=4), 8)
    query, key, value = torch.zeros(3, 2, 4, 4).unbind()  # (new, heads, head_dim)
    query[1, :, 0], key[0, :, 0], value[1] = 2 * math.log(3.0), 1.0, 8.0
    got = cache.attend(0, query, key, value)[1:, 0, 0]
    share = {name: 8 / (1 + 9.0**scale) for name, scale in
             (("scaled_by_hidden_size", 1 / 4), ("not_scaled", 1.0))}  # fmt: skip
    _rows("head_dim 4, hidden_size 16, query · key 2.1972 and 0, values 0 and 8", got, [2.0],
          {(round(mean, 4),): name for name, mean in share.items()})  # fmt: skip

    cache = _cache(exercise, _config(heads=4, kv_heads=2), 8)
    value = torch.tensor([1.0, 5.0])[None, :, None].expand(1, 2, 4)
    got = cache.attend(0, torch.zeros(1, 4, 4), torch.zeros(1, 2, 4), value)[0, :, 0]
    _rows("4 query heads on 2 KV heads with the values 1 and 5: each query head", got, [1.0, 1.0, 5.0, 5.0],
          {(1.0, 5.0, 1.0, 5.0): "heads_interleaved"})  # fmt: skip
    _pieces(exercise)


def _one_number(cache: Any, values: list[float]) -> torch.Tensor:
    """Attend with zero keys; every number of a value is the same: (new, 1, head_dim)."""
    zeros = torch.zeros(len(values), 1, 4)
    got = cache.attend(0, zeros, zeros, torch.tensor(values)[:, None, None].expand(-1, 1, 4))
    if not isinstance(got, torch.Tensor):
        raise Wrong("attend returns a tensor", got, "a tensor (new, num_heads, head_dim)")
    return got


def _rows(what: str, got: torch.Tensor, expected: list[float], misled: Mapping[tuple[Any, ...], str]) -> None:
    shown = _shown(got.reshape(len(expected), -1)[:, 0])
    because = misled.get(tuple(shown), "whole_buffer" if None in shown else "")
    expect(what, shown, expected, MISCONCEPTIONS.get(because, ""))


def _pieces(exercise: ModuleType) -> None:
    """Random sequences in random pieces, all layers, against attention over the whole at once."""
    generator, noise = random.Random(2), torch.Generator().manual_seed(2)
    for _ in range(8):
        kv_heads, num_tokens = generator.randint(1, 3), generator.randint(1, 30)
        heads = kv_heads * generator.randint(1, 3)
        config = _config(2, heads, kv_heads, generator.choice([3, 8]))
        cache = _cache(exercise, config, num_tokens + generator.randint(0, 5))
        # (layers, tokens, heads, head_dim)
        query = torch.randn(2, num_tokens, heads, config.head_dim, generator=noise)
        key = torch.randn(2, num_tokens, kv_heads, config.head_dim, generator=noise)
        value = torch.randn(2, num_tokens, kv_heads, config.head_dim, generator=noise)
        start = 0
        while start < num_tokens:
            end = min(num_tokens, start + generator.choice([1, 1, 1, 7]))
            for layer in (0, 1):
                whole = full_attention(layer, query[layer, :end], key[layer, :end], value[layer, :end])[start:]
                rows = (query[layer, start:end], key[layer, start:end], value[layer, start:end])
                got = cache.attend(layer, *rows)
                if isinstance(got, torch.Tensor) and got.dtype != whole.dtype:
                    raise Wrong("the dtype of what attend returns, which the model goes on with", got.dtype,
                                f"{whole.dtype}, the query's")  # fmt: skip
                if got.shape != whole.shape or not torch.allclose(got, whole, atol=1e-5):
                    raise Wrong(f"layer {layer}, tokens {start} to {end - 1} of a random sequence, {heads} query heads "
                                f"on {kv_heads} KV heads", got, whole)  # fmt: skip
            start = cache.num_computed = end


def task_3(exercise: ModuleType) -> None:
    """Bytes of a token."""
    for config, itemsize in (
        (ModelConfig(10, 64, 3, 4, 4, 32, 128, 512), 4),
        (ModelConfig(10, 64, 4, 4, 2, 32, 128, 512), 4),
        (ModelConfig(10, 64, 40, 40, 40, 128, 5120, 20480), 2),
        (ModelConfig(10, 64, 3, 6, 2, 24, 100, 100), 2),
    ):
        numbers = 2 * config.num_layers * config.num_kv_heads * config.head_dim
        expected = itemsize * numbers
        misled = {
            expected // 2: "only_keys",
            expected * config.num_heads // config.num_kv_heads: "by_query_heads",
            expected // config.num_layers: "one_layer",
            numbers: "numbers_not_bytes",
        }
        got = exercise.kv_bytes_per_token(config, itemsize)
        because = misled.get(got, "") if isinstance(got, int) else ""
        expect(f"{config.num_layers} layers, {config.num_heads} heads, {config.num_kv_heads} KV heads of head_dim "
               f"{config.head_dim}, {itemsize} bytes a number: bytes of a token", got, expected,
               MISCONCEPTIONS.get(because, ""))  # fmt: skip
        kept = exercise.ContiguousCache(config, 7, torch.float16 if itemsize == 2 else torch.float32, "meta").kv
        expect("7 tokens in a real cache, in bytes", 7 * got, kept.nbytes)
