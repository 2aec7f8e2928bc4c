"""Where there is no GPU, Triton's kernels are tested in its interpreter, to be chosen before Triton is imported."""

import os
import sys

import torch

if not torch.cuda.is_available():
    os.environ["TRITON_INTERPRET"] = "1"
    # Another test (transformers does it) may have imported Triton: then it is imported anew, all but its C part.
    if "triton" in sys.modules:
        for name in list(sys.modules):
            if name.split(".")[0] == "triton" and not name.startswith("triton._C"):
                del sys.modules[name]
        for name in ("triton_attention", "triton_cache"):
            sys.modules.pop(f"minipaged_kernels.{name}", None)
