"""The clone's own packages, whatever is installed and wherever mkdocs was started: a hook imports this before them.

What a hook adds to `sys.path`, mkdocs takes away again when the hook is loaded. A package that has been imported stays.
"""

from __future__ import annotations

import sys

from site_map import ROOT

for _place in (ROOT / "kernels", ROOT):
    if str(_place) not in sys.path:
        sys.path.insert(0, str(_place))

import minipaged_kernels

import lessons
import minipaged

__all__ = ["ROOT", "lessons", "minipaged", "minipaged_kernels"]
