"""Answers: the texts as they grow, a line for each sequence; at any step of a run, past or present.

It takes records and a way to turn token ids into text. It knows no tokenizer, and no engine.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from minipaged.trace import Trace
from minipaged.viz.picture import Picture, heading
from minipaged.viz.theme import Theme, letter

Decode = Callable[[Sequence[int]], str]

TITLE_CELLS = 28


@dataclass(slots=True)
class _Answer:
    """What one sequence has drawn, and where in the trace."""

    title: str = ""
    tokens: list[int] = field(default_factory=list)
    indices: list[int] = field(default_factory=list)  # of the step that drew each token
    ended_index: int | None = None


class Answers:
    """Collects the drawn tokens of a trace as it grows.

    Args:
        trace: a run.
        decode: token ids to text.
    """

    def __init__(self, trace: Trace, decode: Decode) -> None:
        self._trace = trace
        self._decode = decode
        self._answers: dict[int, _Answer] = {}  # by sequence id
        self._num_read = 0  # steps of the trace

    def text(self, sequence: int, index: int) -> str:
        """What a sequence had written when the `index`-th step was done; an unfinished character is left out."""
        self._read()
        answer = self._answers.get(sequence, _Answer())
        return self._decode(answer.tokens[: bisect_right(answer.indices, index)]).rstrip("\ufffd")

    def picture(self, index: int, followed: int | None, width: int, height: int, theme: Theme) -> Picture:
        """At most `height` lines: those that are here, oldest first, then those that ended last."""
        self._read()
        moment = self._trace.moment(index)
        here = [state.sequence for state in sorted((*moment.running, *moment.waiting), key=lambda s: s.sequence)]
        ended = [
            (answer.ended_index, sequence)
            for sequence, answer in self._answers.items()
            if answer.ended_index is not None and answer.ended_index <= index
        ]
        rows = [*here, *(sequence for _, sequence in sorted(ended, reverse=True))]
        if followed in rows[height - 1 :]:
            rows.insert(0, rows.pop(rows.index(followed)))
        running = {state.sequence for state in moment.running}
        lines = [heading("answers", f"{len(ended)} done", theme, width)]
        for sequence in rows[: height - 1]:
            lines.append(self._line(sequence, index, sequence in running, sequence in here, width, theme))
        return Picture(lines).fitted(width, height)

    def _line(self, sequence: int, index: int, running: bool, is_here: bool, width: int, theme: Theme) -> Text:
        cells = min(TITLE_CELLS, width // 3)
        title = theme.cut(self._answers[sequence].title, cells)
        state = "decode" if running else "waits" if is_here else "ended"
        mark = {"decode": theme.glyphs.decode, "waits": theme.glyphs.preempted, "ended": " "}[state]
        text = last_cells(theme.text(self.text(sequence, index)), width - cells - 6)
        owner, quiet = theme.owner(sequence), theme.role("quiet")
        return Text.assemble(
            (letter(sequence), owner),
            " ",
            (mark, theme.role("decode") if running else theme.role("warning")),
            " ",
            (title + " " * (cells - cell_len(title)), quiet if state == "ended" else ""),
            "  ",
            (text, quiet if state == "ended" else owner),
        )

    def _read(self) -> None:
        """What has been recorded since the last call."""
        for index in range(self._num_read, len(self._trace)):
            moment = self._trace.moment(index)
            for state in (*moment.running, *moment.waiting):
                self._answers.setdefault(state.sequence, _Answer()).title = state.title
            for sequence, token in moment.record.drawn:
                answer = self._answers.setdefault(sequence, _Answer())
                answer.tokens.append(token)
                answer.indices.append(index)
            for event in moment.record.events:
                if event.kind == "finish" and event.sequence in self._answers:
                    self._answers[event.sequence].ended_index = index
        self._num_read = len(self._trace)


def last_cells(text: str, cells: int) -> str:
    """The end of a text, on one line, no wider than `cells`."""
    line = " ".join(text[-2 * cells :].split())
    while cell_len(line) > cells:
        line = line[max(1, (cell_len(line) - cells) // 2) :]
    return line


if __name__ == "__main__":  # python -m minipaged.viz.answers
    from minipaged.viz.show import show

    def words(token_ids: Sequence[int]) -> str:
        """The example's model has no words; these are as good."""
        return " ".join(f"word{token_id}" for token_id in token_ids)

    show(lambda history, index, theme, width: Answers(history, words).picture(index, None, width, 12, theme))
