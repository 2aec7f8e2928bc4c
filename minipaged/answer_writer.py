"""AnswerWriter: one answer's tokens in, its text out, in pieces. It sees a stop string complete.

Knows a tokenizer and one sequence; steps no engine and ends nothing: `LLM` does, when `stopped` says so.
"""

from __future__ import annotations

from dataclasses import dataclass

from minipaged.model.stop_strings import StopStrings
from minipaged.model.tokenizer import StreamDecoder, Tokenizer
from minipaged.request import FinishReason, Sequence


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of one answer as it is written; `str(piece)` is its text. The pieces of an answer join to its text.

    Args:
        index: which of the request's n answers it belongs to.
        text: whole characters only; may be empty.
        token_ids: the tokens drawn since the last piece of this answer.
        finish_reason: set on the answer's last piece.
    """

    index: int
    text: str
    token_ids: tuple[int, ...]
    finish_reason: FinishReason | None = None

    def __str__(self) -> str:
        return self.text


class AnswerWriter:
    """Turns one sequence's tokens into text, holding back half characters and what may become a stop string."""

    def __init__(self, tokenizer: Tokenizer | None, sequence: Sequence) -> None:
        self.sequence = sequence
        self.stopped = False  # a stop string was found; it and what follows are not in the text
        self._decoder = StreamDecoder(tokenizer, sequence.request.prompt_token_ids) if tokenizer else None
        self._stop = StopStrings(sequence.request.params.stop)
        self._pieces: list[Piece] = []
        self._num_taken = 0  # pieces that a stream has taken
        self._num_read = 0  # draws that have been turned into text
        self._ended = False

    @property
    def text(self) -> str:
        return "".join(piece.text for piece in self._pieces)

    @property
    def finish_reason(self) -> FinishReason | None:
        return "stop" if self.stopped else self.sequence.finish_reason

    def read(self) -> None:
        """Turn what the sequence has drawn since the last call into a piece; the rest of the text when it has ended."""
        draws = self.sequence.draws[self._num_read :]
        ends = self.sequence.finish_reason is not None
        if self._ended or not (draws or ends):
            return
        self._num_read += len(draws)
        text = ""
        if self._decoder is not None:
            for draw in draws:
                text += self._stop.push(self._decoder.push(draw.token_id))
            if ends:
                text += self._stop.push(self._decoder.flush()) + self._stop.flush()
            self.stopped = self._stop.found
        self._ended = ends or self.stopped
        token_ids = tuple(draw.token_id for draw in draws)
        self._pieces.append(Piece(self.sequence.index, text, token_ids, self.finish_reason))

    def take(self) -> list[Piece]:
        """The pieces since the last call."""
        self.read()  # brings news only if the sequence was ended from outside any step
        pieces = self._pieces[self._num_taken :]
        self._num_taken = len(self._pieces)
        return pieces
