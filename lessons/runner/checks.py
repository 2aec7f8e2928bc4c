"""What a lesson's `check.py` says of an answer: that it is wrong, what came out, what should have, and what misled it.

A check is a function `task_N(exercise)`; it returns when task N is done well and raises `Wrong` when it is not. It
knows the module that it is given, and not whose it is: a learner's, ours, or one of the mistakes.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any


class Wrong(AssertionError):
    """An answer that is not right.

    Args:
        what: what was asked of it, as a person would say it: "after 2 holders and one free, block 3".
        got: what came out.
        expected: what should have.
        because: the misconception that makes this mistake; empty when none is known for it.
    """

    def __init__(self, what: str, got: object, expected: object, because: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.got = got
        self.expected = expected
        self.because = because


def expect(what: str, got: object, expected: object, because: str = "") -> None:
    """`got` is equal to `expected`, or the answer is wrong."""
    if _differ(got, expected):
        raise Wrong(what, got, expected, because)


def expect_whole(what: str, got: object, expected: int, because: str = "") -> None:
    """`got` is equal to `expected`, and a whole number: with 3.0 nothing can be counted off or looked up."""
    expect(what, got, expected, because)
    try:
        operator.index(got)  # type: ignore[arg-type]
    except TypeError:
        raise Wrong(f"{what} (a whole number)", f"{got!r}, a {type(got).__name__}", expected) from None


def expect_close(what: str, got: float, expected: float, because: str = "", *, relative: float = 1e-6) -> None:
    """`got` is a number and near `expected`, or the answer is wrong."""
    if not isinstance(got, (int, float)) or not math.isclose(got, expected, rel_tol=relative, abs_tol=1e-12):
        raise Wrong(what, got, expected, because)


def expect_error(what: str, error: type[Exception], call: Callable[[], Any], because: str = "") -> None:
    """The call raises `error`, or the answer is wrong."""
    try:
        got = call()
    except error:
        return
    except NotImplementedError:
        raise
    except Exception as other:
        raise Wrong(what, f"{type(other).__name__}: {other}", error.__name__, because) from other
    raise Wrong(what, f"{got!r}, and no error", error.__name__, because)


def _differ(got: object, expected: object) -> bool:
    """Also of things that cannot be compared, such as an array of three with a number: these are not equal."""
    try:
        return bool(got != expected)
    except Exception:
        return True
