"""`minipaged generate`: answers and nothing else on standard output, in an order that a reader can follow."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from minipaged import LLM, SamplingParams
from minipaged.answer_writer import Piece
from minipaged.cli import main
from minipaged.cli.generate import _Answer, _printable
from tests.cli.conftest import needs_shipped_model
from tests.docs.pages import README, shown_commands
from tests.tiny_folder import make_tiny_folder

QUICK = ["--max-tokens", "12", "--num-blocks", "64"]


def generate(model: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["generate", *arguments, "--model", str(model), *QUICK]) == 0
    output = capsys.readouterr()
    assert output.err == ""  # nothing there unless it is a terminal
    return output.out


def expected(model: Path, prompts: list[str], **params: object) -> list[list[str]]:
    llm = LLM(model, num_blocks=64)
    sampling = SamplingParams(max_tokens=12, **({"temperature": 0} | params))  # type: ignore[arg-type]
    return [[c.text for c in output.outputs] for output in llm.generate(prompts, sampling, progress=False)]


def test_one_prompt_gives_its_text_alone(random_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ((text,),) = expected(random_model, ["hello"])
    assert generate(random_model, capsys, "hello") == text.lstrip("\n") + "\n"


def test_several_prompts_come_in_their_order_under_headings(
    random_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    prompts = ["[bold]a[/bold]", "b", "你好"]  # no markup is read out of a prompt
    texts = [text.lstrip("\n") for (text,) in expected(random_model, prompts)]
    shown = generate(random_model, capsys, *prompts)
    assert shown == "\n".join(f"> {prompt}\n{text}\n" for prompt, text in zip(prompts, texts, strict=True))


def test_several_answers_are_numbered_and_differ(random_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (texts,) = expected(random_model, ["hello"], n=3, seed=5, temperature=0.8)
    shown = generate(random_model, capsys, "hello", "-n", "3", "--seed", "5")
    assert shown == "".join(f"[{i + 1}]\n" + text.lstrip("\n") + "\n" for i, text in enumerate(texts))
    assert len(set(texts)) == 3


def test_a_dash_reads_standard_input_whole(
    random_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("two\nlines\n"))
    ((text,),) = expected(random_model, ["two\nlines"])
    assert generate(random_model, capsys, "-") == text.lstrip("\n") + "\n"


def test_json_is_one_object_a_line_with_exact_text_and_usage(
    random_model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = generate(random_model, capsys, "hello", "你", "--json", "-n", "2", "--seed", "1").splitlines()
    texts = expected(random_model, ["hello", "你"], n=2, seed=1, temperature=0.8)
    objects = [json.loads(line) for line in lines]
    assert [o["prompt"] for o in objects] == ["hello", "你"]
    assert [[answer["text"] for answer in o["answers"]] for o in objects] == texts
    assert all(answer["finish_reason"] in ("stop", "length") for o in objects for answer in o["answers"])
    tokenizer = LLM(random_model, num_blocks=1).tokenizer
    assert tokenizer is not None
    for o in objects:
        prompt_tokens = len(tokenizer.encode(o["prompt"]))
        completion_tokens = sum(len(answer["token_ids"]) for answer in o["answers"])
        assert o["usage"] == {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
        }


def test_greedy_unless_variety_is_asked_for(random_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    greedy = generate(random_model, capsys, "hello")
    assert generate(random_model, capsys, "hello", "--temperature", "0", "--seed", "3") == greedy
    assert generate(random_model, capsys, "hello", "--top-k", "1") == greedy
    assert generate(random_model, capsys, "hello", "--seed", "3") != greedy
    assert generate(random_model, capsys, "hello", "--seed", "3") == generate(
        random_model, capsys, "hello", "--temperature", "0.8", "--seed", "3"
    )


def test_stop_strings_may_hold_a_newline(random_model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ((text,),) = expected(random_model, ["hello"], temperature=1.0, seed=1)
    letter = next(c for c in text if c.isascii() and c.isprintable())
    noisy = ["--temperature", "1", "--seed", "1"]
    stopped = generate(random_model, capsys, "hello", *noisy, "--stop", "\\n\\n", "--stop", letter)
    assert stopped == text[: text.index(letter)].lstrip("\n") + "\n"


def test_the_default_length_is_what_the_context_has_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = make_tiny_folder(tmp_path / "small", max_positions=32)
    assert main(["generate", "x" * 30, "--model", str(small), "--ignore-eos", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["answers"]
    assert (len(answer["token_ids"]), answer["finish_reason"]) == (3, "length")  # the last needs no position
    assert main(["generate", "x" * 30, "--model", str(small), "--max-tokens", "4"]) == 2
    assert "needs 33 token slots" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["", "fine"], "prompt 1: the prompt is empty"),
        (["fine", "bad \udce4"], "is not valid UTF-8"),
        (["x" * 100, "--num-blocks", "2"], "above the 32 token slots"),
        (["x", "--kv-cache-bytes", "1"], "do not hold one block"),
        (["x", "--device", "tpu"], "device is 'tpu'"),
        (["x", "--stop", ""], "strings that are not empty"),
    ],
)
def test_refusals(random_model: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", *arguments, "--model", str(random_model)]) == 2
    output = capsys.readouterr()
    assert output.out == "" and output.err.count("\n") == 1
    assert message in output.err


def test_a_failed_forward_pass_is_said_and_is_status_1(
    random_model: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*args: object) -> None:
        raise RuntimeError("the lights went out")

    monkeypatch.setattr("minipaged.model.gpt.GPT.logits", fail)
    assert main(["generate", "hello", "--model", str(random_model), *QUICK]) == 1
    assert "the lights went out" in capsys.readouterr().err


def test_a_pipe_gets_what_was_written_and_a_terminal_no_escape_sequence(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _printable("\x1b[2J") == "\x1b[2J"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    assert _printable("\x1b[2J") == "\ufffd[2J"


@needs_shipped_model
def test_the_shipped_model_explains_black_holes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "请解释什么是黑洞", "What is tea?"]) == 0
    shown = capsys.readouterr().out
    assert "黑洞是" in shown and "Tea is a drink" in shown


@needs_shipped_model
def test_the_three_answers_of_the_readme_differ(capsys: pytest.CaptureFixture[str]) -> None:
    (arguments,) = [arguments for _, arguments in shown_commands("minipaged", [README]) if "-n" in arguments]
    assert main([*arguments, "--json"]) == 0
    answers = json.loads(capsys.readouterr().out)["answers"]
    poems = [answer["text"].strip().splitlines() for answer in answers]
    assert len(poems) == 3 and all(answer["finish_reason"] == "stop" for answer in answers)
    lines = [line for poem in poems for line in poem]
    assert len(lines) > 9 and len(set(lines)) == len(lines), "no line comes twice"


@pytest.mark.parametrize(
    ("pieces", "shown"),
    [
        (["。", "\n", "黑洞", "是"], "黑洞是"),
        (["?\n", "Tea"], "Tea"),
        (["\n\n", "Tea"], "Tea"),
        (["。", "然后"], "。然后"),
        ([". ", "And"], ". And"),
        (["a", "\n", "b"], "a\nb"),
        (["。"], "。"),
    ],
)
def test_a_mark_that_the_question_lacked_is_not_shown(
    pieces: list[str], shown: str, capsys: pytest.CaptureFixture[str]
) -> None:
    answer = _Answer()
    for number, text in enumerate(pieces):
        answer.add(Piece(0, text, (1,), "stop" if number == len(pieces) - 1 else None))
    assert capsys.readouterr().out == shown
