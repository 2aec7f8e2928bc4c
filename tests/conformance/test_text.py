"""Conformance 23 and 24: what leaves of an answer's text, through the public door."""

from __future__ import annotations

from minipaged import LLM
from tests.scripted import scripted


def test_23_a_stop_string_never_leaves(llm: LLM) -> None:
    text, pieces, reason = scripted(llm, "hello there, hello world. STOP and more", stop=("STOP",))
    assert (text, reason) == ("hello there, hello world. ", "stop")
    assert not any("S" in piece for piece in pieces), "not even its beginning"


def test_23_what_only_began_like_one_leaves(llm: LLM) -> None:
    assert scripted(llm, "the STO hat", stop=("STOP",))[0] == "the STO hat"
    assert scripted(llm, "the STOSTO", stop=("STOP",))[0] == "the STOSTO", "also at the very end"


def test_23_a_stop_string_inside_one_token(llm: LLM) -> None:
    assert any("he" in llm.tokenizer.decode([id]).strip()[:-1] for id in range(300))  # type: ignore[union-attr]
    assert scripted(llm, "the mat", stop=("h",))[0] == "t"


def test_23_a_stop_string_at_the_last_allowed_token(llm: LLM) -> None:
    count = len(llm.tokenizer.encode("the mat STOP"))  # type: ignore[union-attr]
    text, _, reason = scripted(llm, "the mat STOP", stop="STOP", max_tokens=count)
    assert (text, reason) == ("the mat ", "stop")


def test_24_never_half_a_character(llm: LLM) -> None:
    answer = "黑洞🕳️é 한국어 ok"
    text, pieces, reason = scripted(llm, answer)
    assert (text, reason) == (answer, "stop")
    assert not any("�" in piece for piece in pieces)
    assert len(pieces) > len("黑洞🕳️é 한국어 ok"), "most characters take several tokens, and some pieces are empty"


def test_24_cut_inside_a_character(llm: LLM) -> None:
    text, pieces, reason = scripted(llm, "a🕳", max_tokens=3)
    assert reason == "length"
    assert text == "".join(pieces)
    assert text.startswith("a")
