"""The layer for few rows: oneDNN's bits from oneDNN's memory, or a refusal."""

import pytest
import torch
from minipaged_kernels.cpu_linear import PANEL, PackedWeight

from minipaged.model.packed_linear import available

pytestmark = pytest.mark.skipif(not available(torch.float32), reason="this torch packs no weights here")


def pack(weight: torch.Tensor) -> torch.Tensor:
    return torch.ops.mkldnn._reorder_linear_weight(weight, None)


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(
    ("outputs", "inputs"), [(64, 64), (1, 16), (100, 48), (65, 512), (129, 528), (200, 1024), (96, 1600), (128, 3072)]
)
def test_a_row_has_the_bits_that_it_has_in_a_large_batch(outputs: int, inputs: int, bias: bool) -> None:
    torch.manual_seed(outputs + inputs)
    weight = torch.randn(outputs, inputs)
    packed = pack(weight)
    of_outputs = torch.randn(outputs) if bias else None
    layer = PackedWeight.read(packed, weight, of_outputs)
    if layer is None:
        pytest.skip("oneDNN packs or adds differently here")
    x = torch.randn(40, inputs)
    expected = torch.ops.mkldnn._linear_pointwise(x, packed, of_outputs, "none", [], "")
    for rows in (1, 2, 3, 4, 7, 40):
        assert torch.equal(layer.multiply(x[:rows]), expected[:rows])
    assert torch.equal(layer.multiply(x[5:6]), expected[5:6])
    wide = torch.randn(2, 2 * inputs)
    assert torch.equal(layer.multiply(wide[:, ::2]), layer.multiply(wide[:, ::2].contiguous()))


def test_it_is_right() -> None:
    torch.manual_seed(0)
    weight, bias, x = torch.randn(70, 768), torch.randn(70), torch.randn(2, 768)
    layer = PackedWeight.read(pack(weight), weight, bias)
    if layer is None:
        pytest.skip("oneDNN packs or adds differently here")
    expected = (x.double() @ weight.double().T + bias.double()).float()
    torch.testing.assert_close(layer.multiply(x), expected, atol=2e-4, rtol=0)


def test_another_weight_in_the_memory_is_noticed() -> None:
    """One number of the last panel: what is read there is not what the layer is told that it is."""
    weight = torch.randn(2 * PANEL, 64)
    packed, theirs = pack(weight), torch.ops.mkldnn._linear_pointwise
    if PackedWeight.read(packed, weight, None) is None:
        pytest.skip("oneDNN packs or adds differently here")
    changed = weight.clone()
    changed[-1, -1] += 1
    other = pack(changed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(torch.ops.mkldnn, "_linear_pointwise", lambda x, _, *rest: theirs(x, other, *rest))
        assert PackedWeight.read(packed, weight, None) is None


def test_other_dtypes_are_left_to_onednn() -> None:
    weight = torch.randn(64, 64, dtype=torch.bfloat16)
    if not available(torch.bfloat16):
        pytest.skip("this torch packs no bfloat16 weights here")
    assert PackedWeight.read(pack(weight), weight, None) is None
