"""The dashboard inside a notebook: ``hotspan.view(trace)`` as the last line of a cell."""

from __future__ import annotations

import html
import os

from hotspan import _core
from hotspan.trace import Trace, open


class View:
    """The dashboard of a trace. A notebook shows it as a frame, which needs no server and asks nobody for anything."""

    def __init__(self, trace: Trace, name: str, height: int) -> None:
        page = _core.shared_page(trace._core, name)
        if page is None:
            raise _core.HotspanError("this hotspan was built without the dashboard: install it from a wheel")
        self._page = page
        self._height = height

    def _repr_html_(self) -> str:
        # Links to views would otherwise lead to the page around the frame.
        page = self._page.replace("<head>", '<head><base href="about:srcdoc">', 1)
        # The frame may run its script and save files, and reaches nothing of the notebook around it.
        page = html.escape(page, quote=True)
        return (
            f'<iframe srcdoc="{page}" sandbox="allow-scripts allow-downloads" title="hotspan" '
            f'style="width: 100%; height: {self._height}px; border: 1px solid #8884"></iframe>'
        )

    def __repr__(self) -> str:
        return "<hotspan.View: a notebook shows it; elsewhere use `hotspan view FILE`>"


def view(trace: Trace | str | os.PathLike[str], *, height: int = 800) -> View:
    """Show the dashboard of a trace, or of a file, in a cell of a notebook. ``height`` is in pixels."""
    if isinstance(trace, Trace):
        return View(trace, "trace", height)
    return View(open(trace), os.fspath(trace), height)
