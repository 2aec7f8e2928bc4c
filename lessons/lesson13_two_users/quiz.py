"""Quiz: what comes next, asked before it is shown. It keeps the score of right answers, and knows nothing of blocks.

Where nobody can be asked, each question is printed with its answer, and the story goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console

from lessons.runner.stage import parse_number


@dataclass(slots=True)
class Quiz:
    """Questions whose answers are numbers.

    Args:
        console: where they are asked.
        is_on: False asks nothing and prints nothing.
        asks: whether there is somebody to ask.
    """

    console: Console
    is_on: bool
    asks: bool
    num_asked: int = 0
    num_right: int = 0

    def ask(self, question: str, answer: int, because: str) -> None:
        """One question.

        Args:
            question: it can be answered with a number by who has followed so far.
            answer: the number.
            because: one sentence, said after the reader's answer, whatever it was.
        """
        if not self.is_on:
            return
        said = self._heard(question) if self.asks else None
        if said is None:
            shown = "" if self.asks else f"[bold]?[/] {question} "
            self.console.print(f"{shown}[dim]{answer}: {because}[/]", soft_wrap=True)
            return
        self.num_asked += 1
        is_right = said == answer
        self.num_right += is_right
        verdict = "[green]Right[/]" if is_right else f"[yellow]It is {answer}[/]"
        self.console.print(f"{verdict}: {because}", soft_wrap=True)

    def close(self) -> None:
        """The score."""
        if self.num_asked:
            self.console.print(f"[bold]quiz[/]   {self.num_right} of {self.num_asked} right\n")

    def _heard(self, question: str) -> float | None:
        """A number; None from a reader who skips, or who has left."""
        while True:
            try:
                said = self.console.input(f"[bold]?[/] {question} ").strip()
            except EOFError:
                self.asks = False
                self.console.print()
                return None
            if not said:
                return None
            try:
                return parse_number(said)
            except ValueError as error:
                self.console.print(f"{error}; or press Enter to see the answer")
