"""Lesson 0: the text, the tokenizer, the training and the judging of tiny-gpt, the model that every later lesson runs."""
