"""The modules of TorchScript that operators run in: ``with_modules=True``, beside torch.profiler on the same model."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.profiler

import hotspan
import hotspan.profiler
from hotspan.profiler import ProfilerActivity

CPU = [ProfilerActivity.CPU]
HIERARCHY = "Module Hierarchy"

pytestmark = pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")


class Inner(torch.nn.Module):
    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return given + 2


class Outer(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()
        self.linear = torch.nn.Linear(4, 4)

    def doubled(self, given: torch.Tensor) -> torch.Tensor:
        return given * 2

    def forward(self, given: torch.Tensor) -> torch.Tensor:
        return self.linear(self.doubled(self.inner(given)))


GIVEN = torch.randn(4, 4)


def compiled(how: str) -> Callable[[torch.Tensor], torch.Tensor]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.script(Outer()) if how == "script" else torch.jit.trace(Outer(), GIVEN)
    # The first calls are rewritten as they run.
    with torch.no_grad():
        for _ in range(3):
            model(GIVEN)
    return model  # type: ignore[no-any-return]


def exported(prof: Any, path: Path) -> list[tuple[str, str | None]]:
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    operators = [event for event in events if event.get("cat") in ("cpu_op", "user_annotation")]
    return [(event["name"], event["args"].get(HIERARCHY)) for event in operators]


@pytest.mark.parametrize("how", ["script", "trace"])
def test_operators_name_the_modules_that_torch_names(how: str, tmp_path: Path) -> None:
    model = compiled(how)

    def record(profile: Any) -> Any:
        with torch.no_grad(), profile(activities=CPU, with_modules=True, record_shapes=True) as prof:
            model(GIVEN)
        return prof

    theirs = exported(record(torch.profiler.profile), tmp_path / "torch.json")
    prof = record(hotspan.profiler.profile)
    assert exported(prof, tmp_path / "hotspan.json") == theirs
    assert ("aten::add", "TOP(Outer)::forward.inner(Inner)::forward.") in theirs
    # A recording keeps them.
    prof.save(tmp_path / "kept.hotspan")
    spans = hotspan.open(tmp_path / "kept.hotspan").events()
    named = [(event.name, event.args.get(HIERARCHY)) for event in spans if "aten::" in event.name]
    assert named == [pair for pair in theirs if "aten::" in pair[0]]


def test_the_backward_is_named_by_what_runs() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = torch.jit.script(Outer())
    for _ in range(3):
        model(GIVEN).sum().backward()
    with hotspan.profiler.profile(activities=CPU, with_modules=True) as prof:
        model(GIVEN).sum().backward()
    for event in prof.events():
        assert event.scope != 1 or event.args.get(HIERARCHY) is None, "nodes are the engine's"
    engine = [event for event in prof.events() if event.name.startswith("autograd::engine")]
    assert engine
    assert all(event.args.get(HIERARCHY) is None for event in engine)


def test_nothing_is_named_unless_asked_for_or_outside_torchscript() -> None:
    model = compiled("script")
    with torch.no_grad(), hotspan.profiler.profile(activities=CPU) as prof:
        model(GIVEN)
    assert all(event.args.get(HIERARCHY) is None for event in prof.events())
    with torch.no_grad(), hotspan.profiler.profile(activities=CPU, with_modules=True) as prof:
        Outer()(GIVEN)
    assert all(event.args.get(HIERARCHY) is None for event in prof.events())
