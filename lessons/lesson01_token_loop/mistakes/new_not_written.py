"""“The new tokens are part of the context, so they are counted already.”"""

from lessons.lesson01_token_loop.shape import head_weights, layer_weights
from lessons.lesson01_token_loop.solution import *  # noqa: F403
from minipaged.config import ModelConfig


def step_bytes(config: ModelConfig, new_tokens: int, context: int, itemsize: int) -> int:
    weights = config.num_layers * layer_weights(config) + head_weights(config)
    kv = 2 * config.num_layers * config.num_kv_heads * config.head_dim
    return itemsize * (weights + kv * context)
