"""Lesson 0: the text, tokenizer, training and judging of tiny-gpt, the model that every later lesson runs."""
