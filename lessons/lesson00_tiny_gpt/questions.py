"""Questions about a subject, and answers that walk through its sentences: six documents in ten.

The answer is an increasing walk, so the same subject is explained in many ways and none of them is nonsense. A model
that learns it has learnt two things: which sentences belong to a subject, and that an explanation moves forward.

It does not know how documents are mixed or tokenised.
"""

from __future__ import annotations

from collections.abc import Sequence

from lessons.lesson00_tiny_gpt.draw import Draw
from lessons.lesson00_tiny_gpt.subjects import Language, Subject

# The last character of each form is punctuation that a user may leave off, and so does the corpus, at random.
QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": (
        "What {verb} {name}?",
        "Please explain what {name} {verb}.",
        "Tell me about {name}.",
        "Can you explain {name}?",
        "I want to learn about {name}.",
        "Explain {name} to a child.",
    ),
    "zh": (
        "请解释什么是{name}。",
        "什么是{name}？",
        "{name}是什么？",
        "给我讲讲{name}。",
        "我想了解{name}。",
        "你能介绍一下{name}吗？",
    ),
}

# Never in the corpus: the judge asks them.
HELD_OUT_QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": (
        "Could you describe {name}?",
        "Teach me something about {name}.",
        "I would like to know what {name} {verb}.",
    ),
    "zh": ("请谈谈{name}。", "能说说{name}吗？", "请教教我{name}是什么。"),
}

GREETINGS: dict[Language, tuple[str, ...]] = {
    "en": ("Hello! ", "Hi there. ", "Excuse me. ", "Dear teacher, ", "A quick question: ", "If you have a minute: "),
    "zh": ("你好！", "老师好。", "请问，", "打扰一下，", "有个问题：", "不好意思，"),
}

# Words that may stand around a name. Each of the six forms has a word that is not among them, so no text is both a form
# and loose words; nor can they make up a held-out form. No Chinese word is the beginning of another, so that the
# same characters are never two rows of words.
LOOSE_WORDS: dict[Language, tuple[str, ...]] = {
    "en": (
        "could", "would", "you", "me", "please", "to", "know", "of", "for", "on", "and", "now", "show", "give", "some",
        "facts", "how", "why", "do", "we", "need", "like", "let", "us", "hear", "story", "short", "help",
        "my", "son", "with", "today", "maybe", "more", "really", "understand", "topic", "say",
    ),
    "zh": (
        "请", "可以", "帮", "我", "您", "告诉", "关于", "知道", "简单", "地", "一些", "事情", "今天", "孩子", "需要",
        "为", "写", "几句", "话", "学习", "想要", "明白", "有关", "的", "这", "课", "题目", "给", "大家", "说明",
    ),
}  # fmt: skip

SEPARATOR: dict[Language, str] = {"en": " ", "zh": ""}
START_WEIGHTS = (0.85, 0.06, 0.05, 0.04)
STEP_WEIGHTS = (0.84, 0.11, 0.05)


def fill(form: str, subject: Subject) -> str:
    """Returns the question that a form asks about a subject."""
    return form.format(name=subject.name, verb=subject.verb)


def one_of(subject: Subject) -> str:
    """Returns the name of a single one of a subject that is named in the plural: black holes, a black hole."""
    noun = subject.name.removesuffix("es") if subject.name.endswith("oes") else subject.name.removesuffix("s")
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def ask(draw: Draw, subject: Subject, *, freely: bool = False) -> str:
    """Returns one of the six questions about the subject, now and then typed carelessly.

    The final punctuation is left off in half the Chinese and a third of the English questions, and one English
    question in ten begins with a small letter, so that users who type so are answered too.

    Args:
        draw: Where chance comes from.
        subject: What is asked about.
        freely: Nearly half of the questions are put in other words: after a greeting, about a single one of the kind,
            or as any words around the name. A model that has seen only six forms looks for the form; these teach it to
            look for the name.
    """
    words = LOOSE_WORDS[subject.language]
    manner = draw.weighted(("form", "greeting", "loose"), (0.55, 0.15, 0.3)) if freely else "form"
    if manner == "loose":
        gap = SEPARATOR[subject.language]
        before = [draw.choice(words) for _ in range(draw.choice(range(6)))]
        behind = [draw.choice(words) for _ in range(draw.choice(range(3)))]
        return gap.join([*before, subject.name, *behind])
    form = draw.choice(QUESTIONS[subject.language])
    question = fill(form, subject)
    if freely and subject.verb == "are" and subject.language == "en" and draw.chance(0.25):
        question = form.format(name=one_of(subject), verb="is")
    if subject.language == "en" and draw.chance(0.1):
        question = question[0].lower() + question[1:]
    if manner == "greeting":
        question = draw.choice(GREETINGS[subject.language]) + question
    return question[:-1] if draw.chance(0.5 if subject.language == "zh" else 1 / 3) else question


def walk(draw: Draw, num_sentences: int, shortest: int, longest: int, after: int | None = None) -> list[int]:
    """Draws an increasing walk over the indices 0 … num_sentences - 1.

    Whether to stop is drawn after each index, so that the length is uniform in shortest … longest while the list lasts.
    Drawing the length first would give a walk that meets the end of the list several derivations, and its probability
    would no longer be the product of the choices.

    Args:
        draw: Where chance comes from.
        num_sentences: Length of the list.
        shortest: Indices in the shortest walk; fewer only if the list ends.
        longest: Indices in the longest walk.
        after: The index that the walk continues from, itself excluded; None starts anew.
    """

    def next_index(previous: int) -> int:
        steps = STEP_WEIGHTS[: num_sentences - 1 - previous]
        return previous + draw.weighted(range(1, len(steps) + 1), steps)

    first = draw.weighted(range(len(START_WEIGHTS)), START_WEIGHTS) if after is None else next_index(after)
    indices = [first]
    while indices[-1] < num_sentences - 1 and len(indices) < longest:
        if len(indices) >= shortest and draw.chance(1 / (longest - len(indices) + 1)):
            break
        indices.append(next_index(indices[-1]))
    return indices


def question_and_answer(draw: Draw, subjects: Sequence[Subject], *, freely: bool = False) -> str:
    """Writes one document: a question about one of the subjects, a newline, an answer of 3 to 7 sentences."""
    subject = draw.choice(subjects)
    question = ask(draw, subject, freely=freely)
    indices = walk(draw, len(subject.sentences), shortest=3, longest=7)
    return question + "\n" + SEPARATOR[subject.language].join(subject.sentences[i] for i in indices)
