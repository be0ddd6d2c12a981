"""What hotspan has to say besides its results: each thing once per process."""

from __future__ import annotations

import sys
import warnings

_said: set[str] = set()


def say_once(text: str) -> None:
    """Print one line on stderr, unless it was printed before."""
    if text not in _said:
        _said.add(text)
        print(f"hotspan: {text}", file=sys.stderr)


def warn_once(text: str, stacklevel: int = 3) -> None:
    """Warn, unless the same was warned about before."""
    if text not in _said:
        _said.add(text)
        warnings.warn(text, stacklevel=stacklevel + 1)


def warn_deprecated(old: str, new: str, stacklevel: int) -> None:
    """Warn about a name of old; ``stacklevel`` 2 is the caller of whoever calls this."""
    warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=stacklevel + 1)
