"""Tokenizer (text to token ids and back) and StreamDecoder (token ids to text, one by one, never half a character).

A thin layer over Hugging Face's `tokenizers`. Does not know of stop strings, requests or the model.

Why streaming is not `decode` of each token: a token may hold only some bytes of a character, and a token's text may
depend on the one before it (a space at the front of a word is dropped at the start of a text). And not `decode` of all
tokens so far either: that is quadratic in the length of the answer.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

import tokenizers

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_LONGEST_CHARACTER = 4  # bytes, in UTF-8
_END_OF_TEXT = ("<|endoftext|>", "</s>")  # what a folder without tokenizer_config.json is likely to mean


class Tokenizer:
    """Text to token ids and back.

    Args:
        backend: Hugging Face's tokenizer object.
        eos: the text of the end-of-text token; None looks for the usual ones.
    """

    def __init__(self, backend: tokenizers.Tokenizer, eos: str | None = None) -> None:
        self.backend = backend
        names = _END_OF_TEXT if eos is None else (eos,)
        ids = [token_id for name in names if (token_id := backend.token_to_id(name)) is not None]
        self.eos_token_id = ids[0] if ids else None
        self._special = {i for i, token in backend.get_added_tokens_decoder().items() if token.special}
        self._byte_level, self._byte_fallback = _kind_of_decoder(backend)

    @classmethod
    def from_folder(cls, folder: str | Path) -> Tokenizer | None:
        """The tokenizer of a model's folder, or None when it holds no `tokenizer.json`: then only token ids work.

        Args:
            folder: in the Hugging Face format.

        Raises:
            ValueError: the file is there but cannot be read; the message names it.
        """
        path = Path(folder) / "tokenizer.json"
        if not path.exists():
            return None
        try:
            backend = tokenizers.Tokenizer.from_file(str(path))
        except Exception as error:  # `tokenizers` raises bare Exception
            raise ValueError(f"{path}: cannot be read as a tokenizer ({error})") from None
        return cls(backend, _configured_eos(path.with_name("tokenizer_config.json")))

    @property
    def vocab_size(self) -> int:
        """Tokens, the added ones included."""
        return self.backend.get_vocab_size()

    def encode(self, text: str) -> list[int]:
        """The token ids of a text."""
        return self.backend.encode(text).ids

    def decode(self, token_ids: Iterable[int]) -> str:
        """The text of token ids. Special tokens are left out; bytes that are no character become U+FFFD."""
        return self.backend.decode(list(token_ids), skip_special_tokens=True)

    def stream(self, prompt_token_ids: Sequence[int] = ()) -> StreamDecoder:
        """A decoder of one answer, token by token.

        Args:
            prompt_token_ids: what the answer goes on from.
        """
        return StreamDecoder(self, prompt_token_ids)

    def has_text(self, token_id: int) -> bool:
        """False for special tokens and for ids that the tokenizer does not know (models pad their vocabulary)."""
        return token_id not in self._special and self.backend.id_to_token(token_id) is not None

    def token_bytes(self, token_id: int) -> bytes | None:
        """The bytes that a token stands for, or None where it stands for text."""
        token = self.backend.id_to_token(token_id) or ""
        if self._byte_level:
            # As the decoder does: a token with a character outside the alphabet (an added one) stands for itself.
            try:
                return bytes(_BYTE_OF[character] for character in token)
            except KeyError:
                return token.encode()
        if self._byte_fallback and len(token) == 6 and token.startswith("<0x") and token.endswith(">"):
            return bytes.fromhex(token[3:5])
        return None


class StreamDecoder:
    """One answer's text, as its tokens arrive.

    The text is that of prompt and answer together, less the complete characters of the prompt. So where a prompt ends
    inside a character, the answer's first piece begins with that character, if the answer completes it. If the answer
    goes on otherwise, U+FFFD stands in its place; if the answer has no text at all, there is none.

    Joined, the pieces are `decode`'s text. One exception: `decode` gives up a whole run of byte-fallback tokens
    (`<0xE4>`) for one wrong byte in it, while here its good characters, which have already left, stay.

    The work per token does not grow with the answer's length.

    Args:
        tokenizer: whose tokens come.
        prompt_token_ids: what the answer goes on from.
    """

    def __init__(self, tokenizer: Tokenizer, prompt_token_ids: Sequence[int] = ()) -> None:
        self._tokenizer = tokenizer
        self._utf8 = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._context: list[int] = []  # the last token with text, once its text has left
        self._pending: list[int] = []  # tokens whose text may still change; not used for tokens that stand for bytes
        self._has_text = False
        # No more of the prompt matters than the tokens that can hold its last, unfinished character.
        tail: list[int] = []
        for token_id in reversed(prompt_token_ids):
            if tokenizer.has_text(token_id):
                tail.append(token_id)
            if len(tail) == _LONGEST_CHARACTER:
                break
        for token_id in reversed(tail):
            self._take(token_id)

    def push(self, token_id: int) -> str:
        """Takes the next token; returns the text that is certain by now, often one token's, sometimes none."""
        if not self._tokenizer.has_text(token_id):
            return ""
        self._has_text = True
        return self._take(token_id)

    def flush(self) -> str:
        """The answer is over: what was held back leaves, bytes that are no character as U+FFFD."""
        rest = self._utf8.decode(b"", final=True) + self._settle()
        return rest if self._has_text else ""

    def _take(self, token_id: int) -> str:
        data = self._tokenizer.token_bytes(token_id)
        if data is not None:
            piece = self._settle() + self._utf8.decode(data)
            self._context = [token_id]
            return piece
        piece = self._utf8.decode(b"", final=True)  # text follows, so an unfinished character stays unfinished
        self._pending.append(token_id)
        # A decoder of another kind may also make half characters, and would show them as U+FFFD at the end.
        if self._pending_text().endswith(_REPLACEMENT) and len(self._pending) < _LONGEST_CHARACTER:
            return piece
        return piece + self._settle()

    def _settle(self) -> str:
        """The pending tokens' text, as it stands."""
        if not self._pending:
            return ""
        text = self._pending_text()
        self._context, self._pending = self._pending[-1:], []
        return text

    def _pending_text(self) -> str:
        """What the pending tokens add to the text of the token before them."""
        before = self._tokenizer.decode(self._context)
        return self._tokenizer.decode(self._context + self._pending).removeprefix(before)


def _byte_alphabet() -> dict[str, int]:
    """GPT-2's byte-level alphabet, character to byte: printable bytes are themselves, the others follow from U+0100."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(others)}


_BYTE_OF = _byte_alphabet()


def _kind_of_decoder(backend: tokenizers.Tokenizer) -> tuple[bool, bool]:
    """(every token stands for bytes, tokens such as `<0xE4>` stand for a byte)."""
    if backend.decoder is None:
        return False, False
    description = json.loads(backend.decoder.__getstate__())  # its part of tokenizer.json
    steps = description["decoders"] if description["type"] == "Sequence" else [description]
    kinds = [step["type"] for step in steps]
    return kinds == ["ByteLevel"], "ByteFallback" in kinds


def _configured_eos(path: Path) -> str | None:
    """`eos_token` of tokenizer_config.json, where there is one: a string, or an object with the string as `content`."""
    try:
        eos = json.loads(path.read_text(encoding="utf-8")).get("eos_token")
    except FileNotFoundError:
        return None
    except (OSError, ValueError, AttributeError) as error:
        raise ValueError(f"{path}: cannot be read as JSON ({error})") from None
    content = eos.get("content") if isinstance(eos, dict) else eos
    return content if isinstance(content, str) else None
