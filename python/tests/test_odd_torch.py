"""Modules named torch that are none, or of a kind that nobody foresaw: importing them is as without hotspan."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

#: What a torch has by which ``hotspan run`` knows it, with things that are not torch's.
_LOOKS_REAL = """
class Part:
    cuda = None
    def __getattr__(self, name): raise {error}
autograd = cuda = optim = version = Part()
def get_num_threads(): raise {error}
"""

STUBS = {
    "a number": "x = 1",
    "empty": "",
    "replaces itself with nothing": "import sys; sys.modules[__name__] = None",
    "replaces itself with an object": "import sys; sys.modules[__name__] = object()",
    "replaces itself with slots": (
        "import sys\nclass Slots:\n    __slots__ = ('x',)\nsys.modules[__name__] = Slots()"
    ),
    "replaces itself with a class": "import sys\nclass Torch:\n    x = 1\nsys.modules[__name__] = Torch",
    "takes itself away": "import sys; del sys.modules[__name__]",
    "refuses every attribute": "def __getattr__(name): raise RuntimeError(name)",
    "has no file": "del __file__, __spec__",
    "looks real, but raises": _LOOKS_REAL.format(error="ValueError('no')"),
    "looks real, but exits": _LOOKS_REAL.format(error="SystemExit(3)"),
    "looks real, but has numbers": "autograd = cuda = optim = version = 1\nget_num_threads = 2",
    "fails": "raise ImportError('not today')",
    "fails strangely": "raise KeyError('torch')",
    "exits": "raise SystemExit(7)",
}

_PROGRAM = """
import sys
try:
    import torch
except Exception as error:
    print(type(error).__name__, error)
else:
    print(type(torch).__name__, hasattr(torch, "x"))
print(sys.modules.get("torch", "gone") is None)
"""


@pytest.mark.parametrize("stub", STUBS)
def test_any_module_can_be_called_torch(stub: str, tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(STUBS[stub])
    (tmp_path / "program.py").write_text(_PROGRAM)
    plain = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    seen = subprocess.run(
        [sys.executable, "-m", "hotspan", "run", "program.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (seen.returncode, seen.stdout) == (plain.returncode, plain.stdout), seen.stderr
    assert seen.stderr.count("Traceback") == plain.stderr.count("Traceback"), seen.stderr
    assert (tmp_path / "program.hotspan").exists()
