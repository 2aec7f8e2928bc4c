"""What it should cost to get a request's tokens back: moved over a link, or computed again. A formula, no measurement.

    moving     2 × (bytes / link + copies × seconds per copy)      out and in again
    computing  tokens × 2 × parameters / (peak × the share of it that a prompt reaches)

Copies are what the two layouts differ in. With a tensor for each layer's K and one for its V, a block is moved in
2 × layers pieces; with all of a block in one piece, in one.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Platform:
    """A model on an accelerator behind a link. Each figure says where it is from.

    Args:
        name: for a heading.
        parameters: of the model; a token costs two operations for each.
        layers, width: of the model.
        value_bytes: of one number of the cache.
        peak_flops: operations per second of the accelerator, by its data sheet.
        peak_share: what of it a long prompt reaches.
        link_bytes: bytes per second of the link, one way, by its specification.
        link_share: what of it a large copy reaches.
        copy_seconds: what each copy costs besides its bytes.
    """

    name: str
    parameters: float = 13e9
    layers: int = 40
    width: int = 5120
    value_bytes: int = 2
    peak_flops: float = 312e12
    peak_share: float = 0.55
    link_bytes: float = 15.75e9
    link_share: float = 0.8
    copy_seconds: float = 5e-6

    @property
    def token_bytes(self) -> int:
        """K and V of one token, all layers."""
        return 2 * self.layers * self.width * self.value_bytes

    @property
    def pieces(self) -> int:
        """Copies that move one block, when each layer's K and V lie by themselves."""
        return 2 * self.layers

    @property
    def compute_seconds(self) -> float:
        """To compute one token again, as part of a long prompt."""
        return 2 * self.parameters / (self.peak_flops * self.peak_share)

    def copies(self, block_size: int, num_tokens: int, *, per_layer: bool) -> int:
        """Pieces in which so many tokens are moved one way."""
        return -(-num_tokens // block_size) * (self.pieces if per_layer else 1)

    def swap_seconds(self, block_size: int, num_tokens: int, *, per_layer: bool) -> float:
        """Out and in again. The last block is moved whole."""
        moved = -(-num_tokens // block_size) * block_size * self.token_bytes
        copies = self.copies(block_size, num_tokens, per_layer=per_layer)
        return 2 * (moved / (self.link_bytes * self.link_share) + copies * self.copy_seconds)

    def recompute_seconds(self, num_tokens: int) -> float:
        """All of them again, in one forward pass."""
        return num_tokens * self.compute_seconds

    def crossing(self, *, per_layer: bool) -> float:
        """The block size above which moving is quicker than computing; infinite: it never is; below 1: it always is.

        Per token: 2 × (bytes / link + pieces × seconds per copy / block size) = seconds to compute it.
        """
        spare = self.compute_seconds / 2 - self.token_bytes / (self.link_bytes * self.link_share)
        pieces = self.pieces if per_layer else 1
        return pieces * self.copy_seconds / spare if spare > 0 else float("inf")


#: The machines of the PagedAttention paper: A100s of 40 GB in cloud servers whose processors have PCIe 3.0.
A100_PCIE3 = Platform("OPT-13B on an A100, PCIe 3.0 x16")
A100_PCIE4 = Platform("the same, PCIe 4.0 x16", link_bytes=31.5e9)
