"""What all tests share."""

from __future__ import annotations

import os

# Before torch is imported anywhere: the tests' matrices are too small to gain from threads, and threads that wait for
# each other on a busy machine make them a hundred times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")
