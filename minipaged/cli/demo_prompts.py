"""What the demo asks: short questions that want long answers, and long lessons in which one more question is asked.

The forms and subjects are those that tiny-gpt was trained on, in English and Chinese. Plain text: no tokens, no steps.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DemoPrompt:
    """A prompt.

    Args:
        text: all of what the model is given.
        title: what a person is shown; of a dialogue, its last question.
        one_line: the answer ends with its line: in a dialogue, the model would go on to write the user's next one.
    """

    text: str
    title: str
    one_line: bool = False


_QUESTIONS = (
    "请解释什么是量子纠缠",
    "请解释什么是黑洞",
    "我想了解虚拟内存。",
    "请写一首关于春天的诗，模仿李白的风格。",
    "请写一首关于秋天的诗，模仿杜甫的风格。",
    "讲一个关于勇敢的狐狸阿福的故事。",
    "Please explain what black holes are.",
    "Tell me about the brain.",
    "Can you explain tides?",
    "Write a poem about spring in the style of Li Bai.",
    "Write a poem about autumn in the style of Du Fu.",
    "Tell me a story about a brave fox named Mila.",
)

# Dialogues. All of a language begin with its system prompt; some students ask at once, some at the end of a lesson.
_SYSTEM_EN = "System: You are a patient teacher. Answer in a few short sentences.\n"
_SYSTEM_ZH = "系统：你是一位耐心的老师，请用几句简短的话回答。\n"
_LESSON_EN = """\
User: What is the sun?
Assistant: The sun is the star at the center of our solar system. The sun is a giant ball of hot, glowing gas called \
plasma. Deep in the solar core, hydrogen fuses into helium and releases enormous energy. The visible surface of the \
sun is about five and a half thousand degrees Celsius.
User: Tell me more.
Assistant: The sun is so wide that about one hundred Earths would fit across it. Almost all of the mass in the solar \
system belongs to the sun. Dark sunspots are cooler areas where strong magnetic fields hold back heat. The sun \
spins, and its equator turns faster than its poles.
User: Can you explain light?
Assistant: Light is a kind of energy that travels as waves and lets us see. Nothing in the universe can travel \
faster than light does in empty space. Light takes about eight minutes to travel from the sun to the Earth. We see \
most objects because they reflect light into our eyes.
"""
_LESSON_ZH = """\
用户：什么是太阳？
助手：太阳是位于太阳系中心的一颗恒星。太阳是一个又大又热、会发光的气体球。在太阳的核心，氢聚变成氦，放出巨大的能量。\
太阳表面的温度大约有五千五百摄氏度。
用户：再多讲一点。
助手：太阳的直径大约是地球的一百零九倍。太阳系的绝大部分质量都集中在太阳身上。太阳黑子看起来发暗，是因为那里温度较低。\
太阳一直在自转，中间转得比两极快。
用户：我想了解光。
助手：光是一种能量，以波的形式传播，让我们看见世界。宇宙中没有什么比真空中的光跑得更快。太阳发出的光大约要八分钟才能到达地球。\
我们看见物体，多半是因为它们把光反射进了眼睛。
"""


def _dialogue_en(lesson: str, question: str) -> DemoPrompt:
    # No space behind "Assistant:": it belongs to the answer's first word.
    return DemoPrompt(f"{_SYSTEM_EN}{lesson}User: {question}\nAssistant:", question, one_line=True)


def _dialogue_zh(lesson: str, question: str) -> DemoPrompt:
    return DemoPrompt(f"{_SYSTEM_ZH}{lesson}用户：{question}\n助手：", question, one_line=True)


DEMO_PROMPTS: tuple[DemoPrompt, ...] = (
    *(DemoPrompt(question, question) for question in _QUESTIONS),
    _dialogue_en("", "What is tea?"),
    _dialogue_en("", "Explain gravity to a child."),
    _dialogue_en(_LESSON_EN, "Please explain what the moon is."),
    _dialogue_en(_LESSON_EN, "What are comets?"),
    _dialogue_zh("", "给我讲讲蜜蜂。"),
    _dialogue_zh("", "彩虹是什么？"),
    _dialogue_zh("", "什么是面包？"),
    _dialogue_zh(_LESSON_ZH, "给我讲讲月亮。"),
)
# Those whose answers the demo prints in full.
SHOWN_TITLES = (
    "请解释什么是量子纠缠",
    "请解释什么是黑洞",
    "请写一首关于春天的诗，模仿李白的风格。",
    "What are comets?",
    "Tell me a story about a brave fox named Mila.",
)
