"""Player: what each key does to where one stands, how fast time goes, and what is selected. No terminal, no clock."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from minipaged.plan import CopyBlock, Poison, SwapIn, SwapOut
from minipaged.trace import Event, Moment, SequenceState, StepRecord, TraceHeader
from minipaged.viz.dashboard import PANELS
from minipaged.viz.player import _ACTIONS, HELP, MAX_SEARCH_STEPS, NUM_LAST_STEPS, SPEEDS, Player, is_telling

HEADER = TraceHeader(8, 0, 4, 0, 32, 8, "a toy")


class Moments(list[Moment]):
    """A trace that is written by hand."""

    header = HEADER

    def moment(self, index: int) -> Moment:
        return self[index]


def moment(step: int, *, evictions: int = 0, sequences: tuple[int, ...] = (0, 1), **record: Any) -> Moment:
    """A step in which nothing happens, but for what is said."""
    fields: dict[str, Any] = {"chunks": (), "events": (), "num_running": 2, "num_waiting": 0, "total_slots": 32}
    running = tuple(SequenceState(id, id, 0, True, 3, 4, 3, 0, (id,)) for id in sequences)
    made = StepRecord(step=step, started_seconds=0, seconds=0.1, held_slots=0, live_slots=0, **(fields | record))
    return Moment(HEADER, made, running, (), {}, {"evictions": evictions})


def moments(number: int = 10) -> Moments:
    return Moments(moment(step) for step in range(number))


def pressed(player: Player, *keys: str) -> Player:
    for key in keys:
        player.press(key)
    return player


# Where one stands -----------------------------------------------------------------------------------------------------


def test_keys_move_through_a_run_that_is_over_and_stop_it() -> None:
    player = Player(moments())
    assert pressed(player, "n", "right", "n", "p", "left").index == 1 and player.paused
    assert pressed(player, "G").index == 9
    assert pressed(player, "n").index == 9 and "last step" in player.message
    assert pressed(player, "g").index == 0 and player.message == ""
    assert pressed(player, "p").index == 0 and "first step" in player.message
    player.pass_time(5)
    assert player.message == "", "it has been read"
    assert pressed(player, "end").index == 9 and pressed(player, "home").index == 0


def test_a_run_that_is_over_plays_at_its_speed_and_stops_at_its_end() -> None:
    player = Player(moments(), speed=4)
    player.pass_time(0.5)
    assert player.index == 2 and player.state == "playing"
    player.pass_time(0.2)
    assert player.index == 2 and player.seconds_to_next == pytest.approx(0.05)
    player.pass_time(0.05)
    assert player.index == 3
    player.pass_time(60)
    assert player.index == 9 and player.ended and player.state == "over" and player.seconds_to_next == math.inf
    assert pressed(player, " ").index == 0 and not player.paused, "space plays it again"


def test_space_stops_time() -> None:
    player = pressed(Player(moments(), speed=4), " ")
    player.pass_time(5)
    assert player.index == 0 and player.seconds_to_next == math.inf and player.state == "paused"
    player.press(" ")
    player.pass_time(0.25)
    assert player.index == 1, "the time that stood still is not made up for"


def test_speeds() -> None:
    player = Player(moments(), speed=8.0)
    assert pressed(player, "+").speed == 16 and pressed(player, "=", "-", "-").speed == 8
    assert pressed(player, *"-" * 20).speed == SPEEDS[0]
    assert pressed(player, *"+" * 20).speed == math.inf
    player.pass_time(0.01)
    assert player.ended, "at full speed, ten steps take no time"
    assert pressed(player, "-").speed == SPEEDS[-2]
    assert pressed(Player(moments(), speed=80.0), "+").speed == 128


# A live run -----------------------------------------------------------------------------------------------------------


def run_live(player: Player, trace: Moments, seconds: float) -> int:
    """Lets time pass in small steps; returns how many the engine made."""
    made = 0
    for _ in range(round(seconds * 64)):
        player.pass_time(1 / 64)
        if player.take_step():
            trace.append(moment(len(trace)))
            player.stepped()
            made += 1
    return made


def test_the_newest_step_is_followed_until_a_key_goes_back_while_the_engine_runs_on() -> None:
    trace = moments(0)
    player = Player(trace, live=True, speed=8)
    assert run_live(player, trace, 1.0) == 8 and player.index == 7 and player.state == "live"
    player.press("p")
    assert player.index == 6 and player.state == "the past, engine runs on"
    assert run_live(player, trace, 1.0) == 8 and player.index == 6, "the past stays where it is"
    assert pressed(player, "n").index == 7
    assert pressed(player, "G").index == 15 and player.state == "live"
    run_live(player, trace, 0.5)
    assert player.index == len(trace) - 1 == 19


def test_walking_forward_to_now_follows_again() -> None:
    trace = moments(3)
    player = Player(trace, live=True, index=2)
    pressed(player, "p", "n")
    assert player.following and not player.paused
    run_live(player, trace, 1.0)
    assert player.index == len(trace) - 1 == 10


def test_a_paused_engine_makes_the_steps_that_are_asked_for() -> None:
    trace = moments(3)
    player = pressed(Player(trace, live=True, index=2), " ")
    assert run_live(player, trace, 2.0) == 0
    pressed(player, "n", "n")
    assert player.seconds_to_next == 0.0
    assert run_live(player, trace, 2.0) == 2 and player.index == 4 and player.paused
    pressed(player, "p", " ")
    assert player.state == "the past, engine runs on"
    assert pressed(player, " ").state == "the past, engine paused"


def test_a_slow_engine_does_not_try_to_catch_up() -> None:
    player = Player(moments(1), live=True, speed=128)
    player.pass_time(100)
    steps = 0
    while player.take_step():
        steps += 1
    assert steps == 32


def test_when_the_engine_is_done_the_run_can_be_played_like_any_other() -> None:
    player = Player(moments(), live=True, index=9)
    player.end_live()
    assert player.state == "over"
    pressed(player, " ")
    player.pass_time(0.5)
    assert player.index == 4


def test_who_looks_at_the_past_is_not_carried_away_when_the_engine_is_done() -> None:
    player = pressed(Player(moments(), live=True, index=9), "p", "p")
    player.end_live()
    player.pass_time(5)
    assert player.index == 7 and player.state == "paused"


# Jumps ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("told", "telling"),
    [
        ({"operations": (SwapOut(1, 2),)}, True),
        ({"operations": (SwapIn(2, 1),)}, True),
        ({"operations": (CopyBlock(2, 1),)}, True),
        ({"operations": (Poison(1),)}, False),
        ({"events": (Event("preempt", 1, ""),)}, True),
        ({"events": (Event("admit", 1, ""), Event("finish", 0, "stop"))}, False),
        ({"evictions": 1}, True),
    ],
)
def test_what_is_worth_a_jump(told: dict[str, Any], telling: bool) -> None:
    trace = Moments([moment(0), moment(1, **told), moment(2, evictions=told.get("evictions", 0))])
    assert [is_telling(trace, index) for index in range(3)] == [False, telling, False]


def test_brackets_jump_from_one_to_the_next() -> None:
    trace = moments()
    for index in (3, 7):
        trace[index] = moment(index, operations=(CopyBlock(0, 1),))
    player = Player(trace)
    assert pressed(player, "]").index == 3 and player.paused
    assert pressed(player, "]").index == 7
    assert pressed(player, "]").index == 7 and "after this step" in player.message
    assert pressed(player, "[").index == 3
    assert pressed(player, "[").index == 3 and "before this step" in player.message


# What is selected -----------------------------------------------------------------------------------------------------


def test_a_jump_looks_through_so_many_steps_and_then_asks() -> None:
    """No press takes long, however long the run, and none is passed over."""
    trace = moments(2 * MAX_SEARCH_STEPS + 50)
    last = len(trace) - 1
    for index in (last - 10, MAX_SEARCH_STEPS + 3):
        trace[index] = moment(index, events=(Event("preempt", 1, "it had to"),))
    player = Player(trace, index=3)
    assert pressed(player, "]").index == MAX_SEARCH_STEPS + 3 and not player.message, "the last that it looks at"
    player.index = 2
    assert pressed(player, "]").index == MAX_SEARCH_STEPS + 2
    assert player.message == f"nothing in these {MAX_SEARCH_STEPS} steps; press it again to search on"
    assert pressed(player, "]").index == MAX_SEARCH_STEPS + 3 and not player.message
    assert pressed(player, "G", "[").index == last - 10
    assert pressed(player, "[").index == last - 10 - MAX_SEARCH_STEPS
    assert pressed(player, "[").index == MAX_SEARCH_STEPS + 3
    assert pressed(player, "[", "[").index == 3
    assert pressed(player, "[").message.startswith("no preemption")


def test_who_came_is_found_without_looking_through_all_steps() -> None:
    asked: list[int] = []

    class Counted(Moments):
        def moment(self, index: int) -> Moment:
            asked.append(index)
            return super().moment(index)

    trace = Counted(moment(step, sequences=(step // 100,)) for step in range(2000))
    player = Player(trace, index=500)
    assert pressed(player, "T").view.sequence == 19
    assert len(asked) <= NUM_LAST_STEPS
    player = Player(trace, index=500)
    assert pressed(player, "U").message == "there is no sequence U yet"
    trace.append(moment(2000, sequences=(20,)))
    trace.extend(moment(step, sequences=()) for step in range(2001, 2100))
    assert pressed(player, "U").view.sequence == 20, "who came meanwhile, and went"


def test_a_letter_follows_its_sequence_and_lets_it_go() -> None:
    player = Player(moments())
    assert pressed(player, "B").view.sequence == 1
    assert pressed(player, "A").view.sequence == 0 and player.followed == "follows A"
    assert pressed(player, "A").view.sequence is None
    assert pressed(player, "C").view.sequence is None and player.message == "there is no sequence C yet"


def test_a_long_trace_is_not_read_through_for_a_letter() -> None:
    asked: list[int] = []

    class Long(Moments):
        def moment(self, index: int) -> Moment:
            asked.append(index)
            return super().moment(index)

    trace = Long(moment(step, sequences=(min(step // 10, 20),)) for step in range(1000))
    player = Player(trace, index=900)
    assert pressed(player, "U").view.sequence == 20 and asked == [900], "it is here"
    asked.clear()
    player = Player(trace)
    assert pressed(player, "C").view.sequence == 2 and len(asked) < 25, "no further than to where it came"
    assert pressed(player, "V").view.sequence == 2 and player.message == "there is no sequence V yet"
    asked.clear()
    assert pressed(player, "X").message == "there is no sequence X yet" and len(asked) == 1, "once is enough"


def test_a_trace_without_texts_says_so() -> None:
    player = pressed(Player(moments()), "t")
    assert player.message == "there are no texts in a trace" and player.texts
    assert not pressed(Player(moments(), has_texts=True), "t").texts


def test_what_is_typed_follows_a_sequence_or_a_block() -> None:
    trace = Moments([moment(0, sequences=(0, 6, 60))])
    player = Player(trace)
    assert pressed(player, "/", "G", "enter").view.sequence == 6, "G alone is a key of its own"
    assert pressed(player, "/", *"I2", "enter").view.sequence == 60
    pressed(player, "/", "9", "9", "backspace", "backspace", "7", "enter")
    assert (player.view.sequence, player.view.block) == (None, 7) and player.followed == "follows block 7"
    assert (
        pressed(player, "/", "8", "enter").view.block == 7 and player.message == "there is no block 8; they are 0 to 7"
    )
    assert pressed(player, "/", "?", "enter").message == "'?' names nothing"
    assert pressed(player, "/", "q", "escape").typed is None and not player.quit
    assert pressed(player, "/", "backspace").typed is None
    assert pressed(player, "escape").view.block is None


def test_arrows_go_through_those_who_are_there() -> None:
    player = Player(Moments([moment(0, sequences=(3, 5, 8)), moment(1, sequences=())]))
    seen = [pressed(player, "down").view.sequence for _ in range(4)]
    assert seen == [3, 5, 8, 3]
    assert pressed(player, "up").view.sequence == 8
    assert pressed(Player(player.trace), "up").view.sequence == 8
    assert pressed(Player(player.trace, index=1), "down").message == "nobody is here"


def test_panels_turn_both_ways_and_enter_tells_a_life() -> None:
    player = Player(moments())
    assert [pressed(player, "tab").view.panel for _ in PANELS] == [*PANELS[1:], PANELS[0]]
    assert pressed(player, "shift-tab").view.panel == PANELS[-1]
    pressed(player, "tab", "enter")
    assert player.view.panel == "life"
    assert pressed(player, "enter").view.panel == PANELS[0]


def test_help_is_left_by_any_key_which_does_nothing_else() -> None:
    player = pressed(Player(moments()), "?")
    assert player.help
    assert pressed(player, "n").index == 0 and not player.help
    assert pressed(player, "?", "q").quit


@given(st.lists(st.sampled_from([*_ACTIONS, *"ABCZ", "x", "7", "好", "page-up"]), max_size=40), st.booleans())
def test_no_keys_lead_anywhere_that_is_not_there(keys: list[str], live: bool) -> None:
    for trace in (moments(0), moments(5)):
        player = Player(trace, live=live)
        for key in keys:
            player.press(key)
            player.pass_time(0.1)
            assert 0 <= player.index <= player.last
            assert player.seconds_to_next >= 0


def test_every_key_is_in_the_help() -> None:
    told = {key for keys, _ in HELP for key in keys.split()}
    names = {" ": "space", "right": "→", "left": "←", "up": "↑", "down": "↓", "escape": "esc"}
    same = {"home", "end", "=", "shift-tab"}  # other names of keys that are told
    assert all(names.get(key, key) in told for key in _ACTIONS.keys() - same)
