"""RefusingScheduler: the engine's scheduler for a server that has no second chance to offer.

When a request needs one more block and none is left, it ends with an error. So what has been computed for it is lost,
and so is what its user has read so far. Nobody else is touched.
"""

from __future__ import annotations

from minipaged.request import Sequence
from minipaged.scheduler import Scheduler


class RefusingScheduler(Scheduler):
    """Ends whoever finds no block, where the engine's scheduler lets the youngest give way and come back."""

    def _preempt_youngest(self, needy: Sequence, n: int) -> Sequence:
        """No: it is the needy one that goes, for good."""
        needy.request.error = f"out of memory after {len(needy.draws)} tokens"
        self._end(needy, "error")
        return needy
