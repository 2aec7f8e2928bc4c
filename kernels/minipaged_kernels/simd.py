"""Vector registers as Numba values: sixteen float32 lanes, and the dozen operations that attention needs.

Numba leaves vectorising to LLVM, which does it when it sees fit and adds up in the order it sees fit. A kernel whose
rows must have the same bits in prefill and in decode cannot leave the order open, so here a lane is a lane: `fma(a,
b, c)` is one instruction on AVX-512, two on AVX2, four on NEON, and means the same on each, since LLVM splits the
wide type itself.

Arrays are flat and contiguous and indices count elements. An array's type says what its numbers are: float32; uint16,
the bits of bfloat16 (the upper half of a float32: widened by a shift); int16, the bits of float16. numpy has no
bfloat16 and Numba no float16 on CPUs, so both come as views of the same memory.

Deliberately does not know: what the lanes hold. No bounds are checked.
"""

# Numba's functions have no types that mypy could read.
# mypy: disallow-untyped-defs=False, check-untyped-defs=False

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import carray, njit, types
from numba.extending import intrinsic, models, register_model

LANES = 16

_I16 = ir.IntType(16)
_I32 = ir.IntType(32)
_F32 = ir.FloatType()
_F32S = ir.VectorType(_F32, LANES)
_I16S = ir.VectorType(_I16, LANES)
_I32S = ir.VectorType(_I32, LANES)


class Lanes(types.Type):
    """The Numba type of a register, LLVM's <16 x float>."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager: Any, numba_type: Any) -> None:
        super().__init__(manager, numba_type, _F32S)


lanes = Lanes()


def _all(value: float | int, kind: ir.VectorType = _F32S) -> ir.Constant:
    return ir.Constant(kind, [value] * LANES)


def _pick(builder: ir.IRBuilder, a: Any, b: Any, order: list[int]) -> Any:
    """Lane i of the result is lane order[i] of a and b laid end to end."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(_I32, LANES), order))


def _call(builder: ir.IRBuilder, name: str, result: ir.Type, *arguments: Any) -> Any:
    """A call of one of LLVM's own functions, such as `llvm.fmuladd.v16f32`."""
    kind = ir.FunctionType(result, [a.type for a in arguments])
    module = builder.module
    known = module.globals.get(name)
    return builder.call(known if known is not None else ir.Function(module, kind, name), arguments)


def _address(context: Any, builder: ir.IRBuilder, array_type: Any, array: Any, index: Any) -> Any:
    """Pointer to element `index` of a contiguous array."""
    data = context.make_array(array_type)(context, builder, value=array).data
    return builder.gep(data, [index])


# -- memory ------------------------------------------------------------------------------------------------------------


def _read(builder: ir.IRBuilder, array: Any, pointer: Any, mask: Any = None) -> Any:
    """Sixteen numbers at `pointer`, widened; only those in the mask are touched, and the others are 0."""
    kind, align = (_F32S, 4) if array.dtype == types.float32 else (_I16S, 2)
    pointer = builder.bitcast(pointer, kind.as_pointer())
    if mask is None:
        bits = builder.load(pointer, align=align)
    else:
        name = "llvm.masked.load.v16f32.p0" if kind is _F32S else "llvm.masked.load.v16i16.p0"
        bits = _call(builder, name, kind, pointer, ir.Constant(_I32, align), mask, _all(0, kind))
    if array.dtype == types.float32:
        return bits
    if array.dtype == types.uint16:  # bfloat16
        return builder.bitcast(builder.shl(builder.zext(bits, _I32S), _all(16, _I32S)), _F32S)
    return builder.fpext(builder.bitcast(bits, ir.VectorType(ir.HalfType(), LANES)), _F32S)


def _write(builder: ir.IRBuilder, array: Any, pointer: Any, value: Any, mask: Any = None) -> None:
    """The lanes (those in the mask) to `pointer`, rounded to the nearest, ties to even, where the array is narrower."""
    if array.dtype == types.float32:
        bits, align = value, 4
    elif array.dtype == types.uint16:  # bfloat16: add just under half of the last kept place, and the tie's odd bit
        wide = builder.bitcast(value, _I32S)
        odd = builder.and_(builder.lshr(wide, _all(16, _I32S)), _all(1, _I32S))
        rounded = builder.lshr(builder.add(builder.add(wide, _all(0x7FFF, _I32S)), odd), _all(16, _I32S))
        is_nan = builder.fcmp_unordered("uno", value, value)  # the addition could carry a NaN over into infinity
        bits, align = builder.trunc(builder.select(is_nan, _all(0x7FC0, _I32S), rounded), _I16S), 2
    else:
        bits, align = builder.bitcast(builder.fptrunc(value, ir.VectorType(ir.HalfType(), LANES)), _I16S), 2
    pointer = builder.bitcast(pointer, bits.type.as_pointer())
    if mask is None:
        builder.store(bits, pointer, align=align)
    else:
        name = "llvm.masked.store.v16f32.p0" if bits.type is _F32S else "llvm.masked.store.v16i16.p0"
        _call(builder, name, ir.VoidType(), bits, pointer, ir.Constant(_I32, align), mask)


def _lanes_below(builder: ir.IRBuilder, count: Any) -> Any:
    """Mask of the lanes whose number is below `count`, an int32."""
    at_0 = builder.insert_element(ir.Constant(_I32S, ir.Undefined), count, ir.Constant(_I32, 0))
    everywhere = builder.shuffle_vector(at_0, at_0, _all(0, _I32S))
    return builder.icmp_signed("<", ir.Constant(_I32S, list(range(LANES))), everywhere)


@intrinsic
def load(typing_context: Any, array: Any, index: Any) -> Any:
    """Sixteen numbers from `array[index]` on, widened to float32."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        return _read(builder, array, _address(context, builder, array, *values))

    return lanes(array, types.int64), emit


@intrinsic
def load_first(typing_context: Any, count: Any, array: Any, index: Any) -> Any:
    """`count` numbers from `array[index]` on, widened to float32, and 0 in the other lanes."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        mask = _lanes_below(builder, context.cast(builder, values[0], count, types.int32))
        return _read(builder, array, _address(context, builder, array, *values[1:]), mask)

    return lanes(count, array, types.int64), emit


@intrinsic
def store(typing_context: Any, array: Any, index: Any, value: Any) -> Any:
    """Sixteen lanes to `array[index]` on, rounded to the array's kind of number."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        _write(builder, array, _address(context, builder, array, *values[:2]), values[2])
        return context.get_dummy_value()

    return types.void(array, types.int64, value), emit


@intrinsic
def store_first(typing_context: Any, count: Any, array: Any, index: Any, value: Any) -> Any:
    """The first `count` lanes to `array[index]` on; what lies behind them stays."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        mask = _lanes_below(builder, context.cast(builder, values[0], count, types.int32))
        _write(builder, array, _address(context, builder, array, *values[1:3]), values[3], mask)
        return context.get_dummy_value()

    return types.void(count, array, types.int64, value), emit


def _ask_for(keep: int, builder: ir.IRBuilder, address: Any) -> None:
    pointer = builder.bitcast(address, ir.IntType(8).as_pointer())
    _call(builder, "llvm.prefetch.p0", ir.VoidType(), pointer, *(ir.Constant(_I32, n) for n in (0, keep, 1)))


@intrinsic
def prefetch(typing_context: Any, array: Any, index: Any) -> Any:
    """Asks for the cache line of `array[index]`, to be read soon. Any index may be asked for: it faults on none."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        _ask_for(3, builder, _address(context, builder, array, *values))
        return context.get_dummy_value()

    return types.void(array, types.int64), emit


@intrinsic
def prefetch_once(typing_context: Any, array: Any, index: Any) -> Any:
    """The same for what is read once: it is not to drive out of the cache what is used again."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        _ask_for(0, builder, _address(context, builder, array, *values))
        return context.get_dummy_value()

    return types.void(array, types.int64), emit


@intrinsic
def take_ticket(typing_context: Any, counter: Any) -> Any:
    """Adds 1 to `counter[0]` (int64), atomically, and returns what it was: how threads share out a list of work."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        pointer = _address(context, builder, counter, values[0], ir.Constant(ir.IntType(64), 0))
        return builder.atomic_rmw("add", pointer, ir.Constant(ir.IntType(64), 1), "monotonic")

    return types.int64(counter), emit


@intrinsic
def pointer(typing_context: Any, address: Any, like: Any) -> Any:
    """The address (an int64) as a pointer to numbers of the kind of `like`, for `numba.carray`."""
    kind = types.CPointer(like.instance_type)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        return builder.inttoptr(values[0], context.get_value_type(kind))

    return kind(types.int64, like), emit


@njit
def flat(address, kind):
    """An array over the memory at an address. Its length is not looked at."""
    return carray(pointer(address, kind), 1)


@intrinsic
def call(typing_context: Any, function: Any, argument: Any) -> Any:
    """Calls the C function at one address with another address: void function(void *)."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        byte_pointer = ir.IntType(8).as_pointer()
        kind = ir.FunctionType(ir.VoidType(), [byte_pointer])
        builder.call(builder.inttoptr(values[0], kind.as_pointer()), [builder.inttoptr(values[1], byte_pointer)])
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), emit


# -- lane by lane ------------------------------------------------------------------------------------------------------


@intrinsic
def splat(typing_context: Any, number: Any) -> Any:
    """The same number in every lane."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        number32 = context.cast(builder, values[0], number, types.float32)
        first = builder.insert_element(ir.Constant(_F32S, ir.Undefined), number32, ir.Constant(_I32, 0))
        return _pick(builder, first, first, [0] * LANES)

    return lanes(number), emit


@intrinsic
def fma(typing_context: Any, a: Any, b: Any, c: Any) -> Any:
    """a * b + c, rounded once where the machine can (on one machine it always can or never can)."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        return _call(builder, "llvm.fmuladd.v16f32", _F32S, *values)

    return lanes(lanes, lanes, lanes), emit


@intrinsic
def add(typing_context: Any, a: Any, b: Any) -> Any:
    """a + b."""
    return lanes(lanes, lanes), lambda context, builder, signature, values: builder.fadd(*values)


@intrinsic
def sub(typing_context: Any, a: Any, b: Any) -> Any:
    """a - b."""
    return lanes(lanes, lanes), lambda context, builder, signature, values: builder.fsub(*values)


@intrinsic
def mul(typing_context: Any, a: Any, b: Any) -> Any:
    """a * b."""
    return lanes(lanes, lanes), lambda context, builder, signature, values: builder.fmul(*values)


@intrinsic
def maximum(typing_context: Any, a: Any, b: Any) -> Any:
    """The larger of a and b; b where either is NaN."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        return builder.select(builder.fcmp_ordered(">", *values), *values)

    return lanes(lanes, lanes), emit


@intrinsic
def first_lanes(typing_context: Any, count: Any, value: Any, otherwise: Any) -> Any:
    """`value` in the lanes below `count`, `otherwise` in the rest."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        mask = _lanes_below(builder, context.cast(builder, values[0], count, types.int32))
        return builder.select(mask, values[1], values[2])

    return lanes(count, lanes, lanes), emit


@intrinsic
def _scale_by_power_of_two(typing_context: Any, a: Any, power: Any, x: Any, lowest: Any) -> Any:
    """a * 2**power (whole numbers from -126 to 127), and 0 in the lanes where x < lowest."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        a, power, x, lowest = values
        biased = builder.add(builder.fptosi(power, _I32S), _all(127, _I32S))
        factor = builder.bitcast(builder.shl(biased, _all(23, _I32S)), _F32S)  # a float32's exponent begins at bit 23
        return builder.select(builder.fcmp_ordered("<", x, lowest), _all(0.0), builder.fmul(a, factor))

    return lanes(lanes, lanes, lanes, lanes), emit


@njit(forceinline=True)
def exp(x):
    """e**x to 1e-7 relative for x from -87 to 88; 0 below, -infinity included; NaN stays NaN.

    x = n ln 2 + r with |r| <= ln 2 / 2, so that e**x = 2**n e**r, and e**r is a polynomial: that of Cephes' expf.
    """
    lowest = splat(-87.0)
    inside = maximum(lowest, x)  # in this order NaN stays
    shift = splat(12582912.0)  # 1.5 * 2**23: adding it rounds to a whole number, subtracting gives that number back
    n = sub(fma(inside, splat(1.4426950408889634), shift), shift)
    r = fma(n, splat(-0.693359375), inside)  # ln 2 in two parts, the first of few bits: n times it is exact
    r = fma(n, splat(2.12194440e-4), r)
    p = splat(1.9875691500e-4)
    p = fma(p, r, splat(1.3981999507e-3))
    p = fma(p, r, splat(8.3334519073e-3))
    p = fma(p, r, splat(4.1665795894e-2))
    p = fma(p, r, splat(1.6666665459e-1))
    p = fma(p, r, splat(5.0000001201e-1))
    p = fma(p, mul(r, r), add(r, splat(1.0)))
    return _scale_by_power_of_two(p, n, x, lowest)


# -- across lanes ------------------------------------------------------------------------------------------------------


@intrinsic
def pairwise(typing_context: Any, a: Any, b: Any) -> Any:
    """Sums of neighbours: a0 + a1, a2 + a3, …, b0 + b1, …. Four levels of it turn sixteen registers into their sums."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        even = _pick(builder, values[0], values[1], list(range(0, 2 * LANES, 2)))
        odd = _pick(builder, values[0], values[1], list(range(1, 2 * LANES, 2)))
        return builder.fadd(even, odd)

    return lanes(lanes, lanes), emit


@intrinsic
def first(typing_context: Any, a: Any) -> Any:
    """Lane 0, as a float32."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        return builder.extract_element(values[0], ir.Constant(_I32, 0))

    return types.float32(lanes), emit


def _fold(builder: ir.IRBuilder, value: Any, combine: Callable[[Any, Any], Any]) -> Any:
    """Lanes 8-15 onto 0-7, then 4-7 onto 0-3, and so on, down to one."""
    half = LANES // 2
    while half:
        upper = _pick(builder, value, value, [(i + half) % LANES for i in range(LANES)])
        value = combine(value, upper)
        half //= 2
    return builder.extract_element(value, ir.Constant(_I32, 0))


@intrinsic
def total(typing_context: Any, a: Any) -> Any:
    """The sum of the lanes, always added in the same order."""
    return types.float32(lanes), lambda context, builder, signature, values: _fold(builder, values[0], builder.fadd)


@intrinsic
def highest(typing_context: Any, a: Any) -> Any:
    """The largest lane."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        return _fold(builder, values[0], lambda x, y: builder.select(builder.fcmp_ordered(">", x, y), x, y))

    return types.float32(lanes), emit
