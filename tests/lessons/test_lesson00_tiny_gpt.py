"""Lesson 0: the text's probabilities, the tokenizer, a short training, the shipped files; the table and its rivals."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from itertools import combinations, islice, pairwise
from pathlib import Path

import pytest
import torch
from tokenizers import Tokenizer

from lessons.lesson00_tiny_gpt import __main__ as lesson
from lessons.lesson00_tiny_gpt.bigram_table import BigramTable
from lessons.lesson00_tiny_gpt.corpus import KIND_WEIGHTS, Corpus
from lessons.lesson00_tiny_gpt.draw import Draw, EveryDraw
from lessons.lesson00_tiny_gpt.experiment import num_documents
from lessons.lesson00_tiny_gpt.factory import ASSETS, main
from lessons.lesson00_tiny_gpt.generation import Continuation, generate
from lessons.lesson00_tiny_gpt.judge import assess, bits_per_token, distinct_share
from lessons.lesson00_tiny_gpt.learning_curve import learning_curve, means
from lessons.lesson00_tiny_gpt.model_folder import load_model_folder
from lessons.lesson00_tiny_gpt.poems import poem
from lessons.lesson00_tiny_gpt.questions import (
    HELD_OUT_QUESTIONS,
    LOOSE_WORDS,
    QUESTIONS,
    ask,
    fill,
    question_and_answer,
    walk,
)
from lessons.lesson00_tiny_gpt.small_gpt import NOTHING, batch, batches, train_small_gpt
from lessons.lesson00_tiny_gpt.stories import story
from lessons.lesson00_tiny_gpt.subjects import LANGUAGES, Language, Subject, load_subjects
from lessons.lesson00_tiny_gpt.texts import Texts, make_texts, reckoned_bits_per_document
from lessons.lesson00_tiny_gpt.token_stream import WindowSampler, make_token_stream
from lessons.lesson00_tiny_gpt.tokenizer_training import END_OF_TEXT, train_tokenizer
from lessons.lesson00_tiny_gpt.trainable_gpt import GPTShape, TrainableGPT
from lessons.lesson00_tiny_gpt.training import TrainingPlan, next_token_loss, train
from minipaged.viz.theme import Theme


def toy_subjects(num_subjects: int = 2, num_sentences: int = 5) -> list[Subject]:
    return [
        Subject(f"s{i}", "en", f"thing {i}", "is", tuple(f"Thing {i} has part {j}." for j in range(num_sentences)))
        for i in range(num_subjects)
    ]


# --- probabilities ---------------------------------------------------------------------------------------------------


def test_every_draw_visits_every_branch_once() -> None:
    every = EveryDraw()
    seen = {}
    for _ in every.rounds():
        outcome = (every.choice("ab"), every.weighted((1, 2), (3, 1)) if every.chance(0.25) else 0)
        seen[outcome] = 2**every.log2_probability
    assert seen == pytest.approx(
        {("a", 1): 3 / 32, ("a", 2): 1 / 32, ("a", 0): 3 / 8, ("b", 1): 3 / 32, ("b", 2): 1 / 32, ("b", 0): 3 / 8}
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_poems_are_distinct_and_their_probabilities_sum_to_one(language: Language) -> None:
    every = EveryDraw()
    probability: Counter[str] = Counter()
    derivations = 0
    for _ in every.rounds():
        probability[poem(every, language)] += 2**every.log2_probability  # type: ignore[assignment]
        derivations += 1
    assert derivations == len(probability) == 2 * 2 * 8 * math.comb(8, 4)
    assert sum(probability.values()) == pytest.approx(1)


def test_all_answers_are_distinct_and_their_probabilities_sum_to_one() -> None:
    every = EveryDraw()
    subjects = toy_subjects()
    texts = {}
    derivations = 0
    for _ in every.rounds():
        text = question_and_answer(every, subjects)
        texts[text] = 2**every.log2_probability
        derivations += 1
    assert len(texts) == derivations
    assert sum(texts.values()) == pytest.approx(1)


def test_frequencies_fit_the_probabilities() -> None:
    draw = Draw(3)
    probability, count = {}, Counter[tuple[int, ...]]()
    rounds = 20_000
    for _ in range(rounds):
        draw.reset()
        taken = tuple(walk(draw, num_sentences=6, shortest=2, longest=4))
        probability[taken] = 2**draw.log2_probability
        count[taken] += 1
    assert sum(probability.values()) == pytest.approx(1, abs=0.01)  # the walks not seen are rare ones
    for taken, p in probability.items():
        five_sigma = 5 * math.sqrt(rounds * p * (1 - p)) + 1
        assert abs(count[taken] - rounds * p) < five_sigma, taken


@pytest.mark.parametrize("freely", [False, True])
def test_equal_documents_have_equal_probabilities_and_kinds_come_as_often_as_they_should(freely: bool) -> None:
    """Two derivations of one text would show here as one text with two probabilities."""
    seen: dict[str, float] = {}
    kinds = Counter[str]()
    documents = 8000
    for document in islice(Corpus(5, freely=freely), documents):
        kinds[document.kind] += 1
        assert seen.setdefault(document.text, document.log2_probability) == pytest.approx(document.log2_probability)
    for kind, weight in KIND_WEIGHTS.items():
        p = weight / sum(KIND_WEIGHTS.values())
        assert abs(kinds[kind] - documents * p) < 5 * math.sqrt(documents * p * (1 - p))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_story_has_no_open_slots_and_ends_with_a_moral(language: Language) -> None:
    draw = Draw(1)
    for _ in range(300):
        text = story(draw, language)
        assert "{" not in text and "  " not in text
        assert 8 <= len(text.split("\n")[1].replace("。", ". ").split(". ")) <= 20
    every_story = {story(draw, language) for _ in range(300)}
    assert len(every_story) > 290


def test_answers_walk_forward_through_one_subject() -> None:
    subject = toy_subjects(1, 13)[0]
    draw = Draw(9)
    for _ in range(200):
        answer = question_and_answer(draw, [subject]).split("\n")[1].rstrip(".")
        indices = [subject.sentences.index(sentence + ".") for sentence in answer.split(". ")]
        assert indices == sorted(set(indices))
        assert 3 <= len(indices) <= 7


def test_held_out_forms_are_held_out() -> None:
    for language in LANGUAGES:
        assert not {form[:-1] for form in QUESTIONS[language]} & {form[:-1] for form in HELD_OUT_QUESTIONS[language]}
        subject = load_subjects(language)[0]
        asked = {fill(form, subject)[:-1] for form in HELD_OUT_QUESTIONS[language]}
        for freely in (False, True):
            questions = {
                document.text.split("\n")[0].rstrip(".?。？") for document in islice(Corpus(1, freely=freely), 4000)
            }
            assert not asked & questions


@pytest.mark.parametrize("language", LANGUAGES)
def test_questions_put_freely_can_be_read_back_in_one_way_only(language: Language) -> None:
    """What `LOOSE_WORDS` promises: without it one text would have two derivations, and the floor would be wrong."""
    words = LOOSE_WORDS[language]
    assert len(set(words)) == len(words)
    names = [subject.name for subject in load_subjects(language)]
    if language == "zh":  # no spaces: neither a word nor a name may begin another word; names may begin names
        assert not any(one != other and other.startswith(one) for one in words for other in words)
        assert not any(word.startswith(name) for word in words for name in names)
        # A name may begin with a word only if what is left of it is not the beginning of a row of words and names.
        left = [name.removeprefix(word) for word in words for name in names if name.startswith(word)]
        assert not any(rest.startswith((*words, *names)) for rest in left)
    else:
        assert not set(words) & {word for name in names for word in name.split()}
    for form in (*QUESTIONS[language], *HELD_OUT_QUESTIONS[language]):
        rest = form[:-1].replace("{name}", " ").replace("{verb}", "is")
        for word in sorted(words, key=len, reverse=True):
            rest = re.sub(rf"\b{word}\b", "", rest) if language == "en" else rest.replace(word, "")
        assert rest.strip(), form  # a word is left that is not loose, so no row of loose words is this form


def test_the_first_course_is_not_changed_by_the_second() -> None:
    subject = load_subjects("en")[1]
    plain, free = (
        {ask(draw, subject, freely=freely) for _ in range(400)} for draw, freely in ((Draw(1), False), (Draw(1), True))
    )
    assert len(plain) <= 6 * 4
    assert len(free) > 100
    assert any("a black hole" in question for question in free)
    assert all("black hole" in question for question in free)


# --- the same bytes ---------------------------------------------------------------------------------------------------


def digest(seed: int) -> str:
    return hashlib.sha256("\0".join(document.text for document in islice(Corpus(seed), 500)).encode()).hexdigest()


def test_one_seed_gives_the_same_text_and_another_gives_another() -> None:
    assert digest(1) == digest(1) != digest(2)


def test_training_the_tokenizer_twice_gives_the_same_file() -> None:
    assert train_tokenizer(1, num_documents=300).to_str() == train_tokenizer(1, num_documents=300).to_str()


# --- the shipped tokenizer --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.from_file(str(ASSETS / "tokenizer.json"))


@pytest.mark.parametrize(
    "text",
    [
        *("", " ", "\ttab\r\n\n  x ", "\x00\x7f"),
        *("请解释什么是量子纠缠", "ＡＢ，。！\u3000", "𠮷野"),
        *("🙂👩‍🚀", "안녕하세요", "Ünïcödé “quoted” — …"),
    ],
)
def test_any_text_comes_back(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_the_tokenizer_has_2048_tokens_of_which_the_first_ends_a_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.get_vocab_size() == 2048
    assert tokenizer.token_to_id(END_OF_TEXT) == 0
    assert tokenizer.encode("a" + END_OF_TEXT).ids[-1] == 0


def test_questions_about_two_things_share_their_first_tokens(tokenizer: Tokenizer) -> None:
    one, other = tokenizer.encode("请解释什么是量子纠缠").ids, tokenizer.encode("请解释什么是黑洞").ids
    assert one[:6] == other[:6]
    assert one[6] != other[6]


# --- windows, training, generation ------------------------------------------------------------------------------------


def test_windows_are_cut_from_the_stream_with_consecutive_positions(tokenizer: Tokenizer) -> None:
    stream = make_token_stream(1, tokenizer, 20_000)
    sampler = WindowSampler(stream, seed=0, batch_tokens=4096)
    joined = " ".join(map(str, stream.tokens.tolist()))
    starts_at_zero = 0
    for step in range(6):
        inputs, targets, positions = sampler.batch(step)
        assert inputs.shape == ((4, 1024) if step == 5 else (16, 256))
        assert torch.equal(inputs[:, 1:], targets[:, :-1])
        assert torch.equal(positions.diff(dim=1), torch.ones_like(positions[:, 1:]))
        assert int(positions.min()) >= 0 and int(positions.max()) < 1024
        assert " ".join(map(str, inputs[0].tolist())) in joined
        starts_at_zero += int((positions[:, 0] == 0).sum())
    assert starts_at_zero > 20
    again = WindowSampler(stream, seed=0, batch_tokens=4096).batch(3)
    assert all(torch.equal(a, b) for a, b in zip(again, sampler.batch(3), strict=True))


def test_a_resumed_run_ends_where_an_unbroken_one_does(tokenizer: Tokenizer, tmp_path: Path) -> None:
    stream = make_token_stream(1, tokenizer, 20_000)
    shape = GPTShape(n_embd=32, n_layer=1, n_head=2)

    plan = TrainingPlan(shape=shape, steps=4, batch_tokens=1024, warmup_steps=2, log_every=3, checkpoint_every=2)

    def pull_the_plug(line: str) -> None:
        if line.startswith("step"):  # after step 3, that is after the checkpoint of step 2
            raise InterruptedError

    unbroken, losses = train(plan, stream, log=lambda line: None)
    with pytest.raises(InterruptedError):
        train(plan, stream, checkpoint_folder=tmp_path, log=pull_the_plug)
    resumed, losses_after = train(plan, stream, checkpoint_folder=tmp_path, log=lambda line: None)
    assert losses_after == losses[2:]
    for name, tensor in unbroken.state_dict().items():
        assert torch.equal(tensor, resumed.state_dict()[name])


def test_a_small_training_learns_and_saves_a_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    threads = str(torch.get_num_threads())  # `main` sets them; the tests after this one want them as they were
    assert main(["--small", "--steps", "30", "--threads", threads, "--out", str(tmp_path)]) == 0
    report = [line for line in capsys.readouterr().out.splitlines() if line.startswith("step")]
    bits = [float(line.split("bits/token")[1].split()[0]) for line in report]
    assert len(bits) == 3
    assert bits[-1] < bits[0] - 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors", "tokenizer.json"]
    model, _ = load_model_folder(tmp_path)
    assert model.shape == GPTShape(n_embd=64, n_layer=2, n_head=2)


def test_small_refuses_to_replace_the_shipped_model(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--small"])
    assert "--out" in capsys.readouterr().err


def test_padded_prompts_with_a_past_continue_as_each_would_alone_without_one(tokenizer: Tokenizer) -> None:
    torch.manual_seed(0)
    model = TrainableGPT(GPTShape(n_embd=32, n_layer=2, n_head=2))
    with torch.no_grad():
        model.wte.weight.mul_(20)  # logits far enough apart that rounding cannot turn a choice
    prompts = ["光", "What is light?", "请解释什么是量子纠缠"]
    together = generate(model, tokenizer, prompts, max_tokens=8)
    for prompt, continuation in zip(prompts, together, strict=True):
        ids = tokenizer.encode(prompt).ids
        for expected in continuation.token_ids:
            positions = torch.arange(len(ids))[None]
            assert int(model(torch.tensor([ids]), positions)[0, -1].argmax()) == expected
            ids.append(expected)


# --- the judge --------------------------------------------------------------------------------------------------------


def test_the_judge_counts_sentences_of_the_asked_subject_only() -> None:
    subjects = toy_subjects(2, 3)
    right_and_wrong = Continuation("\nThing 0 has part 1. Thing 1 has part 1. Moon!", (1, 2, 3, 4, 5), True)
    figures = assess([right_and_wrong], subjects[:1])
    assert (figures.sentences, figures.on_subject, figures.ended) == (3, pytest.approx(1 / 3), 1.0)
    assert figures.near_subject == pytest.approx(2 / 3)


def test_distinct_share_by_hand() -> None:
    assert distinct_share([[1, 2, 3, 4, 5], [1, 2, 3, 4]]) == pytest.approx(2 / 3)


# --- the shipped model ------------------------------------------------------------------------------------------------


def test_the_shipped_folder_holds_three_small_files() -> None:
    sizes = {path.name: path.stat().st_size for path in ASSETS.iterdir()}
    assert set(sizes) == {"config.json", "model.safetensors", "tokenizer.json"}
    assert sum(sizes.values()) <= 4_000_000
    config = json.loads((ASSETS / "config.json").read_text())
    assert (config["model_type"], config["architectures"], config["eos_token_id"]) == ("gpt2", ["GPT2LMHeadModel"], 0)


def test_the_shipped_model_answers_on_the_subject_and_stops() -> None:
    model, tokenizer = load_model_folder(ASSETS)
    asked = [subject for language in LANGUAGES for subject in load_subjects(language)[:6]]
    prompts = [fill(HELD_OUT_QUESTIONS[subject.language][0], subject) for subject in asked]
    figures = assess(generate(model, tokenizer, prompts), asked)
    assert figures.on_subject >= 0.8
    assert figures.ended >= 0.9


def test_the_shipped_model_predicts_late_positions_as_well_as_early_ones() -> None:
    """Long prompts work only if the position embeddings beyond the short windows were trained too."""
    model, tokenizer = load_model_folder(ASSETS)
    stream = make_token_stream(77, tokenizer, 20_000)
    inputs, targets, _ = WindowSampler(stream, seed=0, batch_tokens=4096).batch(0)
    columns = torch.arange(256).expand_as(inputs)
    with torch.inference_mode():
        early, late = (float(next_token_loss(model, inputs, targets, columns + offset)) for offset in (0, 768))
    assert late < early + 0.1


def test_every_subject_of_one_language_is_in_the_other() -> None:
    english, chinese = ([subject.id for subject in load_subjects(language)] for language in LANGUAGES)
    assert english == chinese
    assert len(english) == 48
    for one, other in combinations([subject.name for subject in load_subjects("en")], 2):
        assert one != other


# --- the lesson: the table, the small GPT, the floor ------------------------------------------------------------------


@pytest.fixture(scope="module")
def texts() -> Texts:
    return make_texts("en", 480, 64)


def test_a_corpus_of_one_kind_has_the_probabilities_of_that_kind() -> None:
    """P(text | an English answer) = P(text) / P(an English answer)."""
    among_all = {document.text: document.log2_probability for document in islice(Corpus(1), 6000)}
    share = math.log2(0.5 * KIND_WEIGHTS["answer"] / sum(KIND_WEIGHTS.values()))
    met = 0
    for document in islice(Corpus(2, kinds=("answer",), languages=("en",)), 3000):
        assert (document.kind, document.language) == ("answer", "en")
        if document.text in among_all:
            met += 1
            assert document.log2_probability == pytest.approx(among_all[document.text] - share)
    assert met > 20


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_floor_reckoned_from_the_rules_is_the_logged_one(language: Language) -> None:
    documents = list(islice(Corpus(3, kinds=("answer",), languages=(language,)), 3000))
    logged = -sum(document.log2_probability for document in documents) / len(documents)
    assert reckoned_bits_per_document(language) == pytest.approx(logged, rel=0.01)


def test_the_table_forgets_all_but_one_token_and_ends(texts: Texts) -> None:
    table = BigramTable(texts.training, texts.vocab_size, texts.end_of_text)
    one, other = (texts.tokenizer.encode(text).ids for text in ("What are black holes?", "What is bread?"))
    written = [table.generate(prompt, 400, seed=3) for prompt in (one, other)]
    assert written[0] == written[1] != table.generate(one, 400, seed=4)
    lengths = [len(table.generate(one, 400, seed)) for seed in range(20)]
    assert sum(length < 400 for length in lengths) > 10
    assert table.generate(one, 5, seed=3) == written[0][:5]


def test_the_table_needs_more_for_text_that_it_has_not_counted_and_less_than_its_followers_allow(texts: Texts) -> None:
    table = BigramTable(texts.training, texts.vocab_size, texts.end_of_text, smoothing=1e-9)
    assert table.bits_per_token(texts.training) < table.bits_per_token(texts.held_out)
    assert table.bits_per_token(texts.training) < table.followers_bits
    assert table.num_pairs == len({pair for d in texts.training for pair in zip([0, *d], [*d, 0], strict=True)})


def test_a_batch_by_hand_and_every_document_once() -> None:
    inputs, targets = batch([[5, 7], [3]], end_of_text=0)
    assert inputs.tolist() == [[0, 5, 7], [0, 3, 0]]
    assert targets.tolist() == [[5, 7, 0], [3, 0, NOTHING]]
    documents = [[i] * (1 + i * 37 % 50) for i in range(150)]
    cut = batches(documents, seed=1)
    assert sorted(document for piece in cut for document in piece) == sorted(documents)
    assert {len(piece) for piece in cut} == {8, 150 % 8}
    assert cut == batches(documents, seed=1) != batches(documents, seed=2)
    padding = sum(max(map(len, piece)) * len(piece) for piece in cut) - sum(map(len, documents))
    assert padding < 0.2 * sum(map(len, documents))


def test_bits_per_token_by_the_softmax_and_padding_costs_nothing() -> None:
    torch.manual_seed(0)
    model = TrainableGPT(GPTShape(vocab_size=11, n_positions=16, n_embd=8, n_layer=1, n_head=2))
    documents = [[5, 7, 3, 9, 1, 2], [4], []]
    bits = 0.0
    with torch.inference_mode():
        for document in documents:
            row = [0, *document, 0]
            log_p = model(torch.tensor([row[:-1]]), torch.arange(len(row) - 1)[None])[0].log_softmax(-1)
            bits -= sum(float(log_p[i, token]) for i, token in enumerate(row[1:])) / math.log(2)
    assert bits_per_token(model, documents, 0) == pytest.approx(bits / (7 + 2 + 1), rel=1e-5)


def test_the_small_gpt_learns_the_same_each_time(texts: Texts) -> None:
    few = Texts(
        texts.language, texts.tokenizer, texts.training[:64], texts.held_out, texts.floor_bits_per_token, 0,
        texts.example,
    )  # fmt: skip
    (one, losses), (_, again) = train_small_gpt(few), train_small_gpt(few)
    assert losses == again
    assert len(losses) == 8
    assert losses[0] == pytest.approx(11, abs=0.5)  # random weights know nothing: log2 2048
    assert losses[-1] < losses[0] - 0.4
    assert bits_per_token(one, texts.held_out, 0) < losses[0] - 0.4


def test_the_curve_stands_where_its_logarithm_says() -> None:
    assert means([8.0, 6.0, 2.0], num_columns=2) == [7.0, 2.0]
    picture = learning_curve(Theme(unicode=False, colors="none"), [8.0, 4.0, 2.0], [("top", 8.0), ("floor", 1.0)])
    plain = picture.plain.splitlines()
    assert plain[1:8] == [
        "    8 |###~~~~~~ 8.00 top",
        "      |",
        "    4 |   ###",
        "      |",
        "    2 |      ###",
        "      |",
        "    1 |~~~~~~~~~ 1.00 floor",
    ]
    assert plain[-1].split() == ["1", "3", "steps"]
    assert picture.plain.isascii()


def test_a_small_run_puts_everybody_in_order(capsys: pytest.CaptureFixture[str]) -> None:
    assert lesson.main(["--small", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    bits = {row["name"]: row["bits_per_token"] for row in figures["rows"]}
    assert bits["uniform"] == 11
    assert bits["uniform"] > bits["unigram table"] > bits["bigram table"] > bits["shipped GPT"] > bits["floor"]
    assert bits["small GPT"] < bits["unigram table"]
    assert figures["curve"][-1] < figures["curve"][0] - 2
    assert figures["answers"]["shipped GPT"].startswith("\nBlack holes are ")
    assert figures["reckoned_bigram"] > bits["bigram table"] - 0.5


def test_full_and_judge_are_the_factorys(monkeypatch: pytest.MonkeyPatch) -> None:
    called = []
    monkeypatch.setattr(lesson.factory, "main", lambda arguments: called.append(arguments) or 7)
    assert lesson.main(["--full", "--steps", "3"]) == 7
    assert lesson.main(["--judge=folder"]) == 7
    assert called == [["--full", "--steps", "3"], ["--judge=folder"]]


def test_what_the_readme_says_of_the_table() -> None:
    texts = make_texts("en", *num_documents(small=False))
    table = BigramTable(texts.training, texts.vocab_size, texts.end_of_text)
    [black] = texts.tokenizer.encode(" black").ids
    followers = {texts.tokenizer.decode([token]): n for token, n in table.counts[black].items() if n}
    assert followers == {" holes": 497, " ho": 170, " even": 31}
    assert texts.num_repeated == 65
    stick = [texts.tokenizer.token_to_id(token) for token in ("Ġst", "ick", "el", "f")]
    assert all(table.counts[a][b] for a, b in pairwise(stick))
    assert "stickelf" not in " ".join(texts.tokenizer.decode(document) for document in texts.training)
