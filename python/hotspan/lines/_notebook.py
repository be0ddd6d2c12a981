"""``%load_ext hotspan.lines``: the magics ``%lprun`` and ``%%lprun_all`` of IPython and Jupyter."""

from __future__ import annotations

from typing import Any


def load_ipython_extension(ip: Any) -> None:
    """Register the magics; IPython calls this."""
    from hotspan.lines.ipython_extension import LineProfilerMagics

    ip.register_magics(LineProfilerMagics)
