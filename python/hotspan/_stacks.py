"""What ``with_stack`` needs to know of Python: how files are shown, and which calls are those of modules."""

from __future__ import annotations

import os
import site
import sys
from pathlib import Path
from types import CodeType

from torch import nn


def module_call_code() -> CodeType:
    """Return the code that runs whenever an ``nn.Module`` is called."""
    code: CodeType = nn.Module.__call__.__code__
    return code


def file_prefixes() -> list[str]:
    """Return the folders that torch.profiler leaves out of file names: those that modules are found in."""
    folders = [*site.getsitepackages(), site.getusersitepackages(), site.getuserbase(), *sys.path]
    return sorted({str(Path(folder).absolute()) + os.sep for folder in folders if isinstance(folder, str)})
