"""How memory was given out before paging: one region of neighbouring token slots per sequence, under our scheduler."""
