"""The small GPT: one layer of tiny-gpt's four, trained in half a minute on the documents that the table has counted.

The shipped model is trained on windows cut from one long stream, in bfloat16 (`training.py`). Here each document is a
row of its own, padded to the longest of its batch, and the arithmetic is in float32, which every processor does well.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn import functional as F

from lessons.lesson00_tiny_gpt.texts import Texts
from lessons.lesson00_tiny_gpt.trainable_gpt import GPTShape, TrainableGPT
from lessons.lesson00_tiny_gpt.training import TrainingPlan, learning_rate_factor, make_optimizer

SHAPE = GPTShape(n_positions=256, n_layer=1)
BATCH_DOCUMENTS = 8
GROUP_BATCHES = 8
NOTHING = -100  # a target that is not to be predicted, as torch's cross-entropy has it


def batches(documents: list[list[int]], seed: int) -> list[list[list[int]]]:
    """Cuts documents into batches, each of which holds documents of about the same length, so that little is padding.

    Only within groups of 64 documents: sorted from end to end, the model would read all short ones first.
    """
    order = random.Random(seed)
    cut: list[list[list[int]]] = []
    size = GROUP_BATCHES * BATCH_DOCUMENTS
    for first in range(0, len(documents), size):
        group = sorted(documents[first : first + size], key=len)
        pieces = [group[i : i + BATCH_DOCUMENTS] for i in range(0, len(group), BATCH_DOCUMENTS)]
        order.shuffle(pieces)
        cut += pieces
    return cut


def batch(documents: list[list[int]], end_of_text: int) -> tuple[Tensor, Tensor]:
    """Returns (inputs, targets), each (documents, longest) int64: at each place a token, and the one that follows."""
    longest = max(len(document) for document in documents) + 1
    inputs = torch.full((len(documents), longest), end_of_text)
    targets = torch.full((len(documents), longest), NOTHING)
    for row, document in enumerate(documents):
        inputs[row, 1 : len(document) + 1] = torch.tensor(document)
        targets[row, : len(document) + 1] = torch.tensor([*document, end_of_text])
    return inputs, targets


def train_small_gpt(
    texts: Texts, device: str = "cpu", on_step: Callable[[int, float], None] = lambda step, bits: None
) -> tuple[TrainableGPT, list[float]]:
    """One pass over the training documents; none is seen twice.

    Args:
        texts: what to learn from; as many steps as there are batches in it.
        device: where to train; the model comes back on the CPU.
        on_step: is told each step's number, from 1, and its loss.

    Returns:
        The model, and each step's loss in bits per token, before the model had learnt from that batch.
    """
    plan = TrainingPlan(shape=SHAPE, peak_learning_rate=4e-3, warmup_steps=20)
    cut = batches(texts.training, plan.seed)
    torch.manual_seed(plan.seed)
    model = TrainableGPT(plan.shape).to(device)
    optimizer = make_optimizer(model, plan)
    losses: list[float] = []
    # As the model grows sure, probabilities and gradients fall below what float32 holds in full; processors reckon with
    # such numbers many times more slowly, and nothing is lost when they count as zero.
    torch.set_flush_denormal(True)
    for step, documents in enumerate(cut):
        inputs, targets = (tensor.to(device) for tensor in batch(documents, texts.end_of_text))
        for group in optimizer.param_groups:
            group["lr"] = plan.peak_learning_rate * learning_rate_factor(step, step / len(cut), plan.warmup_steps)
        logits = model(inputs, torch.arange(inputs.shape[1], device=device).expand_as(inputs))
        loss = F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=NOTHING)  # nats per token
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), plan.clip_norm)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item() / math.log(2))
        on_step(step + 1, losses[-1])
    torch.set_flush_denormal(False)
    return model.cpu().eval(), losses
