"""The lessons: how an inference engine works, one question at a time. `python -m lessons` lists them.

They stand beside the house: they import minipaged, and nothing in minipaged imports them.
"""
