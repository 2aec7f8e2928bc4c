"""The life of a block, and the life of a sequence: what befell them up to a step, the newest first.

Read from the trace, backwards, and no further than `MAX_STEPS`; where it stops short, it says so.
"""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from minipaged.trace import Moment
from minipaged.viz.changes import change_lines, event_line
from minipaged.viz.history import History
from minipaged.viz.picture import Picture, heading
from minipaged.viz.theme import Theme, many, name

MAX_STEPS = 1000


def block_life(history: History, index: int, block: int, theme: Theme, width: int, height: int) -> Picture:
    """What a device block holds, and who had it before."""
    moment = history.moment(index)
    lines = [heading(f"life of block {block}", "", theme, width)]
    if not 0 <= block < moment.header.num_blocks:
        lines.append(Text(f"there is none: the pool has {many(moment.header.num_blocks, 'block')}"))
        return Picture(lines).fitted(width, height)
    lines.append(Text(theme.cut(_block_now(moment, block), width), Style(bold=True)))
    for i in range(index, max(-1, index - MAX_STEPS), -1):
        if len(lines) >= height:
            break
        facts = history.facts(i)
        mine = [change for change in facts.changes if change.tier == "device" and change.block == block]
        for kind, sentence in reversed(change_lines(mine)):
            what = sentence.split(": ", 1)[1]
            mark = theme.glyphs.marks[kind]
            lines.append(_dated(f"step {facts.record.step}", f"{mark} {what}", theme.role(kind), theme, width))
    else:
        lines.append(_beginning(index, theme))
    return Picture(lines).fitted(width, height)


def sequence_life(history: History, index: int, sequence: int, theme: Theme, width: int, height: int) -> Picture:
    """Where a sequence stands, and how it came there."""
    moment = history.moment(index)
    lines = [heading(f"life of {name(sequence)} (sequence {sequence})", "", theme, width)]
    lines.append(Text(theme.cut(_sequence_now(moment, sequence), width), theme.owner(sequence) + Style(bold=True)))
    last: tuple[str, int] | None = None  # a phase that goes on, and the index of its newest step
    tokens = 0

    def close(oldest: int) -> None:
        nonlocal last, tokens
        if last is not None:
            kind, newest = last
            first_step, last_step = history.facts(oldest).record.step, history.facts(newest).record.step
            when = f"step {first_step}" if oldest == newest else f"steps {first_step}-{last_step}"
            what = f"{kind}: {many(tokens, 'token')}" if tokens else "waits"
            lines.append(_dated(when, what, theme.role(kind if tokens else "quiet"), theme, width))
        last, tokens = None, 0

    i = index
    while i >= max(0, index - MAX_STEPS + 1) and len(lines) < height:
        facts = history.facts(i)
        kind = facts.phases.get(sequence)
        events = [event for event in facts.record.events if event.sequence == sequence]
        if last is not None and (kind != last[0] or any(event.kind in ("finish", "preempt") for event in events)):
            close(i + 1)
        ended = [event for event in events if event.kind != "admit"]
        begun = [event for event in events if event.kind == "admit"]
        step = f"step {facts.record.step}"
        for event in reversed(ended):
            role = "preempt" if event.kind == "preempt" else "plain"
            lines.append(_dated(step, event_line(event), theme.role(role), theme, width))
        if kind is not None and kind != "preempt":
            last = last or (kind, i)
            tokens += sum(chunk.num_tokens for chunk in facts.record.chunks if chunk.sequence == sequence)
        if begun:
            close(i)
        for event in reversed(begun):
            lines.append(_dated(step, event_line(event), theme.role("plain"), theme, width))
        i -= 1
    if len(lines) < height:
        close(i + 1)
        lines.append(_beginning(index, theme))
    return Picture(lines).fitted(width, height)


def _dated(when: str, what: str, style: Style, theme: Theme, width: int) -> Text:
    line = Text.assemble((f"{when:>13}  ", theme.role("quiet")))
    return line.append(theme.cut(what, width - line.cell_len), style)


def _beginning(index: int, theme: Theme) -> Text:
    if index < MAX_STEPS:
        return Text("  that is all since the first recorded step", theme.role("quiet"))
    return Text(f"  only the last {MAX_STEPS} steps are searched", theme.role("quiet"))


def _block_now(moment: Moment, block: int) -> str:
    state = moment.device_blocks[block]
    node = None if state.node is None else moment.nodes[state.node]
    if state.holders:
        now = "held by " + ", ".join(name(holder) for holder in state.holders)
    else:
        now = "free" if node is None else "cached, evictable: nobody holds it"
    now += f"; {state.fill} of {many(moment.header.block_size, 'slot')} filled" if state.fill else ""
    if node is not None:
        now += "; tokens " + " ".join(map(str, node.tokens))
        now += f"; a copy in host block {node.host}" if node.host is not None else ""
    return now


def _sequence_now(moment: Moment, sequence: int) -> str:
    for state in (*moment.running, *moment.waiting):
        if state.sequence == sequence:
            now = f"{state.num_computed} of {many(state.num_tokens, 'token')} computed" if state.running else "waits"
            drawn = state.num_tokens - state.num_prompt
            now += f"; prompt {state.num_prompt}, drawn {drawn}; preempted {many(state.num_preemptions, 'time')}"
            return f"{now}  {state.title}"
    return "not here at this step"


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(
        lambda history, index, theme, width: (
            block_life(history, len(history) - 1, 9, theme, width, 20)
            + sequence_life(history, len(history) - 1, 6, theme, width, 20)
        )
    )
