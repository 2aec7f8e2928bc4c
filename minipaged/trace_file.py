"""TraceWriter, TraceReader, LiveTrace: the lines of a trace in a file or in memory, and any moment of it from them.

The first line is the header, then each step has one, and now and then a keyframe stands between two; what is in them is
explained in `trace_state.py`. To get to a step, the lines are added up from the last keyframe before it. What was just
looked at is kept, so that going back step by step costs no more than going on.

    {"minipaged_trace":2,"num_blocks":24, …}
    {"step":0,"time":[0.0,0.002],"slots":[20,18],"chunks":[[0,0,0,18,0,"prefill"]],"tables":[[0,0,0,1,2,3,4]], …}
    {"step":1,"time":[0.002,0.001],"slots":[20,19],"chunks":[1],"drawn":[417]}
    {"keyframe":{"running":[[0,20,19,0,0,1,2,3,4]],"waiting":[],"nodes":[[2,0,null], …],"counts":[…]}}

A trace can be read while it is still being written: `LiveTrace` is the same over lines in memory.
"""

from __future__ import annotations

import json
import os
import stat
from abc import ABC, abstractmethod
from bisect import bisect_right
from collections import OrderedDict
from dataclasses import fields
from os import PathLike
from typing import Any, BinaryIO

from minipaged.trace import Moment, TraceHeader
from minipaged.trace_state import MAX_NUMBER, Line, OutOfOrderError, TraceState

VERSION = 2
MAX_BLOCKS = 2**24  # a pool of more is no pool; a reader makes something of each block
MAX_HEADER_BYTES = 1 << 20
# Every trace counts these, and may count more; `MemoryStats` explains them.
COUNTS = (
    "free_blocks", "evictable_blocks", "held_blocks", "host_blocks", "tokens_from_device", "tokens_from_host",
    "tokens_copied", "tokens_recomputed", "copies", "swaps_out", "swaps_in", "evictions", "drops", "bytes_moved",
)  # fmt: skip
KEPT_MOMENTS = 256  # of those looked at last
KEPT_ON_THE_WAY = 128  # of the steps before one that was sought: a timeline asks for them next, and so does going back

MAY_BE_NONE = ("num_host_blocks", "block_bytes")  # of a header's numbers; the others are at least 1

# What a line that is no trace's raises.
_DAMAGES = (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError)
_KEYFRAME = b'{"keyframe"'


class TraceWriter:
    """A file that takes a recorder's lines, each as soon as it is there. A context manager.

    Args:
        path: a file that is there is overwritten, unless another writer is at it.

    Raises:
        ValueError: the file cannot be opened for writing, or is being written.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = path
        try:
            # Without a buffer: a trace is whole up to its last line, whatever happens to the process. Emptied only
            # when it is ours alone: two runs that write to one file would leave nothing that can be read.
            self._file = open(path, "wb", buffering=0, opener=_open_whole)  # noqa: SIM115
            if stat.S_ISREG(os.fstat(self._file.fileno()).st_mode):
                if not _is_ours(self._file.fileno()):
                    self._file.close()
                    raise ValueError(f"trace {path}: it cannot be written: another run is recorded there")
                self._file.truncate()
        except OSError as error:
            raise ValueError(f"trace {path}: it cannot be written: {error.strerror}") from None

    def write(self, line: bytes) -> None:
        """A line with its newline.

        Raises:
            OSError: as from any file.
        """
        written = self._file.write(line)
        while written < len(line):
            written += self._file.write(memoryview(line)[written:])

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> TraceWriter:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __str__(self) -> str:
        return f"trace {self.path}"


def _open_whole(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_TRUNC, 0o666)


def _is_ours(descriptor: int) -> bool:
    """Takes a lock that goes with the file's being closed. Where there are no locks, everything is ours."""
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        pass
    return True


class _LineTrace(ABC):
    """A `Trace` over lines that somebody keeps. Lines may still be added."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._steps: list[int] = []  # the place of each step's line
        self._keyframes: list[int] = []  # the places of the keyframes' lines …
        self._keyframe_steps: list[int] = []  # … and how many steps come before each
        self._state: TraceState | None = None
        self._position = 0  # so many steps are in the state
        self._num_learned = 0  # so many have ever been: no keyframe behind them can be used yet
        self._kept: OrderedDict[int, Moment] = OrderedDict()

    @property
    def header(self) -> TraceHeader:
        """What stays the same all through the run."""
        assert self._state is not None, f"{self._name} has no header yet; a recorder writes it"
        return self._state.header

    def __len__(self) -> int:
        return len(self._steps)

    def moment(self, index: int) -> Moment:
        """The moment after the `index`-th recorded step, from 0.

        Raises:
            IndexError: there is no such step.
        """
        if not 0 <= index < len(self._steps):
            raise IndexError(f"{self._name} has {len(self._steps)} steps; there is no step {index}")
        if index not in self._kept:
            self._go(index + 1)
        self._kept.move_to_end(index)
        return self._kept[index]

    def _go(self, position: int, keep: int = KEPT_ON_THE_WAY) -> None:
        """Bring the state to where so many steps are in it, and keep the moments of the last few."""
        state = self._state
        assert state is not None
        nearest = bisect_right(self._keyframe_steps, min(position - 1, self._num_learned)) - 1
        start = self._keyframe_steps[nearest] if nearest >= 0 else 0
        if not start <= self._position < position:
            self._state = state = TraceState(state.header, state.count_names, state.facts)
            if nearest >= 0:
                state.restore(self._read(self._keyframes[nearest])["keyframe"])
            self._position = start
        while self._position < position:
            record = state.apply(self._read(self._steps[self._position]))
            if self._position >= position - keep:
                self._kept[self._position] = state.moment(record)
                if len(self._kept) > KEPT_MOMENTS:
                    self._kept.popitem(last=False)
            self._position += 1
            self._num_learned = max(self._num_learned, self._position)

    def _begin(self, line: bytes) -> None:
        """The header.

        Raises:
            ValueError: it is none, or one of a version that is not known here.
        """
        try:
            found = json.loads(line)
            version = found.pop("minipaged_trace")
        except (ValueError, AttributeError, TypeError, KeyError, RecursionError):
            raise ValueError(f"{self._name}, line 1: this is not a minipaged trace") from None
        if type(version) is not int or version != VERSION:
            raise ValueError(
                f"{self._name}: its version is {ascii(version)[:40]}; this program reads version {VERSION}"
            )
        names = found.pop("counts", None)
        description = found.pop("description", None)
        least = {field.name: int(field.name not in MAY_BE_NONE) for field in fields(TraceHeader)}
        del least["description"]
        if (
            found.keys() != least.keys()
            or not (isinstance(names, list) and all(isinstance(name, str) for name in names))
            or not set(COUNTS) <= set(names)
            or len(set(names)) < len(names)
            or not all(type(found[name]) is int and least[name] <= found[name] <= MAX_NUMBER for name in least)
            or max(found["num_blocks"], found["num_host_blocks"]) > MAX_BLOCKS
            or not isinstance(description, str)
        ):
            raise ValueError(f"{self._name}, line 1: the header is damaged")
        self._state = TraceState(TraceHeader(**found, description=description), names)

    def _add(self, line: bytes, place: int) -> None:
        """Note a further line."""
        if line.startswith(_KEYFRAME):
            self._keyframes.append(place)
            self._keyframe_steps.append(len(self._steps))
        else:
            self._steps.append(place)

    @abstractmethod
    def _read(self, place: int) -> Line: ...


class LiveTrace(_LineTrace):
    """A trace in memory that can be looked at while a recorder writes to it."""

    def __init__(self) -> None:
        super().__init__("the live trace")
        self.lines: list[bytes] = []  # as a file would have them

    def write(self, line: bytes) -> None:
        """A line from a recorder."""
        self.lines.append(line)
        if len(self.lines) == 1:
            self._begin(line)
        else:
            self._add(line, len(self.lines) - 1)

    def __str__(self) -> str:
        return self._name

    def _read(self, place: int) -> Line:
        line: Line = json.loads(self.lines[place])
        return line


class TraceReader(_LineTrace):
    """A trace in a file, as it is when it is opened. A context manager.

    Args:
        path: the file.

    Attributes:
        notice: one line when the last line is cut off, as after a crash; the steps before it can be seen. Else None.

    Raises:
        ValueError: it cannot be read, is no trace, is of another version, or is damaged; the message names the line.
            From `moment`: somebody has overwritten it meanwhile. Lines that are added do no harm.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        super().__init__(f"trace {path}")
        self.notice: str | None = None
        self._is_open = False  # all of it was read once
        try:
            self._file: BinaryIO = open(path, "rb")  # noqa: SIM115
        except OSError as error:
            raise ValueError(f"{self._name}: it cannot be read: {error.strerror}") from None
        try:
            self._open()
        except BaseException:
            self._file.close()
            raise
        self._is_open = True

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> TraceReader:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def _open(self) -> None:
        """Find every line, and read each once: what is wrong is said now, and not in the middle of the show."""
        try:
            self._begin(self._file.readline(MAX_HEADER_BYTES))
            place = self._file.tell()
            for line in self._file:
                if not line.endswith(b"\n") and not _is_whole(line):
                    self.notice = f"{self._name}: the last line is cut off; there are {len(self._steps)} whole steps"
                    break
                self._add(line, place)
                place += len(line)
        except OSError as error:
            raise ValueError(f"{self._name}: it cannot be read: {error.strerror}") from None
        keyframes = dict(zip(self._keyframe_steps, self._keyframes, strict=True))
        number = 1
        for position in range(len(self._steps) + 1):
            try:
                if position:
                    number += 1
                    self._go(position, keep=0)
                if position in keyframes:
                    number += 1
                    self._require_keyframe(keyframes[position])
            except OutOfOrderError as error:
                raise ValueError(f"{self._name}, line {number}: {error}") from None
            except _DAMAGES as error:
                what = f"there is no {error}" if isinstance(error, KeyError) else " ".join(str(error).split())
                raise ValueError(f"{self._name}, line {number}: this is not a line of a trace ({what})") from None

    def _go(self, position: int, keep: int = KEPT_ON_THE_WAY) -> None:
        try:
            super()._go(position, keep)
        except _DAMAGES:
            if not self._is_open:
                raise
            raise ValueError(f"{self._name}: it was overwritten while it was being read") from None

    def _require_keyframe(self, place: int) -> None:
        """Refuse one that does not say what the lines before it add up to."""
        assert self._state is not None
        if self._read(place) != {"keyframe": self._state.keyframe()}:
            raise ValueError("the keyframe is not what the steps before it add up to")

    def _read(self, place: int) -> Any:
        self._file.seek(place)
        return json.loads(self._file.readline())


def _is_whole(line: bytes) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True
