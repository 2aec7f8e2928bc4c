"""CostModel: how long a step takes on a machine that is not here, by arithmetic on its plan.

A step is three things after each other, and a fixed price. Of each, the slower of its arithmetic and its reading counts
(the roofline): a processor computes while it reads.

    fixed        what launching a step costs, whatever is in it
    matrices     2 FLOP for each parameter and token;          each weight is read once, however many tokens there are
    attention    4 FLOP for each query, key, head and number;  K and V of each context are read once, new ones written
    moves        blocks between device and host, over the link between them; copies on the device, read and written

So a decode of few sequences waits for the weights, of many sequences for K and V, and a prefill for the arithmetic.

It knows plans and numbers. Every number is a field, and each preset says where its own come from. It leaves out what
would need a measurement on the machine: kernels that fill it badly, and the host's work that hides behind the device's.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from minipaged.plan import CopyBlock, StepPlan, SwapIn, SwapOut


@dataclass(frozen=True, slots=True)
class Machine:
    """What computes.

    Args:
        name: for a reader.
        peak_flops: floating-point operations a second, as its maker says, at the model's number format.
        peak_bytes: bytes a second between its memory and its processor, as its maker says.
        compute_share: of `peak_flops`, what matrix products reach.
        memory_share: of `peak_bytes`, what reading reaches.
        link_bytes: bytes a second between device and host, one way.
        transfer_seconds: what starting one copy costs, over the link or on the device.
        step_seconds: the fixed price of a step.
        source: where these numbers come from, one line for each.

    Raises:
        ValueError: a number that is not above 0 (seconds: below 0), or a share above 1; the message names it.
    """

    name: str
    peak_flops: float
    peak_bytes: float
    compute_share: float
    memory_share: float
    link_bytes: float
    transfer_seconds: float
    step_seconds: float
    source: str

    def __post_init__(self) -> None:
        _require_positive(self, zero_allowed=("transfer_seconds", "step_seconds"))
        for name in ("compute_share", "memory_share"):
            if getattr(self, name) > 1:
                raise ValueError(f"Machine: {name} is {getattr(self, name)}; it must be above 0 and at most 1")


@dataclass(frozen=True, slots=True)
class Network:
    """What is computed.

    Args:
        name: for a reader.
        matrix_parameters: parameters that every token is multiplied with.
        head_parameters: of the output head, which only rows that are drawn from are multiplied with.
        attention_width: numbers in a query, summed over heads and layers.
        kv_bytes_per_token: K and V of a token, all layers.
        weight_bytes: all that is read in a step.
        kv_cache_bytes: what is left for K and V on the machine of the preset.
        max_positions: the context.
        source: where these numbers come from, one line for each.

    Raises:
        ValueError: a number that is not above 0; the message names it.
    """

    name: str
    matrix_parameters: int
    head_parameters: int
    attention_width: int
    kv_bytes_per_token: int
    weight_bytes: int
    kv_cache_bytes: int
    max_positions: int
    source: str

    def __post_init__(self) -> None:
        _require_positive(self)

    @property
    def kv_slots(self) -> int:
        """Token slots that `kv_cache_bytes` hold."""
        return self.kv_cache_bytes // self.kv_bytes_per_token


class StepCost(NamedTuple):
    """Seconds of a step, by what they are spent on.

    Attributes:
        fixed: the price of any step.
        matrices_computing: the arithmetic of the matrix products.
        matrices_reading: the reading of the weights; of the two, the longer counts.
        attention_computing: the arithmetic of attention.
        attention_reading: the reading of K and V; of the two, the longer counts.
        moving: copies and swaps.
    """

    fixed: float
    matrices_computing: float
    matrices_reading: float
    attention_computing: float
    attention_reading: float
    moving: float

    @property
    def seconds(self) -> float:
        """Of the whole step: the fixed price, the longer of each pair, and what is moved."""
        return (
            self.fixed
            + max(self.matrices_computing, self.matrices_reading)
            + max(self.attention_computing, self.attention_reading)
            + self.moving
        )


class CostModel:
    """A network on a machine.

    Args:
        machine: what computes.
        network: what is computed.
    """

    def __init__(self, machine: Machine, network: Network) -> None:
        self.machine = machine
        self.network = network
        self._flops = machine.peak_flops * machine.compute_share  # a second, as are the following
        self._bytes = machine.peak_bytes * machine.memory_share
        self._read_weights = network.weight_bytes / self._bytes
        self._matrix_token = 2 * network.matrix_parameters / self._flops
        self._head_row = 2 * network.head_parameters / self._flops
        self._pair = 4 * network.attention_width / self._flops
        self._slot = network.kv_bytes_per_token / self._bytes

    def cost(self, plan: StepPlan, block_size: int) -> StepCost:
        """What the plan takes.

        Args:
            plan: of a step. One without chunks computes nothing and costs only its memory operations.
            block_size: token slots in a block.
        """
        tokens = rows = contexts = twice_pairs = 0
        for chunk in plan.chunks:
            n, start = len(chunk.token_ids), chunk.start
            tokens += n
            contexts += start + n
            twice_pairs += n * (start + start + n + 1)  # token j of the chunk sees start + j + 1 keys
            if chunk.draws:
                rows += 1
        moving = self._move(plan, block_size) if plan.memory_ops else 0.0
        if not tokens:
            return StepCost(0.0, 0.0, 0.0, 0.0, 0.0, moving)
        return StepCost(
            self.machine.step_seconds,
            tokens * self._matrix_token + rows * self._head_row,
            self._read_weights,
            twice_pairs / 2 * self._pair,
            (contexts + tokens) * self._slot,
            moving,
        )

    def _move(self, plan: StepPlan, block_size: int) -> float:
        block_bytes = block_size * self.network.kv_bytes_per_token
        over_link = self.machine.transfer_seconds + block_bytes / self.machine.link_bytes
        on_device = self.machine.transfer_seconds + 2 * block_bytes / self._bytes
        seconds = 0.0
        for operation in plan.memory_ops:
            if isinstance(operation, (SwapOut, SwapIn)):
                seconds += over_link
            elif isinstance(operation, CopyBlock):
                seconds += on_device
        return seconds


def _require_positive(record: Machine | Network, zero_allowed: tuple[str, ...] = ()) -> None:
    for field in fields(record):
        value = getattr(record, field.name)
        if isinstance(value, str):
            continue
        if not (value > 0 or (value == 0 and field.name in zero_allowed)):
            least = "at least 0" if field.name in zero_allowed else "above 0"
            raise ValueError(f"{type(record).__name__}: {field.name} is {value}; it must be {least}")


# Presets -------------------------------------------------------------------------------------------------------------

_ASSUMED = (
    "compute_share, memory_share, transfer_seconds, step_seconds: assumed, nothing was measured on this machine; "
    "they move every figure alike, whatever the policy"
)

LAPTOP = Machine(
    name="laptop CPU",
    peak_flops=4 * 3.0e9 * 2 * 8 * 2,
    peak_bytes=2 * 8 * 3.2e9,
    compute_share=0.6,
    memory_share=0.7,
    link_bytes=2 * 8 * 3.2e9 * 0.7 / 2,
    transfer_seconds=1e-6,
    step_seconds=1e-3,
    source="peak_flops: 4 cores at 3.0 GHz, each with two fused multiply-adds of eight float32 in a cycle (AVX2)\n"
    "peak_bytes: two channels of DDR4-3200, 8 bytes wide\n"
    "link_bytes: the host pool lies in the same memory, which a copy reads and writes\n" + _ASSUMED,
)  # fmt: skip

A100 = Machine(
    name="A100 40 GB",
    peak_flops=312e12,
    peak_bytes=1555e9,
    compute_share=0.5,
    memory_share=0.8,
    link_bytes=25e9,
    transfer_seconds=10e-6,
    step_seconds=2e-3,
    source="peak_flops, peak_bytes: NVIDIA A100 data sheet (40 GB), float16 tensor cores, dense\n"
    "link_bytes: PCIe 4.0 x16 carries 31.5 GB/s one way; 25 is what is left after its packets' headers, assumed\n"
    + _ASSUMED,
)

H100 = Machine(
    name="H100 SXM 80 GB",
    peak_flops=989e12,
    peak_bytes=3350e9,
    compute_share=0.5,
    memory_share=0.8,
    link_bytes=50e9,
    transfer_seconds=10e-6,
    step_seconds=2e-3,
    source="peak_flops, peak_bytes: NVIDIA H100 data sheet (SXM), bfloat16 tensor cores, dense\n"
    "link_bytes: PCIe 5.0 x16 carries 63 GB/s one way; 50 is what is left after its packets' headers, assumed\n"
    + _ASSUMED,
)

GPT2_124M = Network(
    name="GPT-2 124M, float32",
    matrix_parameters=12 * 12 * 768**2,
    head_parameters=50257 * 768,
    attention_width=12 * 768,
    kv_bytes_per_token=2 * 12 * 768 * 4,
    weight_bytes=4 * (12 * 12 * 768**2 + 50257 * 768),
    kv_cache_bytes=2 * 2**30,
    max_positions=1024,
    source="12 layers of width 768, vocabulary 50,257, context 1,024: GPT-2's config.json; 12 width^2 numbers a layer\n"
    "kv_cache_bytes: 2 GiB, chosen",
)

OPT_13B = Network(
    name="OPT-13B, float16",
    matrix_parameters=40 * 12 * 5120**2,
    head_parameters=50272 * 5120,
    attention_width=40 * 5120,
    kv_bytes_per_token=2 * 40 * 5120 * 2,
    weight_bytes=2 * (40 * 12 * 5120**2 + 50272 * 5120),
    kv_cache_bytes=12 * 2**30,
    max_positions=2048,
    source="40 layers of width 5,120, vocabulary 50,272, context 2,048: OPT-13B's config.json; 800 KiB a token\n"
    "kv_cache_bytes: PagedAttention paper (arXiv 2309.06180), table 1: 12 GB, 15.7K slots",
)

LLAMA_8B = Network(
    name="Llama 3.1 8B, bfloat16",
    matrix_parameters=32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336),
    head_parameters=128256 * 4096,
    attention_width=32 * 4096,
    kv_bytes_per_token=2 * 32 * 8 * 128 * 2,
    weight_bytes=2 * (32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336) + 128256 * 4096),
    kv_cache_bytes=55 * 10**9,
    max_positions=131072,
    source="32 layers of width 4,096, 8 KV heads of 128, three matrices of 14,336, vocabulary 128,256, context "
    "131,072: Llama 3.1 8B's config.json\n"
    "kv_cache_bytes: nine tenths of 80 GB, less 16 GB of weights, rounded down; chosen",
)

PRESETS: dict[str, tuple[Machine, Network]] = {
    "laptop-gpt2": (LAPTOP, GPT2_124M),
    "a100-opt-13b": (A100, OPT_13B),
    "h100-llama-8b": (H100, LLAMA_8B),
}


def preset(name: str) -> CostModel:
    """A network on a machine, by name.

    Args:
        name: one of `PRESETS`.

    Raises:
        ValueError: there is no such preset.
    """
    if name not in PRESETS:
        raise ValueError(f"cost model: {name!r} is no preset; there are {', '.join(PRESETS)}")
    return CostModel(*PRESETS[name])
