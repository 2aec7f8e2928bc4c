"""Walk: goes through a page as a reader would, block after block: types the shell lines, runs the Python, saves files.

What a block leaves behind, a later one may use; so a page is walked as a whole. Knows neither which pages there are
nor what else may be said of them.
"""

from __future__ import annotations

import contextlib
import io
import sys
import traceback
from collections.abc import Collection, Mapping
from pathlib import Path

from tests.docs.clone import Clone
from tests.docs.pages import Block, blocks, name_of, shell_lines


class Walk:
    """One reader on one page.

    Args:
        page: what is read.
        clone: where it is tried.
        shell: whether the shell lines are typed, or passed over.
        elsewhere: lines that somebody else runs.
        statuses: line -> its exit status, where that is not 0.
        strict: what a Python block prints must be shown, even on a page that shows no output at all.
    """

    def __init__(
        self,
        page: Path,
        clone: Clone,
        *,
        shell: bool = True,
        elsewhere: Collection[str] = (),
        statuses: Mapping[str, int] | None = None,
        strict: bool = False,
    ) -> None:
        self.page = page
        self.clone = clone
        self._shell = shell
        self._elsewhere = elsewhere
        self._statuses = statuses or {}
        self._text = page.read_text(encoding="utf-8")
        self._strict = strict or "<!-- printed -->" in self._text
        self._namespace: dict[str, object] = {"__name__": "__page__"}
        self._printed = ""
        self._saved: set[str] = set()

    def go(self) -> str:
        """All of it; returns the page's text with what was printed in the place of what it says.

        Raises:
            AssertionError: something does not do what the page says; the message has page, line and all that was said.
        """
        parts, end = [], 0
        try:
            for block in blocks(self._text):
                start, stop = block.span
                text = self._take(block)
                # Only what has changed is written: the block's own text may stand further to the right in the page.
                parts += [self._text[end:start], self._text[start:stop] if text == block.text else text]
                end = stop
        finally:
            for name in self._saved:  # the next page may save another of this name
                sys.modules.pop(Path(name).stem, None)
        assert not (self._strict and self._printed), self._at(None, f"this is printed, and not shown:\n{self._printed}")
        return "".join(parts) + self._text[end:]

    def _take(self, block: Block) -> str:
        """Returns the block's text, as it should be."""
        if block.mark("needs"):
            return block.text
        file = block.mark("file")
        if file is not None:
            path = self.clone.folder / file
            assert not path.is_symlink(), self._at(block, f"{file} is a file of the clone")
            path.write_text(block.text, encoding="utf-8")
            self._saved.add(file)
        elif block.kind == "sh" and self._shell:
            for line in shell_lines(block.text):
                if line not in self._elsewhere:
                    self._type(block, line)
        elif block.kind == "python":
            self._execute(block)
        elif "printed" in block.marks:
            printed, self._printed = self._printed, ""
            return "".join(f"{line.rstrip()}\n" for line in printed.splitlines())
        return block.text

    def _type(self, block: Block, line: str) -> None:
        done = self.clone.run(line)
        expected = self._statuses.get(line, 0)
        said = f"$ {line}\n{done.output}{done.errors}"
        assert done.status == expected, self._at(block, f"exit status {done.status}, not {expected}:\n{said}")
        assert "Traceback" not in done.errors, self._at(block, said)

    def _execute(self, block: Block) -> None:
        if self._strict:
            assert not self._printed, self._at(block, f"what is printed before it is not shown:\n{self._printed}")
        line = self._line(block)
        code = compile("\n" * (line - 1) + block.text, name_of(self.page), "exec")
        with self.clone.entered(), contextlib.redirect_stdout(io.StringIO()) as out:
            try:
                exec(code, self._namespace)
            except Exception:
                raise AssertionError(self._at(block, traceback.format_exc())) from None
        if self._strict:
            self._printed += out.getvalue()

    def _line(self, block: Block) -> int:
        return self._text.count("\n", 0, block.span[0]) + 1

    def _at(self, block: Block | None, what: str) -> str:
        where = f", line {self._line(block)}" if block is not None else ""
        return f"{name_of(self.page)}{where}: {what}"
