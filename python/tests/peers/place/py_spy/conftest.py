"""Puts a command ``py-spy`` first on the path that is hotspan's."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

_COMMAND = f"""#!{sys.executable}
import sys
from hotspan.__main__ import main
sys.exit(main())
"""

# It is gone with the tests.
_FOLDER = tempfile.TemporaryDirectory()
_file = Path(_FOLDER.name) / "py-spy"
_file.write_text(_COMMAND)
_file.chmod(0o755)
os.environ["PATH"] = os.pathsep.join([_FOLDER.name, os.environ["PATH"]])
