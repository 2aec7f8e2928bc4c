"""The site's hooks and the scripts of its pictures, which are no packages: imported by their paths, as mkdocs does."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tests.docs.pages import DOCS


def load(path: Path) -> ModuleType:
    """A file, which finds those that lie beside it."""
    spec = importlib.util.spec_from_file_location(f"docs_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up there
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path.remove(str(path.parent))
    return module


site_map = load(DOCS / "hooks" / "site_map.py")
