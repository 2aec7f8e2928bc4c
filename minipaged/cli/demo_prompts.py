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
    "彩虹是什么？",
    "给我讲讲蜜蜂。",
    "你能介绍一下光合作用吗？",
    "我想了解虚拟内存。",
    "请写一首关于春天的诗，模仿李白的风格",
    "讲一个关于勇敢的狐狸阿福的故事",
    "讲一个关于水獭小雨的故事",
    "What is quantum entanglement?",
    "Please explain what black holes are.",
    "Tell me about the brain.",
    "Explain gravity to a child.",
    "Can you explain tides?",
    "I want to learn about chess.",
    "Write a poem about autumn in the style of Du Fu.",
    "Tell me a story about a brave fox named Mila.",
    "Tell me a story about a hedgehog named Otto.",
)

# Lessons so far: the system prompt and some turns. Several students ask something of their own at the end of each.
_LESSON_EN = """\
System: You are a patient teacher. Answer in a few short sentences.
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
系统：你是一位耐心的老师，请用几句简短的话回答。
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
_LESSON_QUESTIONS_EN = ("Please explain what the moon is.", "Tell me about rainbows.", "What are comets?")
_LESSON_QUESTIONS_ZH = ("给我讲讲月亮。", "给我讲讲彗星。")

DEMO_PROMPTS: tuple[DemoPrompt, ...] = (
    *(DemoPrompt(question, question) for question in _QUESTIONS),
    *(
        # No space behind "Assistant:": it belongs to the answer's first word.
        DemoPrompt(f"{_LESSON_EN}User: {question}\nAssistant:", question, one_line=True)
        for question in _LESSON_QUESTIONS_EN
    ),
    *(
        DemoPrompt(f"{_LESSON_ZH}用户：{question}\n助手：", question, one_line=True)
        for question in _LESSON_QUESTIONS_ZH
    ),
)
# Those whose answers the demo prints in full.
SHOWN_TITLES = (
    "请解释什么是量子纠缠",
    "请解释什么是黑洞",
    "Tell me a story about a brave fox named Mila.",
    "给我讲讲月亮。",
)
