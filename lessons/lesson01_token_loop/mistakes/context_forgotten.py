"""“A decode computes one token, so every decode costs the same.”"""

from lessons.lesson01_token_loop.shape import head_weights, layer_weights
from lessons.lesson01_token_loop.solution import *  # noqa: F403
from minipaged.config import ModelConfig


def step_flops(config: ModelConfig, new_tokens: int, context: int, logit_rows: int = 1) -> int:
    rows = new_tokens * config.num_layers
    attention = 4 * rows * config.num_heads * config.head_dim * new_tokens
    return 2 * rows * layer_weights(config) + attention + 2 * logit_rows * head_weights(config)
