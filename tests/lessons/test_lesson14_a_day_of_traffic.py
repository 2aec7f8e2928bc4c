"""Lesson 14: reckoning and figures agree, the log tells of each request what befell it, orders do what is said."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from lessons.lesson14_a_day_of_traffic import LESSON, experiment, solution
from lessons.lesson14_a_day_of_traffic.__main__ import main, paged_of
from lessons.lesson14_a_day_of_traffic.check import MOST_OVERTAKING
from lessons.lesson14_a_day_of_traffic.demand import Demand, alpaca, recorded, rush_hour, sharegpt
from lessons.lesson14_a_day_of_traffic.experiment import (
    BLOCK_SIZE,
    COST_MODEL,
    FULL,
    ORDERS,
    POLICY_NAMES,
    crossing,
    first_batches,
    order_row,
    orders,
    serve_all,
    serve_logged,
    sweep,
)
from lessons.lesson14_a_day_of_traffic.figures import Point, Traffic
from lessons.lesson14_a_day_of_traffic.pictures import LETTERS, latency_picture, visits_picture
from lessons.lesson14_a_day_of_traffic.reckoning import at_a_moment, reckon
from lessons.lesson14_a_day_of_traffic.request_log import RequestLog, Visit, quantile
from lessons.runner.grading import grade
from minipaged.order import Order
from minipaged.parts import Parts
from minipaged.serving.policy import PAGED, POLICIES
from minipaged.serving.service import Service, ServiceConfig
from minipaged.traffic import TimedRequest
from minipaged.viz.theme import Theme

SHORT = replace(FULL, rates=(0.9, 1.1), instruction_seconds=8.0)


@pytest.fixture(scope="module")
def instructions() -> Traffic:
    """Alpaca-like requests under all five."""
    return serve_all(alpaca(SHORT.instruction_seconds), {name: POLICIES[name] for name in POLICY_NAMES}, SHORT)


# Reckoning -----------------------------------------------------------------------------------------------------------


def test_long_answers_are_seen_more_often() -> None:
    """Answers of 2 and 8 tokens: of 10 steps, 8 belong to the long one."""
    assert at_a_moment(((1, 2), (1, 8)), lambda prompt, answer: answer) == pytest.approx((2 * 2 + 8 * 8) / 10)


def test_the_hand_arithmetic_of_the_readme() -> None:
    lengths = sharegpt(1.0).lengths
    maximum, paged = (reckon(name, lengths, COST_MODEL, BLOCK_SIZE) for name in ("reserve-max", "paged"))
    assert COST_MODEL.network.kv_slots == 15_728
    assert maximum.running == 7
    assert round(maximum.live) == 436
    assert paged.running == pytest.approx(15_728 / 444, rel=0.01)
    weights = COST_MODEL.network.weight_bytes / (1555e9 * 0.8)
    for reckoned in (maximum, paged):
        reading = reckoned.running * reckoned.live * COST_MODEL.network.kv_bytes_per_token / (1555e9 * 0.8)
        assert reckoned.step_seconds == pytest.approx(0.002 + weights + reading, rel=0.02)
        assert reckoned.rate == pytest.approx(reckoned.running / (reckoned.steps * reckoned.step_seconds))
    assert paged.rate / maximum.rate == pytest.approx(3.8, abs=0.05)


def test_what_was_reckoned_is_near_what_is_measured(instructions: Traffic) -> None:
    """Few seconds of traffic are kind to all: within a factor of two, where the five are a factor of 40 apart."""
    for curve in instructions.curves:
        assert 0.5 < curve.reckoned / curve.rate < 1.5, curve.policy


# Policies ------------------------------------------------------------------------------------------------------------


def test_each_way_to_serve_bears_more_than_the_one_before(instructions: Traffic) -> None:
    rates = [instructions.of(name).rate for name in POLICY_NAMES]
    assert rates == sorted(rates)
    assert instructions.times("paged", "reserve-max") > 8
    assert instructions.times("reserve-max", "static") > 2
    running = [instructions.of(name).running for name in POLICY_NAMES]
    assert running == sorted(running) and running[1] <= 7


def test_where_the_slots_were(instructions: Traffic) -> None:
    for curve in instructions.curves:
        shares = (curve.live, curve.reserved, curve.internal, curve.external, curve.free)
        assert sum(shares) == pytest.approx(1) and min(shares) >= 0
    assert instructions.of("reserve-max").internal > 0.7
    assert instructions.of("reserve-oracle").internal == 0
    assert instructions.of("paged").external == 0
    held = instructions.of("paged")
    assert held.live / (held.live + held.reserved + held.internal) > 0.85


def test_a_curve_ends_above_the_limit_and_nowhere_before(instructions: Traffic) -> None:
    for curve in instructions.curves:
        assert curve.points[-1].normalised > SHORT.limit
        assert curve.points[0].rate <= curve.rate <= curve.points[-1].rate


def test_the_rate_is_where_the_latency_passes_the_limit() -> None:
    points = [Point(1.0, 1, 0.05), Point(2.0, 1, 0.2), Point(3.0, 1, 0.9)]
    assert crossing(points, 0.1) == pytest.approx(1.5)  # 0.1 is half way from 0.05 to 0.2, by factors
    assert crossing(points, 0.01) == 1.0
    with pytest.raises(ValueError, match="above 1"):
        crossing(points, 1.0)


def test_a_run_is_the_same_each_time() -> None:
    demand, scale = alpaca(2.0), replace(SHORT, rates=(1.1,), limit=0.01)
    assert sweep("paged", PAGED, demand, scale) == sweep("paged", PAGED, demand, scale)


def test_parts_by_hand_serve_as_the_policy_does() -> None:
    demand, scale = alpaca(2.0), replace(SHORT, rates=(1.5,), limit=0.01)
    assert sweep("paged", paged_of(Parts()), demand, scale) == sweep("paged", PAGED, demand, scale)


# Requests ------------------------------------------------------------------------------------------------------------


def test_a_static_batch_keeps_its_door_shut_and_a_paged_service_does_not() -> None:
    static, paged = first_batches(POLICIES["static"]), first_batches(PAGED)
    begins = {visit.began for visit in static}
    for visit in static:  # who begins a batch does so when the last of the batch before has ended
        before = [other.ended for other in static if other.began < visit.began]
        assert not before or visit.began >= max(before)
    assert len(begins) < len(static)
    assert max(visit.began - visit.arrival for visit in static) > 10
    assert max(visit.began - visit.arrival for visit in paged) < 0.1
    assert [(v.num_prompt, v.num_output) for v in static] == [(v.num_prompt, v.num_output) for v in paged]


def test_the_log_agrees_with_the_meter() -> None:
    requests = list(rush_hour(alpaca(3.0), 100.0))
    log = RequestLog()
    service = Service(PAGED, COST_MODEL, ServiceConfig(), [log])
    for request in requests:
        log.expect(service.engine.num_requests, request)
        service.receive(request)
    service.run_until()
    figures, visits = service.figures(), list(log.visits.values())
    assert figures.preemptions == 0 and len(visits) == figures.num_finished == len(requests)
    mean = sum(visit.normalised for visit in visits) / len(visits)
    assert mean == pytest.approx(figures.all.normalised.mean)
    assert max(v.first_token - v.arrival for v in visits) == pytest.approx(figures.all.first_token.longest)
    assert max(v.began - v.arrival for v in visits) == pytest.approx(figures.all.waiting.longest)
    stood_still = max(figures.all.first_token.longest, figures.all.between_tokens.longest)
    assert max(visit.stood_still for visit in visits) == pytest.approx(stood_still)


def test_who_could_never_fit_is_not_kept() -> None:
    served, too_long = TimedRequest(0.0, (3,) * 10, 4), TimedRequest(0.1, (4,) * 3000, 4)
    visits = serve_logged(PAGED, [served, too_long])
    assert [(visit.num_prompt, visit.ended > 0) for visit in visits] == [(10, True)]


def test_quantiles_are_values_that_were_there() -> None:
    assert [quantile([4.0, 1.0, 3.0, 2.0], share) for share in (0.0, 0.25, 0.5, 0.51, 0.99, 1.0)] == [1, 1, 2, 3, 4, 4]
    assert quantile(range(1, 101), 0.99) == 99
    assert quantile([], 0.5) == 0


# Orders --------------------------------------------------------------------------------------------------------------


def test_who_gains_and_who_pays() -> None:
    found = orders({**ORDERS, "patient": solution.order})
    fair, shortest, patient = (found.of(name) for name in ("first come", "shortest", "patient"))
    assert all(row.unfinished == 0 for row in found.rows)
    assert fair.short_p99 > fair.long_p99
    assert shortest.p99 < patient.p99 < 0.5 * fair.p99
    assert patient.short_p99 < 0.5 * fair.short_p99
    assert shortest.stood_still > experiment.RUSH_SECONDS  # served since it ended
    assert patient.stood_still < 1.5 * fair.stood_still < shortest.stood_still
    priority = found.of("priority")
    assert priority.urgent_p99 < fair.urgent_p99 and priority.patient_p99 > fair.patient_p99


def test_one_long_request_among_many_short_ones() -> None:
    """Starving, by hand: a place for one at a time, and somebody short always there. Patience ends the wait."""
    long = TimedRequest(0.05, (3, *[2] * 499), 500, max_tokens=512)
    short = [TimedRequest(0.2 * i, (4 + i, 2), 10, max_tokens=16) for i in range(400)]
    requests = sorted([long, *short], key=lambda request: request.arrival_seconds)

    def wait(order: Order) -> tuple[float, float]:
        visits = serve_logged(replace(PAGED, order=order), requests, ServiceConfig(max_sequences=1))
        one = max(visits, key=lambda visit: visit.num_output)
        return one.began - one.arrival, max(visit.arrival for visit in visits)

    starved, last_arrival = wait(solution.size)
    assert starved > last_arrival - 1
    patient, _ = wait(solution.patient_order)
    assert patient < starved / 2
    assert patient > wait(lambda sequence: 0)[0]


def test_the_bound_that_the_solution_names() -> None:
    assert 2048 / solution.GAIN_TOKENS <= 256 < MOST_OVERTAKING


@pytest.mark.parametrize(("gain", "passes"), [(2, False), (3, True), (20, True), (40, False)])
def test_the_check_leaves_the_gain_to_the_learner(gain: float, passes: bool) -> None:
    exercise = ModuleType("exercise")
    exercise.patient_order = lambda sequence: solution.size(sequence) + gain * sequence.request.id  # type: ignore[attr-defined]
    assert grade(LESSON, exercise, 2).passed is passes


@pytest.mark.parametrize("value", [None, (1, 2), float("nan"), "first", True])
def test_what_is_no_number_is_said_to_be_none(value: object) -> None:
    exercise = ModuleType("exercise")
    exercise.size = exercise.patient_order = exercise.order = lambda sequence: value  # type: ignore[attr-defined]
    for task in (1, 2, 3):
        assert grade(LESSON, exercise, task).standing == "wrong"


def test_a_row_counts_those_who_were_not_served() -> None:
    served = Visit(0.0, 1, 2, 0, 0.5, 1.0, 2.0, 1.0)
    row = order_row("x", [served, Visit(0.0, 1, 2, 1)])
    assert (row.unfinished, row.p99, row.stood_still, row.patient_p99) == (1, 1.0, 1.0, 0.0)


# Demand --------------------------------------------------------------------------------------------------------------


def test_another_rate_brings_the_same_requests_at_other_times() -> None:
    slow, fast = list(sharegpt(100.0).requests(1.0)), list(sharegpt(100.0).requests(2.0))
    assert len(fast) > len(slow) > 50
    for one, other in zip(slow, fast, strict=False):
        assert one.prompt_token_ids == other.prompt_token_ids and one.num_output == other.num_output
        assert one.arrival_seconds == pytest.approx(2 * other.arrival_seconds)


def _trace(folder: Path, rows: list[tuple[float, int, int]]) -> Path:
    path = folder / "trace.csv"
    lines = [f"2023-11-16 18:15:{second:010.7f},{prompt},{output}" for second, prompt, output in rows]
    path.write_text("\n".join(["TIMESTAMP,ContextTokens,GeneratedTokens", *lines]) + "\n", encoding="utf-8")
    return path


def test_a_recorded_trace_is_played_at_any_rate(tmp_path: Path) -> None:
    path = _trace(tmp_path, [(i, 10 + i, 5) for i in range(9)] + [(9.0, 3000, 5), (10.0, 30, 5)])
    demand: Demand = recorded(path, 9, 2048)
    assert demand.lengths == tuple((10 + i, 5) for i in range(9))
    assert [request.arrival_seconds for request in demand.requests(4.0)] == [i / 4 for i in range(9)]
    assert [len(r.prompt_token_ids) for r in recorded(path, 100, 2048).requests(1.0)][-1] == 30, "3000 fits nowhere"
    with pytest.raises(ValueError, match="rate"):
        recorded(path, 1, 2048)


def test_the_lesson_plays_a_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _trace(tmp_path, [(i, 100 + 10 * i, 5 + i) for i in range(40)])
    assert main(["--small", "--no-ask", "--json", "--trace", str(path)]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert [traffic["name"] for traffic in figures["traffics"]] == ["trace"]
    assert main(["--small", "--no-ask", "--trace", str(tmp_path / "none.csv")]) == 2
    assert "cannot be read" in capsys.readouterr().err


# Pictures ------------------------------------------------------------------------------------------------------------


def test_the_pictures_fit_and_need_no_more_than_ascii(instructions: Traffic) -> None:
    for theme in (Theme(), Theme(unicode=False, colors="none")):
        chart = latency_picture(instructions, SHORT.limit, theme)
        lines = visits_picture("x", first_batches(PAGED), 50.0, theme)
        assert all(line.cell_len <= 90 for picture in (chart, lines) for line in picture)
        assert theme.unicode or (chart.plain + lines.plain).isascii()
        for mark in LETTERS.values():
            assert mark in chart.plain
