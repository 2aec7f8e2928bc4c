"""Tokenizers of several kinds: what is streamed, joined, is what is decoded, and no piece ends in half a character."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, decoders, models, pre_tokenizers
from tokenizers import Tokenizer as Backend

from minipaged.model.tokenizer import StreamDecoder, Tokenizer

EOS = "<|endoftext|>"


def byte_level() -> Backend:
    """Each byte is a token, and some longer ones cut characters in the middle."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    mapped = {text: _to_alphabet(text) for text in ("he", "ll", " w", "你")}
    vocab = {token: i for i, token in enumerate([*alphabet, mapped["he"], mapped["ll"], mapped[" w"]])}
    first_two_bytes = mapped["你"][:2]
    vocab[first_two_bytes] = len(vocab)
    merges = [(mapped[pair][0], mapped[pair][1]) for pair in ("he", "ll", " w", "你")]
    backend = Backend(models.BPE(vocab=vocab, merges=merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens([AddedToken(EOS, special=True)])
    return backend


def byte_fallback() -> Backend:
    """As Llama's: "▁" for a space, a byte's token for what is not in the vocabulary."""
    words = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", "a", "b", "▁a", "▁b", "ab", "é", "▁▁"]
    vocab = {word: i for i, word in enumerate(words)}
    merges = [("▁", "a"), ("▁", "b"), ("a", "b"), ("▁", "▁")]
    backend = Backend(models.BPE(vocab=vocab, merges=merges, byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    steps = [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    backend.decoder = decoders.Sequence(steps)
    backend.add_special_tokens([AddedToken("</s>", special=True)])
    return backend


def metaspace() -> Backend:
    backend = Backend(models.WordLevel({"<unk>": 0, "▁a": 1, "▁b": 2, "c": 3, "▁": 4, "好": 5}, unk_token="<unk>"))
    backend.decoder = decoders.Metaspace()
    return backend


def word_piece() -> Backend:
    backend = Backend(
        models.WordPiece({"[UNK]": 0, "play": 1, "##ing": 2, "a": 3, ",": 4, "##s": 5}, unk_token="[UNK]")
    )
    backend.decoder = decoders.WordPiece()
    return backend


def bpe_suffix() -> Backend:
    backend = Backend(models.BPE(vocab={"a": 0, "b</w>": 1, "c</w>": 2, "d": 3}, merges=[], end_of_word_suffix="</w>"))
    backend.decoder = decoders.BPEDecoder()
    return backend


def wrapped_byte_level() -> Backend:
    """Bytes inside a sequence of steps: not recognised as byte-level, so the stream sees half characters as U+FFFD."""
    backend = byte_level()
    backend.decoder = decoders.Sequence([decoders.Replace("@", "!"), decoders.ByteLevel()])
    return backend


def _to_alphabet(text: str) -> str:
    return pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(text)[0][0]


TEXTS = st.text(st.sampled_from("helo w你好é🙂👩‍👧a b\n\u200d\ufffd")) | st.text()


def stream(tokenizer: Tokenizer, ids: list[int], prompt: list[int]) -> list[str]:
    decoder = StreamDecoder(tokenizer, prompt)
    return [*(decoder.push(token_id) for token_id in ids), decoder.flush()]


def complete_characters(tokenizer: Tokenizer, ids: list[int]) -> str:
    """The ids' text without a character that more bytes may complete."""
    data = b"".join(tokenizer.token_bytes(token_id) or b"" for token_id in ids if tokenizer.has_text(token_id))
    for tail in range(1, 4):
        for rest in (
            b"\x80",
            b"\xa0",
            b"\x90",
            b"\x80\x80",
            b"\xa0\x80",
            b"\x90\x80",
            b"\x80\x80\x80",
            b"\x90\x80\x80",
        ):
            try:
                if len((data[-tail:] + rest).decode()) == 1:
                    return data[:-tail].decode(errors="replace")
            except UnicodeDecodeError:
                continue
    return data.decode(errors="replace")


@pytest.mark.parametrize("make", [byte_level, wrapped_byte_level])
@given(text=TEXTS)
def test_text_survives_the_round_trip_and_the_stream(make, text: str) -> None:
    tokenizer = Tokenizer(_once(make))
    ids = tokenizer.encode(text)
    if make is byte_level:
        assert tokenizer.decode(ids) == text
        pieces = stream(tokenizer, ids, [])
        assert "".join(pieces) == text
        if "\ufffd" not in text:
            assert not any("\ufffd" in piece for piece in pieces)
    elif "\ufffd" not in text:
        assert "".join(stream(tokenizer, ids, [])) == tokenizer.decode(ids)


@given(st.data())
def test_byte_level_stream_is_decode_for_any_ids_after_any_prompt(data) -> None:
    """Also for bytes that are no character, and for prompts that end inside one."""
    tokenizer = Tokenizer(_once(byte_level))
    some_ids = st.lists(
        st.integers(0, tokenizer.vocab_size + 2) | st.sampled_from(tokenizer.encode("你🙂é")), max_size=12
    )
    prompt, ids = data.draw(some_ids), data.draw(some_ids)
    got = "".join(stream(tokenizer, ids, prompt))
    if any(tokenizer.has_text(token_id) for token_id in ids):
        assert complete_characters(tokenizer, prompt) + got == tokenizer.decode(prompt + ids)
    else:
        assert got == ""


@given(text=TEXTS, prompt=TEXTS)
def test_byte_fallback_stream_is_decode_for_valid_text(text: str, prompt: str) -> None:
    tokenizer = Tokenizer(_once(byte_fallback))
    prompt_ids, ids = tokenizer.encode("a" + prompt), tokenizer.encode(text)
    assert tokenizer.decode(prompt_ids) + "".join(stream(tokenizer, ids, prompt_ids)) == tokenizer.decode(
        prompt_ids + ids
    )


@pytest.mark.parametrize("make", [metaspace, word_piece, bpe_suffix])
@given(data=st.data())
def test_other_kinds_depend_on_the_token_before_and_agree_with_decode(make, data) -> None:
    tokenizer = Tokenizer(_once(make))
    some_ids = st.lists(st.integers(0, tokenizer.vocab_size - 1), min_size=1, max_size=8)
    prompt, ids = data.draw(some_ids), data.draw(some_ids)
    assert tokenizer.decode(prompt) + "".join(stream(tokenizer, ids, prompt)) == tokenizer.decode(prompt + ids)


def test_a_character_leaves_with_its_last_byte() -> None:
    tokenizer = Tokenizer(byte_level())
    ids = tokenizer.encode("你")
    assert len(ids) == 2  # two bytes in one token, then the third
    assert stream(tokenizer, ids, []) == ["", "你", ""]
    fallback = Tokenizer(byte_fallback())
    assert stream(fallback, fallback.encode("🙂"), []) == ["", "", "", "🙂", ""]


def test_a_prompt_that_ends_inside_a_character() -> None:
    tokenizer = Tokenizer(byte_level())
    first, last = tokenizer.encode("你")
    assert stream(tokenizer, [last, *tokenizer.encode("h")], [first]) == ["你", "h", ""]
    assert stream(tokenizer, tokenizer.encode("h"), [first]) == ["\ufffdh", ""]
    eos = tokenizer.eos_token_id
    assert eos is not None
    assert stream(tokenizer, [eos], [first]) == ["", ""]
    assert stream(tokenizer, [eos, last], [first, eos]) == ["", "你", ""]  # special tokens are not between the bytes


def test_an_unfinished_character_is_released_at_the_end() -> None:
    tokenizer = Tokenizer(byte_level())
    first, _ = tokenizer.encode("你")
    assert stream(tokenizer, [first], []) == ["", "\ufffd"]
    assert "".join(stream(tokenizer, [first, first], [])) == tokenizer.decode([first, first]) == "\ufffd\ufffd"


def test_byte_fallback_keeps_good_characters_beside_bad_bytes() -> None:
    tokenizer = Tokenizer(byte_fallback())
    ids = [*tokenizer.encode("好"), 1 + 0xFF, *tokenizer.encode("a")]
    assert "".join(stream(tokenizer, ids, [])) == "好\ufffda"


@pytest.mark.parametrize("make", [byte_level, byte_fallback, wrapped_byte_level])
def test_cost_per_token_does_not_grow(make) -> None:
    """Held-back bytes that never become a character must not pile up either."""
    tokenizer = Tokenizer(make())
    continuation = 200  # in all three, the token of one byte that begins no character
    for ids in ([continuation] * 4000, tokenizer.encode("a b" * 2000)):
        started = time.perf_counter()
        stream(tokenizer, ids, [])
        assert time.perf_counter() - started < 2.0  # a few milliseconds; re-decoding everything takes many times this
        decoder = StreamDecoder(tokenizer)
        for token_id in ids:
            decoder.push(token_id)
        assert len(decoder._context) + len(decoder._pending) < 8


@pytest.mark.parametrize("make", [byte_level, byte_fallback])
def test_ids_beyond_the_tokenizer_have_no_text(make) -> None:
    tokenizer = Tokenizer(make())
    assert (
        "".join(stream(tokenizer, [tokenizer.vocab_size + 7], [])) == tokenizer.decode([tokenizer.vocab_size + 7]) == ""
    )


def test_from_folder(tmp_path: Path) -> None:
    assert Tokenizer.from_folder(tmp_path) is None
    byte_level().save(str(tmp_path / "tokenizer.json"))
    tokenizer = Tokenizer.from_folder(tmp_path)
    assert tokenizer is not None
    assert tokenizer.eos_token_id == tokenizer.vocab_size - 1
    assert tokenizer.decode([*tokenizer.encode("hello"), tokenizer.eos_token_id]) == "hello"
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"eos_token": {"content": "he"}}))
    configured = Tokenizer.from_folder(tmp_path)
    assert configured is not None and configured.eos_token_id == tokenizer.encode("he")[0]


@pytest.mark.parametrize("name", ["tokenizer.json", "tokenizer_config.json"])
def test_an_unreadable_file_is_refused_by_name(tmp_path: Path, name: str) -> None:
    byte_level().save(str(tmp_path / "tokenizer.json"))
    (tmp_path / name).write_text("{")
    with pytest.raises(ValueError, match=name) as refusal:
        Tokenizer.from_folder(tmp_path)
    assert "\n" not in str(refusal.value)


_made: dict[str, Backend] = {}


def _once(make) -> Backend:
    return _made.setdefault(make.__name__, make())
