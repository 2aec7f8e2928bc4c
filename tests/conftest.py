"""What all tests share."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

# Before torch is imported anywhere: the tests' matrices are too small to gain from threads, and threads that wait for
# each other on a busy machine make them a hundred times slower.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Timing is no criterion on a shared machine. `--hypothesis-profile=million` runs a million actions per state machine.
settings.register_profile("ci", max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("million", settings.get_profile("ci"), max_examples=20_000, stateful_step_count=50)
settings.load_profile("ci")
