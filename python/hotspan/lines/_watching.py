"""Who is told what a program has imported; see `_imports`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def _nobody(_thing: Any) -> None:
    return None


watch: Callable[[Any], None] = _nobody
