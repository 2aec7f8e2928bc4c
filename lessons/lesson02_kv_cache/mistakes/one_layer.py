"""“A token has one key and one value per head.”"""

from lessons.lesson02_kv_cache.solution import *  # noqa: F403
from minipaged.config import ModelConfig


def kv_bytes_per_token(config: ModelConfig, itemsize: int) -> int:
    return 2 * config.num_kv_heads * config.head_dim * itemsize
