"""Wrong answers to lesson 1, each with the thought behind it. The check names them all."""
