"""Makes the diagrams of docs/assets that show the life of a request, of a block and of a step.

    python docs/examples/life_diagrams.py

Every name in them is a link to its line, relative to docs/assets. Nothing is run and nothing is measured here;
`tests/docs/test_diagrams.py` checks that each name is there, that all text fits, and that the files are up to date.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # found beside this file, however it is run
from diagram import MARGIN, WIDTH, Diagram, Row

ASSETS = Path(__file__).parents[1] / "assets"
CENTRE = WIDTH / 2
DOWN = 74  # where the arrows between two states run
BESIDE = 84  # and what is said beside them
LEFT, RIGHT = 22, WIDTH - 22  # and where those that go back up


def code(path: str) -> str:
    """The way from docs/assets to a name in the program, such as `memory/tiers.py#Tiers.take`."""
    return f"../../minipaged/{path}"


def life_of_a_request() -> Diagram:
    """Asked for, waiting, running, preempted, finished; with the steps of the page's own run."""
    d = Diagram(
        "life_of_a_request",
        "The life of a request",
        "From top to bottom. Text becomes token ids; the request is checked, and waits. When there is room it is "
        "admitted: its tokens walk down the prefix tree, and what is found there is shared, swapped in or copied. The "
        "rest is computed. While it runs, each step computes a chunk of it. When memory is short, the youngest is "
        "preempted and waits again. When it has finished, its blocks go back, and the full ones are kept.",
    )
    y = d.lane(
        12, "people", "text", [Row("LLM.stream", "makes token ids of the prompt", code("llm.py#LLM.stream"))], "floor 5"
    )
    d.arrow((CENTRE, y + 2), (CENTRE, y + 22))
    y = d.lane(
        y + 24,
        "bookkeeping",
        "token ids",
        [
            Row("Engine.add_request", "checks them, makes its sequences", code("engine.py#Engine.add_request")),
            Row("Scheduler.add", "refuses what could never fit", code("scheduler.py#Scheduler.add")),
        ],
        "floors 4 and 3",
    )
    d.arrow((CENTRE, y + 2), (CENTRE, y + 22))
    waiting = y + 24
    y = d.state(waiting, "waiting", "holds no block; keeps what it has drawn", code("scheduler.py#Scheduler.waiting"))
    d.arrow((DOWN, y + 2), (DOWN, y + 50))
    admit = Row("Scheduler._admit", "oldest first, if it fits: steps 0, 12", code("scheduler.py#Scheduler._admit"))
    d.row(BESIDE, y + 3, 264, admit)
    tiers = "memory/tiers.py#Tiers."
    y = d.lane(
        y + 52,
        "bookkeeping",
        "its tokens walk down the tree",
        [
            Row("KVManager.admit", "and with luck they find blocks:", code("memory/kv_manager.py#KVManager.admit")),
            Row("on the device", "shared in place, nothing moves", code(f"{tiers}bring"), "&", "ink"),
            Row("on the host", "SwapIn: copied back", code(f"{tiers}_swap_in"), "↓", "blue"),
            Row("only begins alike", "CopyBlock: the first tokens serve", code(f"{tiers}_private_copy"), "»", "cyan"),
            Row("not there", "new blocks, to be computed", code(f"{tiers}take"), "+", "green"),
        ],
        x=28,
        width=320,
    )
    d.arrow((DOWN, y + 2), (DOWN, y + 22))
    running = y + 24
    give_way = Row("gives way", "memory is short: step 5", code("scheduler.py#Scheduler._preempt_youngest"), "◂", "red")
    y = d.state(running, "running", "holds a block table", code("memory/block_table.py#BlockTable"), [give_way])
    d.arrow((350, running + 74), (RIGHT, running + 74), (RIGHT, waiting + 27), (351, waiting + 27), colour="red")
    d.arrow((DOWN, y + 2), (DOWN, y + 22))
    end = d.lane(
        y + 24,
        "quiet",
        "each step",
        [
            Row("Chunk", "prefill: many tokens; decode: one", code("plan.py#Chunk"), colour="plan"),
            Row("TorchRunner.run", "computes it, draws a token", code("runner.py#TorchRunner.run"), colour="tensors"),
            Row("Scheduler.commit", "appends the token", code("scheduler.py#Scheduler.commit"), colour="bookkeeping"),
            Row("LLM.step", "makes text of it", code("llm.py#LLM.step"), colour="people"),
        ],
        x=52,
        width=296,
    )
    d.arrow((51, end - 40), (LEFT, end - 40), (LEFT, running + 27), (49, running + 27))
    d.arrow((DOWN, end + 2), (DOWN, end + 50))
    over = Row("Scheduler._end", "length, stop, cancelled, error", code("scheduler.py#Scheduler._end"))
    d.row(BESIDE, end + 3, 264, over)
    release = code("memory/kv_manager.py#KVManager.release")
    y = d.state(end + 52, "finished", "its blocks go back, the last one first", release)
    d.arrow((DOWN, y + 2), (DOWN, y + 28))
    d.words(BESIDE, y + 20, "what is full is kept", room=250)
    d.state(y + 30, "evictable blocks", "until the room is needed", "../life_of_a_block.md", kind="pending")
    return d


def life_of_a_block() -> Diagram:
    """Free, held, evictable, and where its content goes: to the host and back, or nowhere."""
    d = Diagram(
        "life_of_a_block",
        "The life of a block",
        "From top to bottom. A free block is taken and held, and filled token by token. When the plan fills it, it "
        "gets a node, pending until the step ends. A full block is shared by several tables, and copied for whoever "
        "would write on it. When nobody holds it, it is evictable, until somebody shares it again or its room is "
        "needed. Then the block goes into new hands and its content to the host, from where it is swapped in again; "
        "or it is dropped.",
    )
    pool, tiers = "memory/block_pool.py#BlockPool.", "memory/tiers.py#Tiers."
    step, manager = "memory/open_step.py#OpenStep.", "memory/kv_manager.py#KVManager."
    y = d.state(12, "free", "nobody's, and holds nothing", code(f"{pool}free_blocks"), block=(0, "full"))
    d.arrow((DOWN, y + 2), (DOWN, y + 50), colour="green")
    d.row(BESIDE, y + 3, 130, Row("Tiers.take", "room wanted", code(f"{tiers}take"), "+", "green"))
    d.arrow((228, y + 50), (228, y + 2), colour="yellow")
    d.row(236, y + 3, 152, Row("Tiers.release", "it has no node", code(f"{tiers}release"), "−", "yellow"))
    held = y + 52
    filling = d.state(
        held,
        "held, being filled",
        "a decode adds one token a step",
        code(f"{manager}grow"),
        [
            Row("Tiers.copy", "held twice: copied before a write", code(f"{tiers}copy"), "»", "cyan"),
        ],
        block=(2, "full"),
    )
    d.arrow((DOWN, filling + 2), (DOWN, filling + 50))
    d.row(BESIDE, filling + 3, 264, Row("OpenStep.compute", "the plan fills its last slot", code(f"{step}compute")))
    pending = filling + 52
    y = d.state(
        pending,
        "held, pending",
        "shared within the step, never copied",
        code("memory/prefix_tree.py#Node"),
        [Row("OpenStep.abort", "the step failed: no node", code(f"{step}abort"), "x", "red")],
        kind="pending",
        block=(4, "full"),
    )
    d.arrow((DOWN, y + 2), (DOWN, y + 50))
    d.row(BESIDE, y + 3, 264, Row("OpenStep.commit", "the step went well", code(f"{step}commit")))
    full = y + 52
    y = d.state(
        full,
        "held, full",
        "never changes; found by its tokens",
        code("memory/prefix_tree.py#PrefixTree.walk"),
        [
            Row("BlockPool.hold", "one more table: count 2, 3, …", code(f"{pool}hold"), "&", "ink"),
            Row("Tiers._private_copy", "begins alike: CopyBlock", code(f"{tiers}_private_copy"), "»", "cyan"),
        ],
        block=(4, "full"),
    )
    d.arrow((DOWN, y + 2), (DOWN, y + 50), colour="yellow")
    d.row(BESIDE, y + 3, 140, Row("Tiers.release", "nobody holds it", code(f"{tiers}release"), "−", "yellow"))
    d.arrow((238, y + 50), (238, y + 2), colour="ink")
    d.row(246, y + 3, 142, Row("Tiers.bring", "a walk finds it", code(f"{tiers}bring"), "&", "ink"))
    kept = y + 52
    y = d.state(
        kept,
        "evictable",
        "kept while nobody needs the room",
        code(f"{pool}eviction_order"),
        [Row("BlockPool.evict", "the block goes into new hands", code(f"{pool}evict"), "x", "red")],
        block=(4, "kept"),
    )
    d.arrow((50, kept + 76), (LEFT, kept + 76), (LEFT, held + 27), (50, held + 27), colour="red")
    d.arrow((DOWN, y + 2), (DOWN, y + 50), colour="magenta")
    d.row(
        BESIDE,
        y + 3,
        264,
        Row("Tiers._evicted", "SwapOut, unless it has a copy", code(f"{tiers}_evicted"), "↑", "magenta"),
    )
    host = y + 52
    y = d.state(
        host,
        "content on the host",
        "in a host block, under the same node",
        code("memory/swap.py#SwapManager"),
        [Row("Tiers._swap_in", "SwapIn, into any device block", code(f"{tiers}_swap_in"), "↓", "blue")],
    )
    d.arrow((350, host + 76), (RIGHT, host + 76), (RIGHT, full + 27), (350, full + 27), colour="blue")
    d.arrow((DOWN, y + 2), (DOWN, y + 50), colour="red")
    victim = Row(
        "SwapManager.victim",
        "the host is full, or there is none",
        code("memory/swap.py#SwapManager.victim"),
        "x",
        "red",
    )
    d.row(BESIDE, y + 3, 264, victim)
    d.state(y + 52, "content dropped", "computed again when it is wanted", code(f"{tiers}forget"), kind="pending")
    return d


def life_of_a_step() -> Diagram:
    """Schedule, run, commit; what fails, and where Ctrl-C strikes."""
    d = Diagram(
        "life_of_a_step",
        "The life of a step",
        "From top to bottom. The scheduler goes through the running sequences and then the waiting ones, and asks the "
        "memory for room. What comes of it is a StepPlan, which passes to the tensors. There the memory operations are "
        "carried out, one forward pass is computed, and tokens are drawn. The StepResult passes back and is committed. "
        "If the run raises, the step is booked as failed instead. Ctrl-C waits wherever books are written, and strikes "
        "only in the run. At the end, listeners get a record.",
    )
    manager = "memory/kv_manager.py#KVManager."
    y = d.lane(
        12,
        "bookkeeping",
        "1  schedule",
        [
            Row("Scheduler._go_on", "running ones, the oldest first:", code("scheduler.py#Scheduler._go_on")),
            Row("KVManager.continue_walk", "what has come since is shared", code(f"{manager}continue_walk"), depth=1),
            Row("KVManager.grow", "slots for the tokens of its chunk", code(f"{manager}grow"), depth=1),
            Row(
                "the youngest gives way",
                "no room: preempt it, and ask again",
                code("scheduler.py#Scheduler._preempt_youngest"),
                "◂",
                "red",
                depth=1,
            ),
            Row("Scheduler._admit", "then waiting ones, if none gave way:", code("scheduler.py#Scheduler._admit")),
            Row("KVManager.admit", "a walk down the tree, new slots", code(f"{manager}admit"), depth=1),
            Row("KVManager.take_operations", "what is to be moved, in order", code(f"{manager}take_operations")),
        ],
        "Ctrl-C waits",
    )
    d.arrow((CENTRE, y + 2), (CENTRE, y + 22), colour="plan")
    y = d.lane(
        y + 24,
        "plan",
        "all that passes across",
        [
            Row("StepPlan", "chunks, and memory operations", code("plan.py#StepPlan")),
        ],
        x=52,
        width=296,
    )
    d.arrow((CENTRE, y + 2), (CENTRE, y + 22), colour="plan")
    run = y + 24
    y = d.lane(
        run,
        "tensors",
        "2  run",
        [
            Row("KVCache.apply", "copies and swaps, in their order", code("model/kv_cache.py#KVCache.apply")),
            Row("StepInputs.build", "the chunks, one behind the other", code("runner.py#StepInputs.build")),
            Row("GPT.forward", "one pass over all rows; each layer", code("model/gpt.py#GPT.forward")),
            Row("TorchRunner._attend", "writes K and V, then reads", code("runner.py#TorchRunner._attend"), depth=1),
            Row("Sampler.sample", "a token from each last row", code("model/sampler.py#Sampler.sample")),
        ],
        "Ctrl-C strikes",
    )
    gap = y
    d.arrow((108, gap + 2), (108, gap + 70), colour="plan")
    d.row(114, gap + 13, 106, Row("StepResult", "it went well", code("plan.py#StepResult")))
    d.arrow((300, gap + 2), (300, gap + 70), colour="red")
    d.words(308, gap + 41, "it raised", room=80, colour="red")
    half = (WIDTH - 2 * MARGIN - 8) / 2
    right = MARGIN + half + 8
    books = gap + 72
    y = d.lane(
        books,
        "bookkeeping",
        "3  commit",
        [
            Row("Scheduler.commit", "books the tokens", code("scheduler.py#Scheduler.commit")),
            Row("end_step", "nodes are final", code(f"{manager}end_step"), depth=1),
            Row("_fork_others", "n answers part", code("scheduler.py#Scheduler._fork_others"), depth=1),
            Row("_end", "who is done goes", code("scheduler.py#Scheduler._end"), depth=1),
        ],
        x=MARGIN,
        width=half,
    )
    d.lane(
        books,
        "bookkeeping",
        "3  or fail",
        [
            Row("Scheduler.fail", "books the failure", code("scheduler.py#Scheduler.fail")),
            Row("abort_step", "nodes vanish", code(f"{manager}abort_step"), depth=1),
            Row("moves not made", "in the next plan", code("plan.py#StepPlan"), depth=1),
            Row("_end", 'with "error"', code("scheduler.py#Scheduler._end"), depth=1),
        ],
        x=right,
        width=half,
    )
    d.arrow((CENTRE - half / 2, y + 2), (CENTRE - half / 2, y + 22))
    d.arrow((CENTRE + half / 2, y + 2), (CENTRE + half / 2, y + 22))
    d.lane(
        y + 24,
        "people",
        "who listens",
        [Row("StepRecord", "what was done, and why; on it goes", code("trace.py#StepRecord"))],
    )
    return d


DIAGRAMS = (life_of_a_request, life_of_a_block, life_of_a_step)


def main() -> None:
    """Writes the three files."""
    for draw in DIAGRAMS:
        diagram = draw()
        path = ASSETS / f"{diagram.name}.svg"
        path.write_text(diagram.svg(), encoding="utf-8")
        print(f"wrote {path}")


if __name__ == "__main__":
    main()
