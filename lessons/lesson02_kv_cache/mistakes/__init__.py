"""Wrong answers to lesson 2, each with the thought behind it. The check names them all."""
