"""with_stack under torch.profiler and under hotspan's own tracer: the same operators, called from the same places."""

from __future__ import annotations

import os
import re
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("torchvision")

import torch
import torch.profiler

import hotspan
import hotspan.cprofile
import hotspan.profiler
from profiled_programs import PROGRAMS

CPU = [hotspan.profiler.ProfilerActivity.CPU]


def without_addresses(text: str) -> str:
    """torch.profiler tells objects apart by their address, and calls a Parameter a Tensor where it saw one before."""
    return re.sub(r" at 0x[0-9a-f]+", "", text).replace("Parameter object", "Tensor object")


def rows(trace: hotspan.Trace, depth: int) -> Counter[tuple[str, tuple[str, ...]]]:
    """How many calls of each operator came from each place."""
    found: Counter[tuple[str, tuple[str, ...]]] = Counter()
    for row in trace.key_averages(group_by_stack_n=depth):
        # Other threads have operators that Python did not call; which of them are seen is tested elsewhere.
        if row.stack:
            found[row.key, tuple(without_addresses(entry) for entry in row.stack)] += row.count
    return found


def record(profiler: Any, run: Any, **options: Any) -> Any:
    """Both are called from here, so that their stacks begin alike."""
    with profiler(activities=CPU, with_stack=True, **options) as prof:
        run()
    return prof


class Pair:
    """One program, recorded by both."""

    def __init__(self, name: str, folder: Path) -> None:
        torch.manual_seed(0)
        run = PROGRAMS[name]()
        run()
        run()
        recordings = [
            record(profiler, run) for profiler in (torch.profiler.profile, hotspan.profiler.profile)
        ]
        recordings[0].export_chrome_trace(str(folder / "torch.json"))
        self.theirs = hotspan.open(folder / "torch.json")
        self.ours: hotspan.Trace = recordings[1].trace


# Compiled programs mark regions of their own, depending on what recorded them before.
@pytest.fixture(scope="module", params=sorted(set(PROGRAMS) - {"compiled"}))
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(request.param, tmp_path_factory.mktemp("stacks"))


@pytest.mark.parametrize("depth", [1, 5, 40])
def test_operators_are_called_from_the_same_places(pair: Pair, depth: int) -> None:
    assert pair.ours.format == "hotspan recording"
    ours, theirs = rows(pair.ours, depth), rows(pair.theirs, depth)
    assert sum(theirs.values()) > 10
    assert ours == theirs


def test_the_same_modules_are_called(pair: Pair) -> None:
    def modules(trace: hotspan.Trace) -> Counter[str]:
        return Counter(event.name for event in trace.events() if event.name.startswith("nn.Module: "))

    assert modules(pair.ours) == modules(pair.theirs)


def test_the_same_functions_are_called(tmp_path: Path) -> None:
    """One thread only: torch.profiler does not see those that are started while it records."""

    def functions(trace: hotspan.Trace) -> Counter[str]:
        calls = (event.name for event in trace.events() if event.category == "python_function")
        return Counter(
            without_addresses(name)
            for name in calls
            if re.match(r"torch/(nn|_tensor|autograd/(__init__|graph))", name)
        )

    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 4))

    def run() -> None:
        model(torch.ones(2, 4)).sum().backward()

    run()
    theirs = record(torch.profiler.profile, run)
    theirs.export_chrome_trace(str(tmp_path / "torch.json"))
    found = functions(record(hotspan.profiler.profile, run).trace)
    assert found.total() > 10
    assert found == functions(hotspan.open(tmp_path / "torch.json"))


def test_calls_nest_and_know_their_caller() -> None:
    prof = record(hotspan.profiler.profile, PROGRAMS[min(PROGRAMS)]())
    calls = {
        event.args["Python id"]: event for event in prof.trace.events() if event.category == "python_function"
    }
    assert calls
    for event in calls.values():
        parent = event.args.get("Python parent id")
        if parent is not None:
            caller = calls[parent]
            assert caller.start_ns <= event.start_ns
            assert event.start_ns + event.duration_ns <= caller.start_ns + caller.duration_ns


def test_hooks_of_hotspan_are_not_the_programs() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)

    def run() -> None:
        for _ in range(2):
            model(torch.ones(2, 4)).sum().backward()
            optimizer.step()
            optimizer.zero_grad()

    prof = record(hotspan.profiler.profile, run, profile_memory=True, with_modules=True)
    names = Counter(event.name for event in prof.trace.events() if event.category == "python_function")
    assert not [name for name in names if "hotspan/profiler/_" in name or "_blocks" in name]
    assert sum(count for name, count in names.items() if "(" in name and ": step" in name) >= 2
    categories = prof.trace.memory_by_category()[0]
    assert categories, "the hooks did their work"


def test_stacks_of_other_threads() -> None:
    """torch.profiler does not see these."""
    ready, go = threading.Barrier(2), threading.Event()

    def called_in_thread() -> None:
        torch.ones(3) + 1

    def work() -> None:
        ready.wait()
        go.wait()
        called_in_thread()

    def run() -> None:
        go.set()
        running.join()
        started = threading.Thread(target=called_in_thread)
        started.start()
        started.join()

    running = threading.Thread(target=work)
    running.start()
    ready.wait()
    prof = record(hotspan.profiler.profile, run)
    stacks = [row.stack for row in prof.key_averages(group_by_stack_n=20) if row.key == "aten::add"]
    assert len(stacks) == 2
    assert all("called_in_thread" in stack[0] for stack in stacks)
    assert sum("work" in stack[1] for stack in stacks) == 1


def test_functions_of_a_profile_are_added_up(tmp_path: Path, hotspan_command: Any) -> None:
    def called() -> None:
        torch.ones(2)

    prof = record(hotspan.profiler.profile, lambda: [called() for _ in range(7)])
    prof.save(tmp_path / "stacks.hotspan")
    told = hotspan_command("stats", tmp_path / "stacks.hotspan", "--by", "function", "--only", "called")
    assert re.search(r"^ +7 .*\(called\)$", told.stdout, re.MULTILINE)


def test_two_tracers_are_refused_and_nothing_stays_behind() -> None:
    calls = hotspan.cprofile.Profile()
    calls.enable()
    try:
        with pytest.raises(hotspan.CollectError, match="traced already"):
            record(hotspan.profiler.profile, lambda: torch.ones(1))
    finally:
        calls.disable()
    assert record(hotspan.profiler.profile, lambda: torch.ones(1)).trace.format == "hotspan recording"


def test_forked_children_trace_nothing() -> None:
    def run() -> None:
        child = os.fork()
        if child == 0:
            len("in the child")
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        torch.ones(1)

    prof = record(hotspan.profiler.profile, run)
    assert "aten::ones" in [row.key for row in prof.key_averages()]
