"""Lesson 10, played: the same words computed twice and kept twice; then once, in a tree."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.text import Text

from lessons.lesson10_prefix_tree import LESSON
from lessons.lesson10_prefix_tree.experiment import (
    BLOCK_SIZE,
    NUM_PREDICTED,
    QUESTIONS,
    SYSTEM_BLOCK_SIZE,
    Figures,
    PoemServer,
    common_beginning,
    compare_twins,
    longest_beginnings,
    make_room,
    predicted,
    serve_system_prompt,
)
from lessons.runner.stage import Stage, run
from minipaged.parts import Parts
from minipaged.viz.block_map import block_map
from minipaged.viz.history import History
from minipaged.viz.picture import Picture
from minipaged.viz.sequence_view import block_tables
from minipaged.viz.theme import Theme, many, name
from minipaged.viz.tree_view import prefix_tree

ALL_HERE = QUESTIONS[-1].step  # the step in which the last question comes


def play(stage: Stage) -> Figures:
    """Both acts."""
    parts = stage.mine.parts()

    stage.act(1, "every request alone")
    server = PoemServer(Parts(), share=False, device=stage.device)
    server.run(until=2)
    stage.say(
        f"Two readers ask for a poem about spring, by Li Bai (李白) and by Du Fu (杜甫). Each prompt in blocks of "
        f"{BLOCK_SIZE} tokens, with the number of the physical block that holds their K and V:"
    )
    _show_words(stage, server, 2)
    stretches = compare_twins(server)
    num_layers = len(stretches[0].same)
    stage.table(
        "K and V of both, computed apart, compared bit for bit",
        ["positions", "tokens, A / B", *(f"layer {layer}" for layer in range(num_layers))],
        [
            (
                f"{stretch.start} to {stretch.end - 1}",
                " / ".join(dict.fromkeys(stretch.texts)),
                *("same" if same else "other" for same in stretch.same),
            )
            for stretch in stretches
        ],
        highlight="",
    )
    stage.say(
        f"The first {stretches[0].end} tokens were computed twice and are kept twice, with the same result to the last "
        "bit. Now look at the last line: the same words at the same places, but behind another name. Their K and V are "
        "others from the second layer on, since there each token has looked at all that stands before it."
    )
    server.run()
    alone = server.figures()
    prompts = [server.tokenizer.encode(question.prompt) for question in QUESTIONS[:NUM_PREDICTED]]
    lengths, beginnings = [len(prompt) for prompt in prompts], longest_beginnings(prompts)
    not_computed, saved = predicted(lengths, beginnings)
    english = common_beginning(prompts[2], prompts[3])
    hint = (
        f"Five questions come one after the other. Blocks of {BLOCK_SIZE} tokens that are full can be found again; "
        "inside a block, tokens that match are copied; one token of each prompt must be computed. "
        f"A and B have {lengths[0]} and {lengths[1]} tokens and begin alike for {beginnings[1]}. "
        f"C and D ask the same in English: {lengths[2]} and {lengths[3]} tokens, the first {english} alike. "
        f"E asks what A asked, when A's answer has begun. Of {sum(lengths)} tokens, how many need not be computed? "
        "And how many blocks need not be taken?"
    )
    guess_tokens = stage.predict("prompt tokens not computed", not_computed, "tokens", hint=hint)
    guess_blocks = stage.predict("blocks saved when E has come", saved, "blocks")

    stage.act(2, "a tree of what is there")
    server = PoemServer(parts, share=True, device=stage.device)
    server.run(until=ALL_HERE + 1)
    stage.say("The same questions, with a prefix tree. Blocks with the same number are the same block:")
    _show_words(stage, server, NUM_PREDICTED)
    picture = _picture(stage.theme, server, min(stage.console.width, 100))
    server.run()
    shared = server.figures()
    stage.table(
        "Where each prompt's tokens came from",
        ["question", "prompt", "shared in place", "copied", "computed", "blocks saved"],
        [
            (
                asked.name,
                asked.num_prompt,
                asked.num_in_place,
                asked.num_copied,
                asked.num_computed,
                asked.num_in_place // BLOCK_SIZE,
            )
            for asked in shared.asked
        ],
        highlight="",
    )
    _, b, _, d, e, _ = shared.asked
    stage.say(
        f"B shares {b.num_in_place // BLOCK_SIZE} full blocks. D shares {d.num_in_place // BLOCK_SIZE}, and "
        f"{d.num_copied} tokens of the next: that one is copied, because D goes on in it with other words. E finds all "
        f"of A's question and still computes {many(e.num_computed, 'token')}, for its logits. F asks the same, but "
        "with a salt of its own, so it has a root of its own and finds nothing. The tree and the map at that step:"
    )
    stage.picture(picture, "the prefix tree, and the blocks")
    same = _first_lines(shared.texts) == _first_lines(alone.texts) and shared.answers == alone.answers
    stage.say(
        f"A's poem begins [bold]{_first_lines(shared.texts)[0]}[/], B's [bold]{_first_lines(shared.texts)[1]}[/]. "
        + (
            "All six answers are the same as those given alone, token for token."
            if same
            else "[red]Not all answers are the same as those given alone.[/]"
        )
    )
    eviction = make_room(server)
    stage.say(
        f"When all have ended nobody holds a block, but {eviction.cached_before} are [bold]cached[/]: kept as long as "
        f"nobody needs the room. Then a stranger needs {eviction.needed} blocks, and {eviction.free_before} are free: "
        f"{eviction.evicted} are given up, those that were used longest ago, and of a path its end first. That was B's "
        f"poem. Of B's question {eviction.found_after[1]} tokens of {lengths[1]} are still there (before: "
        f"{eviction.found_before[1]}), since A's path begins with them; of A's, {eviction.found_after[0]}."
    )
    system_alone = serve_system_prompt(Parts(), share=False, small=stage.small, device=stage.device)
    system = serve_system_prompt(parts, share=True, small=stage.small, device=stage.device)
    stage.table(
        f"{system.num_questions} questions at once behind a system prompt of {system.num_common} tokens, blocks of "
        f"{SYSTEM_BLOCK_SIZE}",
        ["", "prompt tokens", "computed", "steps with prompts", "blocks at most"],
        [
            (label, f"{one.prompt_tokens:,}", f"{one.computed:,}", one.prompt_steps, one.most_blocks)
            for label, one in (("alone", system_alone), ("prefix tree", system))
        ],
    )
    measured_tokens = alone.prompt_tokens_computed - shared.prompt_tokens_computed
    stage.score(guess_tokens, measured_tokens)
    stage.score(guess_blocks, shared.blocks_saved)
    return Figures(
        alone=alone,
        shared=shared,
        stretches=stretches,
        eviction=eviction,
        system_alone=system_alone,
        system_shared=system,
        tokens_not_computed=measured_tokens,
        blocks_saved=shared.blocks_saved,
        same_answers=same and system.answers == system_alone.answers,
    )


def _show_words(stage: Stage, server: PoemServer, num: int) -> None:
    """The first prompts, block by block: the physical block's number, and its words."""
    theme, memory = stage.theme, server.memory
    seen: dict[int, int] = {}
    for i, sequence in enumerate(server.sequences[:num]):
        words = server.tokens(QUESTIONS[i].prompt)
        line = Text.assemble((f"{name(i)}  ", theme.owner(i)))
        for logical, block in enumerate(memory.table(sequence)):
            text = "".join(words[logical * BLOCK_SIZE : (logical + 1) * BLOCK_SIZE])
            if not text:
                break
            owner = seen.setdefault(block, i)
            line.append(f"{block}", theme.role("shared") if owner != i else theme.owner(i))
            line.append(f" {text.strip()}   ", theme.role("quiet"))
        stage.console.print(line, soft_wrap=True)
    stage.console.print()


def _picture(theme: Theme, server: PoemServer, width: int) -> Picture:
    """Tree, map and tables when the last question has come."""
    history = History(server.trace)
    moment, changes = history.moment(ALL_HERE), history.facts(ALL_HERE).changes
    return (
        prefix_tree(moment, theme, width, 16)
        + block_map(moment, changes, theme, width, 8)
        + block_tables(moment, changes, theme, width, len(moment.running) + 1)
    )


def _first_lines(texts: Sequence[str]) -> list[str]:
    return [text.split("\n", 1)[0].rstrip("，。,.") for text in texts]


def main(argv: Sequence[str] | None = None) -> int:
    """The lesson's command line."""
    return run(LESSON, play, argv)


if __name__ == "__main__":
    sys.exit(main())
