"""StopStrings against the whole text: any pieces, the same text, and nothing too early (conformance 23)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.model.stop_strings import StopStrings

AB = st.text("ab", max_size=14)
STOPS = st.lists(st.text("ab", min_size=1, max_size=4), max_size=3)


def expected(text: str, stops: list[str]) -> str:
    """Grow the text by one character until it ends in a stop string; cut the longest such off."""
    for end in range(len(text) + 1):
        matches = [stop for stop in stops if text[:end].endswith(stop)]
        if matches:
            return text[: end - max(map(len, matches))]
    return text


@given(pieces=st.lists(AB, max_size=6), stops=STOPS)
def test_same_text_whatever_the_pieces_and_nothing_too_early(pieces: list[str], stops: list[str]) -> None:
    watcher, out, seen = StopStrings(stops), "", ""
    final = expected("".join(pieces), stops)
    for piece in pieces:
        out, seen = out + watcher.push(piece), seen + piece
        assert final.startswith(out)
        if not watcher.found:
            held = seen[len(out) :]
            # Held is exactly what may still become a stop string, no more.
            assert held == "" or any(stop.startswith(held) for stop in stops)
            assert all(
                not any(stop.startswith(seen[-n:]) for stop in stops) for n in range(len(held) + 1, len(seen) + 1)
            )
    assert out + watcher.flush() == final
    assert watcher.found == any(stop in "".join(pieces) for stop in stops)


def test_by_hand() -> None:
    watcher = StopStrings(["\n\n", "END"])
    assert [watcher.push(piece) for piece in ("Hi\n", "you", " E", "NT", "E", "ND more", "!")] == [
        "Hi", "\nyou", " ", "ENT", "", "", ""]  # fmt: skip
    assert (watcher.match, watcher.flush()) == ("END", "")


def test_a_stop_string_inside_one_piece_cuts_there() -> None:
    watcher = StopStrings(["."])
    assert watcher.push("one. two. three") == "one"
    assert watcher.found


def test_text_that_only_began_like_it_leaves_at_the_end() -> None:
    watcher = StopStrings(["STOP"])
    assert watcher.push("a STO") == "a "
    assert watcher.flush() == "STO"
    assert not watcher.found


def test_the_first_complete_one_wins_and_of_two_the_longer() -> None:
    watcher = StopStrings(["bcd", "c", "abc"])
    assert watcher.push("xabcd") == "x"
    assert watcher.match == "abc"


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        StopStrings([""])
