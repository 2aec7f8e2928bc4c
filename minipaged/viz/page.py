"""The page: a whole run in one HTML file, with a slider over its steps. It asks nobody for anything, and needs no net.

Everything that a moment says goes into the page as data, what changed and why in the words of `changes`; `page.html`,
beside this file, draws it. As in a trace, only what differs from the step before is written::

    header       the trace's, and the memory's counts by name
    sequences    id -> [name, colour, prompt tokens, title]
    nodes        id -> [parent, tokens]
    steps        step, seconds, slots [held, live], why (the first that waits does so)
                 chunks     [sequence, start, tokens, recomputed, kind]
                 running    [sequence, tokens, computed, preemptions, blocks; 0 for a table that is as it was]
                 waiting    [sequence, tokens, preemptions]
                 drawn      how many tokens
                 placed     [node, device block, host block]
                 gone       nodes
                 marks      [block, kind], and on_host
                 words      [kind, sentence]
                 phases     [sequence, phase]
                 counts     in the header's order
"""

from __future__ import annotations

import html
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

from minipaged.trace import Moment, NodeState, Trace
from minipaged.viz.changes import change_lines, event_line, marks
from minipaged.viz.history import History, StepFacts
from minipaged.viz.theme import Theme, name

TEMPLATE = Path(__file__).with_name("page.html")


def page(trace: Trace) -> str:
    """One HTML page that shows every step of a run, and asks nobody for anything.

    Args:
        trace: with at least one step.

    Returns:
        The file's text, in HTML.
    """
    history = trace if isinstance(trace, History) else History(trace)
    run = json.dumps(_run(history), ensure_ascii=False, separators=(",", ":"))
    template = TEMPLATE.read_text(encoding="utf-8")
    before, after = template.split("<!--run-->")
    title = html.escape(trace.header.description)
    text = before.replace("<!--title-->", title) + run.replace("<", "\\u003c") + after
    return text.encode("utf-8", "backslashreplace").decode()  # a lone surrogate becomes JSON's escape for it


def _run(history: History) -> dict[str, Any]:
    """The data of the page."""
    sequences: dict[int, list[Any]] = {}
    nodes: dict[int, tuple[int, tuple[int, ...]]] = {}
    steps: list[dict[str, Any]] = []
    tables: dict[int, tuple[int, ...]] = {}
    places: dict[int, NodeState] = {}
    names: list[str] = []
    for index in range(len(history)):
        moment = history.moment(index)
        names = names or list(moment.counts)
        for state in (*moment.running, *moment.waiting):
            if state.sequence not in sequences:
                sequences[state.sequence] = _sequence(state.sequence, state.num_prompt, state.title)
        for chunk in moment.record.chunks:
            if chunk.sequence not in sequences:  # it came and went within the step: all that it computed was prompt
                sequences[chunk.sequence] = _sequence(chunk.sequence, chunk.start + chunk.num_tokens, "")
        for id, node in moment.nodes.items():
            nodes.setdefault(id, (node.parent, node.tokens))
        steps.append(_step(moment, history.facts(index), tables, places))
        tables = {state.sequence: state.blocks for state in moment.running}
        places = dict(moment.nodes)
    header = asdict(history.header) | {"counts": names}
    return {"header": header, "sequences": sequences, "nodes": nodes, "steps": steps}


def _sequence(id: int, num_prompt: int, title: str) -> list[Any]:
    color = Theme().owner(id).color
    return [name(id), color.name if color else "", num_prompt, title]


def _step(
    moment: Moment, facts: StepFacts, tables: dict[int, tuple[int, ...]], places: dict[int, NodeState]
) -> dict[str, Any]:
    record = moment.record
    words = [("error", record.error)] if record.error else []
    words += [(event.kind, event_line(event)) for event in record.events]
    words += change_lines(facts.changes)
    step = {
        "step": record.step,
        "seconds": round(record.seconds, 6),
        "slots": (record.held_slots, record.live_slots),
        "why": record.waiting_cause,
        "chunks": [(c.sequence, c.start, c.num_tokens, c.num_recomputed, c.kind) for c in record.chunks],
        "running": [
            (s.sequence, s.num_tokens, s.num_computed, s.num_preemptions)
            + ((s.blocks,) if tables.get(s.sequence) != s.blocks else (0,))
            for s in moment.running
        ],
        "waiting": [(s.sequence, s.num_tokens, s.num_preemptions) for s in moment.waiting],
        "drawn": len(record.drawn),
        "placed": [
            (node.node, node.device, node.host)
            for id, node in moment.nodes.items()
            if id not in places or (places[id].device, places[id].host) != (node.device, node.host)
        ],
        "gone": [id for id in places if id not in moment.nodes],
        "marks": list(marks(facts.changes, "device").items()),
        "on_host": list(marks(facts.changes, "host").items()),
        "words": words,
        "phases": list(facts.phases.items()),
        "counts": list(moment.counts.values()),
    }
    return {key: value for key, value in step.items() if value not in (None, [], 0)}


if __name__ == "__main__":  # python -m minipaged.viz.page > run.html
    from minipaged.viz.example import example_trace

    print(page(example_trace()), end="")
