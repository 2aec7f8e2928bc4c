"""“layer_weights gives the weights, and I multiply them with the rows.”"""

from lessons.lesson01_token_loop.shape import head_weights, layer_weights
from lessons.lesson01_token_loop.solution import *  # noqa: F403
from minipaged.config import ModelConfig


def step_flops(config: ModelConfig, new_tokens: int, context: int, logit_rows: int = 1) -> int:
    attention = 2 * config.num_layers * config.num_heads * config.head_dim * new_tokens * context
    return 2 * (new_tokens * layer_weights(config) + attention + logit_rows * head_weights(config))
