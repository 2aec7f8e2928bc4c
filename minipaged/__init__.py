"""minipaged: how vLLM works, small enough to read in an evening.

The public face mirrors vLLM's offline interface::

    from minipaged import LLM, SamplingParams
    llm = LLM("tiny-gpt")
    outputs = llm.generate(["请解释什么是黑洞"], SamplingParams(max_tokens=64))
    print(outputs[0].outputs[0].text)

Nothing is imported until it is asked for: `import minipaged.scheduler` loads neither torch nor numpy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minipaged.config import EngineConfig, ModelConfig
    from minipaged.engine import Engine
    from minipaged.llm import LLM
    from minipaged.request import Completion, RequestOutput
    from minipaged.sampling_params import SamplingParams

__version__ = "0.1.0"

_HOME = {  # public name -> the module it lives in
    "LLM": "minipaged.llm",
    "SamplingParams": "minipaged.sampling_params",
    "Engine": "minipaged.engine",
    "EngineConfig": "minipaged.config",
    "ModelConfig": "minipaged.config",
    "RequestOutput": "minipaged.request",
    "Completion": "minipaged.request",
}

__all__ = ["LLM", "Completion", "Engine", "EngineConfig", "ModelConfig", "RequestOutput", "SamplingParams"]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'minipaged' has no attribute {name!r}")
