"""“A slot holds a key for each head and layer.”"""

from lessons.lesson02_kv_cache.solution import *  # noqa: F403
from minipaged.config import ModelConfig


def kv_bytes_per_token(config: ModelConfig, itemsize: int) -> int:
    return config.num_layers * config.num_kv_heads * config.head_dim * itemsize
