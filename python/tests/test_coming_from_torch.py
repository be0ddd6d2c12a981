"""The imports of torch.profiler in docs/coming-from.md, each run in hotspan's form."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from conftest import REPOSITORY

pytest.importorskip("torch")


def documented() -> list[tuple[str, str]]:
    """The rows of the table: what to replace, and by what."""
    text = (REPOSITORY / "docs" / "coming-from.md").read_text()
    body = text.split("## torch.profiler\n", 1)[1].split("\n## ", 1)[0]
    rows = [line.split("|")[1:3] for line in body.splitlines() if line.startswith("| `")]
    return [
        (re.findall(r"`([^`]+)`", before)[0], re.findall(r"`([^`]+)`", after)[0]) for before, after in rows
    ]


RECORD = """
import torch
for make in (globals().get("profile"), getattr(globals().get("profiler"), "profile", None), torch.profiler.profile):
    if make is not None:
        break
with make() as prof:
    torch.ones(3)
assert "aten::ones" in prof.key_averages().table()
print(type(prof).__module__)
"""


@pytest.mark.parametrize(("before", "after"), documented())
def test_each_row_records_with_hotspan(before: str, after: str) -> None:
    names = before.partition(" import ")[2]
    assert (
        names == after.partition(" import ")[2]
        or "spelled" in before
        or before.startswith(("import", "torch"))
    )
    # Without a name for a profile in the row, the one of hotspan is taken.
    program = f"import torch.profiler\nfrom hotspan.profiler import profile\n{after}\n{RECORD}"
    if "replace_torch" in after:
        program = f"import torch.profiler\n{after}\n{RECORD}"
    said = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=300
    )
    assert said.stdout.split()[-1].startswith("hotspan.profiler")
