"""Advice about the ranks of a job: every output judges the same process, and says the same of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import hotspan
from view_server import ViewServer

pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("torch.distributed")

#: Each step ends with a reduction. What a rank does before it depends on the rank and the step.
TRAINING = """
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
model = DistributedDataParallel(torch.nn.Linear(64, 64))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def work(times):
    total, rows = torch.zeros(16), torch.ones(64, 16)
    for _ in range(times):
        for index in range(len(rows)):
            total = total + rows[index].exp()

for step in range(30):
    work({times})
    loss = model(torch.ones(8, 64)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
dist.destroy_process_group()
"""


def command(folder: Path, *arguments: str) -> str:
    seen = subprocess.run(
        [sys.executable, "-m", "hotspan", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert seen.returncode == 0, seen.stderr
    return seen.stdout


def recorded(folder: Path, times: str) -> Path:
    """Two ranks, recorded from their launcher on."""
    (folder / "train.py").write_text(TRAINING.format(times=times))
    command(folder, "run", "--shapes", "-o", "train.hotspan", "torchrun", "--nproc-per-node", "2", "train.py")
    return folder / "train.hotspan"


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rank 1 does more than rank 0 in every step."""
    return recorded(tmp_path_factory.mktemp("uneven"), "2 if rank == 0 else 160")


def test_all_outputs_give_the_same_findings(uneven: Path) -> None:
    (told,) = json.loads(command(uneven.parent, "advise", uneven.name, "--json"))
    report = json.loads(command(uneven.parent, "report", uneven.name, "--json"))
    assert report["advice"] == {key: told[key] for key in report["advice"]}
    assert told["about"] == report["about"]
    assert "about rank 1" in told["about"]

    found = told["findings"]
    rules = {finding["rule"] for finding in found}
    assert "for-loop-indexing" in rules
    assert "one-thread" not in rules, "two ranks share two cores"
    asked = hotspan.open(uneven).advise()
    assert told["about"] in str(asked)
    keys = ("rule", "message", "source", "gain_ns", "gain_percent")
    by_python = [
        (one.rule, one.message, one.source, *(one.gain[:2] if one.gain else (None, None))) for one in asked
    ]
    assert by_python == [tuple(finding[key] for key in keys) for finding in found]
    with ViewServer(uneven) as server:
        page = server.api("run/0/advice")
        assert page["about"] == told["about"]
        keys = ("rule", "message", "source", "gain", "gain_percent")
        assert [tuple(finding[key] for key in keys) for finding in page["findings"]] == by_python
        assert page["basis"] == told["basis"]


def test_evidence_points_into_the_whole_recording(uneven: Path) -> None:
    """Numbers of spans are those of the file, not of the rank alone."""
    (told,) = json.loads(
        command(uneven.parent, "advise", uneven.name, "--json", "--only", "for-loop-indexing")
    )
    rows: list[dict[str, Any]] = told["findings"][0]["evidence"]
    spans = pyarrow.table(hotspan.open(uneven).spans)
    assert rows
    for row in rows:
        span = spans.slice(row["span"], 1).to_pylist()[0]
        assert f"(process {span['process']})" in told["about"]
        assert span["start_ns"] == row["at"]


@pytest.fixture(scope="module")
def even(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same work, divided evenly."""
    return recorded(tmp_path_factory.mktemp("even"), "81")


def late(path: Path) -> list[hotspan.Finding]:
    return [finding for finding in hotspan.open(path).advise() if finding.rule == "uneven-ranks"]


def test_a_rank_that_does_more_is_named_with_what_it_does(uneven: Path) -> None:
    (finding,) = late(uneven)
    assert finding.message.startswith("rank 1 is late in ")
    assert finding.confidence == "high"
    assert finding.source is not None
    line = 1 + (uneven.parent / "train.py").read_text().splitlines().index(
        "            total = total + rows[index].exp()"
    )
    assert finding.source.endswith(f"train.py:{line}")
    assert "a step more in " in finding.message
    assert any(row.what == f"rank 1: more than the others in train.py:{line}" for row in finding.evidence)
    assert finding.gain is not None
    assert finding.gain.percent > 10


def test_balanced_ranks_wait_less_and_are_told_nothing(uneven: Path, even: Path) -> None:
    assert late(even) == []
    reports = [json.loads(command(path.parent, "report", path.name, "--json")) for path in (uneven, even)]
    waits = [sum(row["wait"] for row in report["report"]["Ranks"]) for report in reports]
    assert waits[1] < waits[0]
    steps = [min(step.duration_ns for step in hotspan.open(path).steps) for path in (uneven, even)]
    assert steps[1] < steps[0], "other programs only add time: the quickest step tells"


def test_ranks_that_take_turns_are_told_nothing(tmp_path: Path) -> None:
    assert late(recorded(tmp_path, "160 if (rank + step) % 2 else 2")) == []
