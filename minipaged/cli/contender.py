"""One contender of `minipaged bench throughput`, in a process of its own: serves a workload, prints its figures.

    python contender.py ours|transformers|vllm FOLDER WORKLOAD.json

Run as a script, and with nothing but the standard library at the top, because another contender's Python may not have
minipaged. The clock runs from the first prompt handed in to the last token out; loading and a warm-up come before.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

WARM_UP_TOKENS = 8

# Serves prompts, each for so many tokens. Its figures: the "tokens" that were generated, and what it alone can tell.
Serve = Callable[[list[list[int]], list[int]], dict[str, Any]]


def ours(folder: str, work: dict[str, Any]) -> Serve:
    """minipaged, everything at once. Also tells "part_seconds", when the workload asks for "parts"."""
    from minipaged import LLM, SamplingParams
    from minipaged.cli.recording import recording

    llm = LLM(folder, dtype=work["dtype"], max_sequences=len(work["prompts"]), **work.get("options", {}))
    timer = None
    if work.get("parts"):
        from minipaged.cli.part_timer import PartTimer

        timer = PartTimer(llm)

    def serve(prompts: list[list[int]], lengths: list[int]) -> dict[str, Any]:
        params = [SamplingParams(temperature=0, max_tokens=length, ignore_eos=True) for length in lengths]
        if timer is not None:
            timer.seconds.clear()  # what the warm-up took is nobody's
        with recording(llm, work.get("record")):
            outputs = llm.generate(prompts, params, progress=False)
        tokens = sum(len(output.outputs[0].token_ids) for output in outputs)
        return {"tokens": tokens, "part_seconds": dict(timer.seconds) if timer is not None else {}}

    return serve


def transformers(folder: str, work: dict[str, Any]) -> Serve:
    """transformers' `generate` in static batches, padded on the left. Tokens beyond a request's length do not count."""
    import torch
    from transformers import GPT2LMHeadModel  # type: ignore[import-not-found, unused-ignore]

    model = GPT2LMHeadModel.from_pretrained(folder, dtype=getattr(torch, work["dtype"])).eval()
    batch_size = work["batch_size"]

    def serve(prompts: list[list[int]], lengths: list[int]) -> dict[str, Any]:
        for first in range(0, len(prompts), batch_size):
            members = prompts[first : first + batch_size]
            longest = max(map(len, members))
            ids = torch.tensor([[0] * (longest - len(prompt)) + prompt for prompt in members])  # (batch, longest)
            mask = torch.tensor([[0] * (longest - len(prompt)) + [1] * len(prompt) for prompt in members])
            new = max(lengths[first : first + batch_size])
            model.generate(
                ids, attention_mask=mask, max_new_tokens=new, min_new_tokens=new, do_sample=False, pad_token_id=0
            )
        return {"tokens": sum(lengths)}

    return serve


def vllm(folder: str, work: dict[str, Any]) -> Serve:
    """vLLM's CPU build, prefix caching off."""
    os.environ.setdefault("VLLM_CPU_OMP_THREADS_BIND", f"0-{(os.cpu_count() or 1) - 1}")
    os.environ.setdefault("VLLM_CPU_KVCACHE_SPACE", "2")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    from vllm import LLM, SamplingParams  # type: ignore[import-not-found, unused-ignore]

    llm = LLM(
        model=folder, dtype=work["dtype"], skip_tokenizer_init=True, enable_prefix_caching=False,
        max_num_seqs=len(work["prompts"]), seed=0,
    )  # fmt: skip

    def serve(prompts: list[list[int]], lengths: list[int]) -> dict[str, Any]:
        params = [
            SamplingParams(temperature=0, max_tokens=length, ignore_eos=True, detokenize=False) for length in lengths
        ]
        outputs = llm.generate([{"prompt_token_ids": prompt} for prompt in prompts], params, use_tqdm=False)
        return {"tokens": sum(len(output.outputs[0].token_ids) for output in outputs)}

    return serve


def matrix_rate(dtype: str) -> float:
    """The best rate of matrix products here, in operations per second: a packed layer, and torch's own, at 128 rows."""
    import torch

    from minipaged.model.packed_linear import PackedLinear, available

    linear = torch.nn.Linear(768, 3072, dtype=getattr(torch, dtype)).requires_grad_(False)
    layers = [linear, PackedLinear(linear)] if available(linear.weight.dtype) else [linear]
    x = torch.randn(128, 768, dtype=linear.weight.dtype)
    best = 0.0
    with torch.inference_mode():
        for layer in layers:
            for _ in range(8):
                began = time.perf_counter()
                for _ in range(10):
                    layer(x)
                best = max(best, 10 * 2 * 128 * 768 * 3072 / (time.perf_counter() - began))
    return best


def main(name: str, folder: str, workload: str) -> None:
    """Serve once to warm up, once by the clock."""
    with open(workload, encoding="utf-8") as file:
        work = json.load(file)
    prompts, lengths = work["prompts"], work["lengths"]
    serve = {"ours": ours, "transformers": transformers, "vllm": vllm}[name](folder, work)
    serve(prompts[: len(prompts) // 4], [min(WARM_UP_TOKENS, length) for length in lengths[: len(prompts) // 4]])
    began = time.perf_counter()
    figures = serve(prompts, lengths)
    figures["seconds"] = time.perf_counter() - began
    if name == "ours":
        figures["matrix_rate"] = matrix_rate(work["dtype"])
    print("\n" + json.dumps(figures), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
