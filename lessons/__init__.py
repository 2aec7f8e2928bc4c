"""The lessons: they import minipaged, and minipaged never imports them."""
