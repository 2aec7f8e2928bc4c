"""Player: what each key does. Where in a trace one stands, how fast time goes, and what is selected.

Pure: it knows no terminal and no clock, and it steps no engine; it says when a step is due. Two things can be played: a
run that is over, whose steps are shown one after the other, and a live one, which is made while it is shown. In a live
run the newest step is followed, until a key goes back; the engine goes on meanwhile, and `G` returns to now.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from minipaged.plan import CopyBlock, SwapIn, SwapOut
from minipaged.trace import Trace
from minipaged.viz.dashboard import PANELS, View
from minipaged.viz.theme import name, sequence_named

SPEEDS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, math.inf)  # steps per second
MAX_BACKLOG_STEPS = 32  # a machine that is too slow for the speed does not try to catch up later
MAX_SEARCH_STEPS = 2000  # that one press of `]` or `[` looks through: a moment's work, however long the run
NUM_LAST_STEPS = 16
MESSAGE_SECONDS = 4.0  # how long the last key's message stays, unless another key comes

HELP = (
    ("space", "pause, and go on"),
    ("→ n  ← p", "a step forward, a step back"),
    ("g  G", "the first step; the last, which is now"),
    ("+  -", "faster, slower"),
    ("]  [", "next, previous preemption, eviction, swap or copy"),
    ("↑  ↓", "follow the sequence above, below"),
    ("A … Z", "follow that sequence, or let it go (for G: /G)"),
    ("/", "follow a sequence by name, a block by number"),
    ("esc", "follow nobody"),
    ("enter", "the life of what is followed, and back"),
    ("tab", "the next panel"),
    ("t", "the answers, shown or hidden"),
    ("?", "this help"),
    ("q", "quit"),
)


@dataclass
class Player:
    """The state of a show.

    Args:
        trace: what is shown; it may grow.
        live: an engine can still make steps.
        speed: steps per second; the keys choose among `SPEEDS`.
        paused: time stands still.
        index: the step that is shown.
        view: what is selected.
        has_texts: there are answers that could be shown.
    """

    trace: Trace
    live: bool = False
    speed: float = 8.0
    paused: bool = False
    index: int = 0
    view: View = field(default_factory=View)
    has_texts: bool = False
    following: bool = True  # in a live run, the newest step is shown as it comes
    help: bool = False
    texts: bool = True
    typed: str | None = None  # what was typed behind `/` so far
    message: str = ""  # what the last key met with
    quit: bool = False
    _due: float = field(default=0.0, compare=False)  # steps, as time has brought them
    _asked: int = field(default=0, compare=False)  # steps that a key has asked a paused engine for
    _told_seconds: float = field(default=0.0, compare=False)  # since the last key
    _num_searched: int = field(default=0, compare=False)  # steps in which `_has_come` has looked, from the first on
    _newest_sequence: int = field(default=-1, compare=False)

    # Time ------------------------------------------------------------------------------------------------------------

    @property
    def last(self) -> int:
        """The index of the newest step; 0 when there is none yet."""
        return max(0, len(self.trace) - 1)

    @property
    def ended(self) -> bool:
        """Nothing more will come, and the last step is shown."""
        return not self.live and self.index >= self.last

    def pass_time(self, seconds: float) -> None:
        """Lets time pass: steps become due, and those of a run that is over are shown."""
        self._told_seconds += seconds
        if self._told_seconds > MESSAGE_SECONDS:
            self.message = ""
        if self.paused:
            self._due = 0.0
        elif seconds > 0:
            self._due = min(self._due + seconds * self.speed, MAX_BACKLOG_STEPS)
        if not self.live:
            whole = math.floor(self._due)
            self._due -= whole
            self.index = min(self.index + whole, self.last)

    @property
    def seconds_to_next(self) -> float:
        """When time should pass again, at the latest; infinite when only a key can bring something new."""
        if self._asked or (not self.paused and self._due >= 1):
            return 0.0
        if self.paused or self.ended:
            return math.inf
        return (1 - self._due) / self.speed

    def take_step(self) -> bool:
        """Whether the engine is to make a step now; each that is due is given once."""
        if not self.live:
            return False
        if self._asked:
            self._asked -= 1
            return True
        if not self.paused and self._due >= 1:
            self._due -= 1
            return True
        return False

    def stepped(self) -> None:
        """The trace has grown."""
        if self.following:
            self.index = self.last

    def end_live(self) -> None:
        """The engine has no work left: what is there can be played like any run that is over."""
        self.live = False
        self.paused = self.paused or not self.following  # who looks at the past is not carried away from it
        self.following = False

    # Keys ------------------------------------------------------------------------------------------------------------

    def press(self, key: str) -> None:
        """Does what a key is for; any other key does nothing."""
        self.message = ""
        self._told_seconds = 0.0
        if self.typed is not None:
            self._type(key)
        elif self.help:
            self.help = False
            self.quit = key == "q"
        elif action := _ACTIONS.get(key):
            action(self)
        elif len(key) == 1 and key.isascii() and key.isupper():
            self._follow(key)

    def _pause(self) -> None:
        if not self.paused and self.ended:  # again from the beginning
            self._go(0)
        else:
            self.paused = not self.paused

    def _forward(self) -> None:
        self.paused = self.paused or not self.live
        if self.index < self.last:
            self._go(self.index + 1)
        elif self.live:
            self.paused = True
            self.following = True
            self._asked += 1
        else:
            self.message = "this is the last step"

    def _back(self) -> None:
        self.paused = self.paused or not self.live
        if self.index:
            self._go(self.index - 1)
        else:
            self.message = "this is the first step"

    def _go(self, index: int) -> None:
        self.index = index
        self.following = self.live and index == self.last
        if not self.live:
            self._due = 0.0

    def _change_speed(self, by: int) -> None:
        others = [speed for speed in SPEEDS if (speed > self.speed if by > 0 else speed < self.speed)]
        if others:
            self.speed = others[0] if by > 0 else others[-1]
            self._due = min(self._due, 1.0)

    def _jump(self, by: int) -> None:
        """To the nearest step, in that direction, in which blocks were given up, moved or copied."""
        index = self.index + by
        while 0 <= index < len(self.trace):
            is_found = is_telling(self.trace, index)
            if is_found or abs(index - self.index) == MAX_SEARCH_STEPS:
                if not is_found:
                    self.message = f"nothing in these {MAX_SEARCH_STEPS} steps; press it again to search on"
                self.paused = self.paused or not self.live
                self._go(index)
                return
            index += by
        self.message = f"no preemption, eviction, swap or copy {'after' if by > 0 else 'before'} this step"

    # What is selected ------------------------------------------------------------------------------------------------

    def _follow(self, text: str) -> None:
        """A sequence by its name, or a block by its number; what is followed already is let go."""
        view = self.view
        if text.isdecimal():
            block = int(text)
            if block >= self.trace.header.num_blocks:
                self.message = f"there is no block {block}; they are 0 to {self.trace.header.num_blocks - 1}"
            else:
                self.view = replace(view, block=None if view.block == block else block, sequence=None)
            return
        sequence = sequence_named(text)
        if sequence is None or not self._has_come(sequence):
            self.message = f"there is no sequence {text} yet" if sequence is not None else f"{text!r} names nothing"
        else:
            self.view = replace(view, sequence=None if view.sequence == sequence else sequence, block=None)

    def _has_come(self, sequence: int) -> bool:
        """Whether there has been such a sequence; ids are given in the order of arrival.

        The step that is shown or the last ones nearly always answer it; all are looked through only for one who never
        came, and only once.
        """
        end = len(self.trace)
        recent = [self.index, *range(end - 1, max(end - 1 - NUM_LAST_STEPS, self._num_searched - 1), -1)] if end else []
        for index in recent:
            if sequence > self._newest_sequence:
                self._note_newest(index)
        while sequence > self._newest_sequence and self._num_searched < end:
            self._note_newest(self._num_searched)
            self._num_searched += 1
        return sequence <= self._newest_sequence

    def _note_newest(self, index: int) -> None:
        moment = self.trace.moment(index)
        ids = [state.sequence for state in (*moment.running, *moment.waiting)]
        ids += [event.sequence for event in moment.record.events]
        self._newest_sequence = max(self._newest_sequence, *ids, -1)

    def _select(self, by: int) -> None:
        """The next of those that are here."""
        if not len(self.trace):
            return
        moment = self.trace.moment(self.index)
        present = [state.sequence for state in (*moment.running, *moment.waiting)]
        if not present:
            self.message = "nobody is here"
            return
        place = present.index(self.view.sequence) + by if self.view.sequence in present else min(by, 0)
        self.view = replace(self.view, sequence=present[place % len(present)], block=None)

    def _let_go(self) -> None:
        self.view = replace(self.view, sequence=None, block=None)

    def _turn(self, by: int) -> None:
        panel = PANELS[(PANELS.index(self.view.panel) + by) % len(PANELS)]
        self.view = replace(self.view, panel=panel)

    def _tell_life(self) -> None:
        self.view = replace(self.view, panel=PANELS[0] if self.view.panel == "life" else "life")

    def _type(self, key: str) -> None:
        assert self.typed is not None
        if key == "enter":
            text, self.typed = self.typed.strip(), None
            if text:
                self._follow(text)
        elif key == "escape" or (key == "backspace" and not self.typed):
            self.typed = None
        elif key == "backspace":
            self.typed = self.typed[:-1]
        elif len(key) == 1 and key.isprintable() and len(self.typed) < 12:
            self.typed += key

    def _begin_typing(self) -> None:
        self.typed = ""

    def _toggle_help(self) -> None:
        self.help = not self.help

    def _toggle_texts(self) -> None:
        if self.has_texts:
            self.texts = not self.texts
        else:
            self.message = "there are no texts in a trace"

    def _quit(self) -> None:
        self.quit = True

    # What the footer says ---------------------------------------------------------------------------------------------

    @property
    def state(self) -> str:
        """One or two words: what time is doing."""
        if self.live and not self.following:
            return "the past, engine paused" if self.paused else "the past, engine runs on"
        if self.paused:
            return "paused"
        return "over" if self.ended else "live" if self.live else "playing"

    @property
    def followed(self) -> str:
        """What is followed, by name; empty for nothing."""
        if self.view.sequence is not None:
            return f"follows {name(self.view.sequence)}"
        return f"follows block {self.view.block}" if self.view.block is not None else ""


def is_telling(trace: Trace, index: int) -> bool:
    """Whether something was preempted, evicted, swapped or copied in a step."""
    moment = trace.moment(index)
    if any(isinstance(operation, (SwapOut, SwapIn, CopyBlock)) for operation in moment.record.operations):
        return True
    if any(event.kind == "preempt" for event in moment.record.events):
        return True
    evictions = moment.counts["evictions"]  # one whose content was on the host already, or is lost, moves nothing
    return evictions > (trace.moment(index - 1).counts["evictions"] if index else 0)


_ACTIONS: dict[str, Callable[[Player], None]] = {
    " ": Player._pause,
    "n": Player._forward,
    "right": Player._forward,
    "p": Player._back,
    "left": Player._back,
    "g": lambda player: player._go(0),
    "home": lambda player: player._go(0),
    "G": lambda player: player._go(player.last),
    "end": lambda player: player._go(player.last),
    "+": lambda player: player._change_speed(+1),
    "=": lambda player: player._change_speed(+1),
    "-": lambda player: player._change_speed(-1),
    "]": lambda player: player._jump(+1),
    "[": lambda player: player._jump(-1),
    "down": lambda player: player._select(+1),
    "up": lambda player: player._select(-1),
    "/": Player._begin_typing,
    "escape": Player._let_go,
    "enter": Player._tell_life,
    "tab": lambda player: player._turn(+1),
    "shift-tab": lambda player: player._turn(-1),
    "t": Player._toggle_texts,
    "?": Player._toggle_help,
    "q": Player._quit,
}


if __name__ == "__main__":  # python -m minipaged.viz.player
    from minipaged.viz.example import example_trace

    player = Player(example_trace())
    for key in ("]", "n", "n", "A", "enter", "+", "G", " "):
        player.press(key)
        told = f"{player.state}, {player.view.panel}, {player.speed:g}/s  {player.followed}"
        print(f"{key!r:8} step {player.index:2}  {told}")
