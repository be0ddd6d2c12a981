"""Torch believes that a profiler records while hotspan does, and makes the ranges that it makes for profilers only."""

from __future__ import annotations

import gc
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import hotspan

pytest.importorskip("torch")

import torch
import torch.autograd.profiler
import torch.profiler
from torch.autograd import profiler_legacy

from hotspan.profiler import ProfilerActivity, autograd_profile, profile

CPU = [ProfilerActivity.CPU]
Fast = torch._C._profiler._RecordFunctionFast


@pytest.mark.parametrize("collector", ["native", "kineto"])
def test_hotspan_stands_for_torch_under_all_its_names(
    collector: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hotspan.profiler
    import hotspan.profiler.autograd

    monkeypatch.setenv("HOTSPAN_COLLECTOR", collector)
    for module in (torch.profiler, torch.profiler.profiler):
        monkeypatch.setattr(module, "profile", hotspan.profiler.profile)
    monkeypatch.setattr(torch.autograd.profiler, "profile", hotspan.profiler.autograd.profile)
    for kind in (torch.profiler.profile, torch.autograd.profiler.profile):
        with kind() as recorded:
            torch.ones(3) + 1
        assert "aten::add" in {event.name for event in recorded.events()}
        assert torch.autograd.profiler.profile is hotspan.profiler.autograd.profile


def switches() -> tuple[bool, bool]:
    return torch.autograd._profiler_enabled(), torch.autograd.profiler._is_profiler_enabled


ON, OFF = (True, True), (False, False)


def count(prof: Any, name: str) -> int:
    return sum(event.name == name for event in prof.events())


def test_switches_are_on_while_it_records_and_off_after() -> None:
    original = torch.autograd._profiler_enabled
    assert switches() == OFF
    for make in (profile, autograd_profile):
        with make():
            assert switches() == ON
            assert torch._C._autograd._profiler_type() == torch._C._profiler.ActiveProfilerType.KINETO
        assert switches() == OFF
        assert torch._C._autograd._profiler_type() == torch._C._profiler.ActiveProfilerType.NONE
    assert torch.autograd._profiler_enabled is original


def test_switches_are_off_between_windows() -> None:
    seen = []
    with profile(
        activities=CPU, schedule=hotspan.profiler.schedule(wait=1, warmup=1, active=1, repeat=2)
    ) as prof:
        for _ in range(6):
            seen.append(switches())
            prof.step()
    assert seen == [OFF, OFF, ON] * 2


def test_switches_are_off_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), profile(activities=CPU):
        _ = 1 / 0
    assert switches() == OFF


def test_switches_are_off_after_a_profile_was_dropped() -> None:
    hooks = torch.autograd.profiler.profile.__exit__, torch.autograd.profiler._prepare_profiler
    prof: Any = profile(activities=CPU, record_shapes=True)
    prof.start()
    assert switches() == ON
    del prof
    gc.collect()
    assert switches() == OFF
    assert (torch.autograd.profiler.profile.__exit__, torch.autograd.profiler._prepare_profiler) == hooks


def test_fast_ranges_are_recorded() -> None:
    x = torch.ones(3)
    with profile(activities=CPU) as prof:
        for _ in range(4):
            with Fast("fast"):
                x.add(x)
    assert count(prof, "fast") == 4
    assert {event.cpu_parent.name for event in prof.events() if event.name == "aten::add"} == {"fast"}


def test_datapipes_mark_their_steps() -> None:
    from torch.utils.data.datapipes.iter import IterableWrapper

    with profile(activities=CPU) as prof:
        assert list(IterableWrapper(range(3))) == [0, 1, 2]
    assert sum("IterableWrapper" in event.name for event in prof.events()) == 4


def test_torch_profiler_inside_leaves_them_on() -> None:
    with profile(activities=CPU) as ours:
        with torch.profiler.profile(activities=CPU) as theirs:
            torch.ones(3)
        assert switches() == ON
        torch.zeros(3)
    assert switches() == OFF
    assert count(ours, "aten::ones") == count(theirs, "aten::ones") == 1
    assert count(ours, "aten::zeros") == 1


def test_torch_profiler_that_lasts_longer_keeps_them_on() -> None:
    ours, theirs = profile(activities=CPU), torch.profiler.profile(activities=CPU)
    ours.start()
    theirs.start()
    ours.stop()
    assert switches() == ON
    theirs.stop()
    assert switches() == OFF


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning")
def test_the_legacy_profiler_may_start_inside() -> None:
    with profile(activities=CPU) as ours:
        with profiler_legacy.profile() as theirs:
            torch.ones(3)
        torch.zeros(3)
    assert sum(event.name == "aten::ones" for event in theirs.function_events) == 1
    assert count(ours, "aten::ones") == count(ours, "aten::zeros") == 1


COMPILED = """
import sys
import torch
if sys.argv[1] == "torch":
    from torch.profiler import profile, ProfilerActivity
else:
    from hotspan.profiler import profile, ProfilerActivity
model = torch.compile(torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU()))
x = torch.randn(4, 8)
for _ in range(2):
    model(x).sum().backward()
with profile(activities=[ProfilerActivity.CPU]) as prof:
    for _ in range(3):
        model(x).sum().backward()
for row in sorted((row.key, row.count) for row in prof.key_averages()):
    print(*row)
"""


def output(*command: object) -> str:
    return subprocess.run(
        [str(part) for part in command], check=True, capture_output=True, text=True, timeout=300
    ).stdout


def test_compiled_programs_have_the_rows_that_torch_shows(tmp_path: Path) -> None:
    program = tmp_path / "compiled.py"
    program.write_text(COMPILED)
    theirs, ours = (output(sys.executable, program, which) for which in ("torch", "hotspan"))
    assert "CompiledFxGraph" in theirs
    assert ours == theirs


RUN = """
import torch
import torch.profiler
from hotspan.profiler import profile, ProfilerActivity

def fast(name):
    with torch._C._profiler._RecordFunctionFast(name):
        torch.ones(3)
    print(torch.autograd._profiler_enabled(), torch.autograd.profiler._is_profiler_enabled)

fast("first")
with torch.profiler.profile(activities=[ProfilerActivity.CPU]):
    fast("inside torch's")
fast("second")
with profile(activities=[ProfilerActivity.CPU]):
    fast("inside ours")
fast("third")
"""


def test_whole_programs_have_them_too(tmp_path: Path) -> None:
    program, trace = tmp_path / "program.py", tmp_path / "run.hotspan"
    program.write_text(RUN)
    said = output(sys.executable, "-m", "hotspan", "run", "-o", trace, "--", sys.executable, program)
    assert [line for line in said.splitlines() if line.startswith(("True", "False"))] == ["True True"] * 5
    names = Counter(event.name for event in hotspan.open(trace).function_events())
    assert [names[name] for name in ("first", "inside torch's", "second", "inside ours", "third")] == [1] * 5


def test_the_switch_of_flows_to_the_backward_is_honoured() -> None:
    def flows() -> int:
        with profile(activities=CPU) as prof:
            torch.ones(3, requires_grad=True).sum().backward()
        return sum(event.flow_type == 1 for event in prof.events())

    switch = torch._C._profiler._set_fwd_bwd_enabled_val
    assert flows() > 0
    switch(False)
    try:
        assert flows() == 0
    finally:
        switch(True)
    assert flows() > 0
