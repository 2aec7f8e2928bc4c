"""The prefix tree: which beginnings are resident, where, and who holds them.

    ├─ 0 1 2  A, B  tokens 5 9 2 …      three nodes in a row, in device blocks 0, 1, 2, held by A and B
    │  └─ 7  A  tokens 8 8 1 …          what follows
    └─ 4 h3  tokens 6 1 0 …             the second of them is on the host only, in host block 3

Nodes with one child and the same holders stand on one line.
"""

from __future__ import annotations

from rich.style import Style
from rich.text import Text

from minipaged.trace import Moment, NodeState
from minipaged.viz.picture import Picture, heading
from minipaged.viz.theme import Theme, many, name


def prefix_tree(moment: Moment, theme: Theme, width: int, height: int, *, follow: int | None = None) -> Picture:
    """The tree from its roots (one for each tenant), what is held first."""
    nodes = moment.nodes
    on_device = sum(node.device is not None for node in nodes.values())
    on_host = sum(node.host is not None for node in nodes.values())
    facts = f"{many(len(nodes), 'node')}, {on_device} on the device, {on_host} on the host"
    lines = [heading("prefix tree", facts, theme, width)]
    if not nodes:
        lines.append(Text("no full block is resident", theme.role("quiet")))
    children: dict[int, list[NodeState]] = {}
    for node in nodes.values():
        children.setdefault(node.parent, []).append(node)
    holders = {block.node: block.holders for block in moment.device_blocks if block.node is not None}
    for siblings in children.values():  # what lives comes first: a small panel shows no more
        siblings.sort(key=lambda node: (not holders.get(node.node), node.device is None, node.node))
    roots = sorted(parent for parent in children if parent not in nodes)
    tops = [node for root in roots for node in children[root]]
    glyphs = theme.glyphs
    stack = [(node, "", node is tops[-1]) for node in reversed(tops)]
    num_drawn = 0
    while stack and len(lines) < height:
        node, indent, is_last = stack.pop()
        chain = [node]
        while True:
            below = children.get(chain[-1].node, [])
            if len(below) != 1 or holders.get(below[0].node, ()) != holders.get(node.node, ()):
                break
            chain.append(below[0])
        if len(lines) == height - 1 and (stack or below):
            lines.append(Text(f"and {many(len(nodes) - num_drawn, 'more node')}", theme.role("quiet")))
            break
        num_drawn += len(chain)
        prefix = indent + (glyphs.last_branch if is_last else glyphs.branch)
        lines.append(_line(prefix, chain, holders.get(node.node, ()), theme, width, follow))
        inner = indent + ("  " if is_last else glyphs.trunk) + " "
        stack += [(child, inner, child is below[-1]) for child in reversed(below)]
    return Picture(lines).fitted(width, height)


def _line(
    prefix: str, chain: list[NodeState], holders: tuple[int, ...], theme: Theme, width: int, follow: int | None
) -> Text:
    line = Text.assemble((prefix, theme.role("quiet")))
    where = [f" h{node.host}" if node.device is None else f" {node.device}" for node in chain]
    room = max(width - len(prefix) - 12, 8)
    while len(where) > 2 and sum(map(len, where)) > room:
        del where[len(where) // 2]
    if len(where) < len(chain):
        where.insert(-1, f" {theme.glyphs.cut}")
    style = theme.role("evictable")
    if holders:
        style = theme.owner(holders[0]) if len(holders) == 1 else theme.role("shared")
    if follow is not None and follow in holders:
        style += Style(underline=True, bold=True)
    line.append("".join(where), style)
    if holders:
        names = ", ".join(name(holder) for holder in holders[:6]) + (" ..." if len(holders) > 6 else "")
        line.append(f"  {names}", style)
    tokens = [token for node in chain for token in node.tokens][: max(width // 3, 1)]
    line.append("  tokens " + " ".join(str(token) for token in tokens), theme.role("quiet"))
    if line.cell_len > width - 2 or len(tokens) < sum(len(node.tokens) for node in chain):
        line.truncate(max(width - 2, 0), overflow="crop")
        line.append(f" {theme.glyphs.cut}", theme.role("quiet"))
    return line


if __name__ == "__main__":
    from minipaged.viz.show import show

    show(lambda history, index, theme, width: prefix_tree(history.moment(index), theme, width, 20))
