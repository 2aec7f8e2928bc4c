"""Trains tiny-gpt: AdamW, a warm-up and a cosine, bfloat16 arithmetic over float32 weights, on two CPU cores.

It prints, with each loss, the entropy floor of the text it trains on: the number that the loss is on its way to. It can
be stopped and resumed. It does not know how text is made, how files are written, or what a good answer is.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from torch import Tensor
from torch.nn import functional as F

from lessons.lesson00_tiny_gpt.token_stream import TokenStream, WindowSampler
from lessons.lesson00_tiny_gpt.trainable_gpt import GPTShape, TrainableGPT


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """Everything that determines a training run, besides the text.

    Attributes:
        steps: Length of the run, and of the cosine.
        minutes: If given, the run takes this long instead, whatever number of steps that is. The schedule then follows
            the clock, and a second run will not give the same model.
    """

    shape: GPTShape = field(default_factory=GPTShape)
    steps: int = 5000
    minutes: float | None = None
    seed: int = 0
    batch_tokens: int = 4096
    peak_learning_rate: float = 5e-3
    warmup_steps: int = 150
    weight_decay: float = 0.1
    clip_norm: float = 1.0
    log_every: int = 50
    checkpoint_every: int = 250


def next_token_loss(model: TrainableGPT, inputs: Tensor, targets: Tensor, positions: Tensor) -> Tensor:
    """Returns the mean cross-entropy in nats, a scalar.

    Args:
        model: The model.
        inputs: (rows, window) int64.
        targets: (rows, window) int64; -100 where nothing is to be predicted.
        positions: (rows, window) int64.
    """
    # Matrix products in bfloat16 are a quarter faster here than in float32; the loss itself needs float32.
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(inputs, positions)  # (rows, window, vocab_size)
    return F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())


def learning_rate_factor(step: int, progress: float, warmup_steps: int) -> float:
    """Returns the share of the peak rate: a linear rise over the warm-up, and a cosine from 1 to 0 over the run."""
    return min(1.0, (step + 1) / warmup_steps) * 0.5 * (1 + math.cos(math.pi * min(progress, 1.0)))


def make_optimizer(model: TrainableGPT, plan: TrainingPlan) -> torch.optim.AdamW:
    """Returns AdamW that decays matrices, and leaves biases and norms alone."""
    matrices = [parameter for parameter in model.parameters() if parameter.ndim >= 2]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim < 2]
    groups = [{"params": matrices, "weight_decay": plan.weight_decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=plan.peak_learning_rate, betas=(0.9, 0.95), fused=True)


def train(
    plan: TrainingPlan,
    stream: TokenStream,
    *,
    model: TrainableGPT | None = None,
    checkpoint_folder: Path | None = None,
    log: Callable[[str], None] = print,
) -> tuple[TrainableGPT, list[float]]:
    """Runs a plan, from its checkpoint if there is one.

    Args:
        plan: What to do.
        stream: The text.
        model: What an earlier run has made; None begins from random weights.
        checkpoint_folder: Where `checkpoint.pt` is kept for resuming; None keeps none.
        log: Receives each line of the report.

    Returns:
        The model, and the loss of each step of this call in bits per token.
    """
    torch.manual_seed(plan.seed)
    model = model or TrainableGPT(plan.shape)
    optimizer = make_optimizer(model, plan)
    sampler = WindowSampler(stream, plan.seed, plan.batch_tokens, plan.shape.n_positions)
    checkpoint = checkpoint_folder / "checkpoint.pt" if checkpoint_folder is not None else None
    step, seconds_before = 0, 0.0
    if checkpoint is not None and checkpoint.is_file():
        state = torch.load(checkpoint)
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        step, seconds_before = state["step"], state["seconds"]
        log(f"resumed at step {step}")
    log(
        f"{model.num_parameters():,} parameters; {len(stream.tokens):,} tokens of text in {len(stream.starts):,} "
        f"documents; floor {stream.floor_bits_per_token:.4f} bits per token"
    )

    began = time.perf_counter()
    losses: list[float] = []
    while True:
        seconds = seconds_before + time.perf_counter() - began
        progress = step / plan.steps if plan.minutes is None else seconds / (60 * plan.minutes)
        if progress >= 1:
            break
        for group in optimizer.param_groups:
            group["lr"] = plan.peak_learning_rate * learning_rate_factor(step, progress, plan.warmup_steps)
        loss = next_token_loss(model, *sampler.batch(step))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), plan.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item() / math.log(2))
        step += 1

        if step % plan.log_every == 0:
            recent = losses[-plan.log_every :]
            bits = sum(recent) / len(recent)
            elapsed = time.perf_counter() - began
            speed = len(losses) * plan.batch_tokens / elapsed
            seconds_left = (seconds_before + elapsed) * (1 - progress) / max(progress, 1e-9)
            log(
                f"step {step:5d}  loss {bits * math.log(2):.4f}  bits/token {bits:.4f}  "
                f"floor {stream.floor_bits_per_token:.4f}  {speed:,.0f} tokens/s  ETA {seconds_left / 60:.1f} min"
            )
        if checkpoint is not None and step % plan.checkpoint_every == 0:
            state = {
                "model": model.state_dict(),
                "optimizer": optimizer.state_dict(),
                "step": step,
                "seconds": seconds_before + time.perf_counter() - began,
            }
            checkpoint.parent.mkdir(parents=True, exist_ok=True)
            unfinished = checkpoint.with_suffix(".tmp")
            torch.save(state, unfinished)
            unfinished.replace(checkpoint)  # a run killed while writing leaves the older checkpoint whole
    return model, losses
