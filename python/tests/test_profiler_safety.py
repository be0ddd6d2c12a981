"""Recording does no harm: forks, exceptions, threads, profiles nested, repeated, forgotten; torch.profiler beside it.

What may crash runs in a process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading

import pytest

import hotspan

pytest.importorskip("torch")

import torch
import torch.profiler

from hotspan.profiler import ProfilerActivity, profile

CPU = [ProfilerActivity.CPU]
PRELUDE = """
import gc, os, sys, threading
import torch
import hotspan
import torch.profiler
from hotspan.profiler import ProfilerActivity, profile
CPU = [ProfilerActivity.CPU]
def count(prof, name="aten::neg"):
    return sum(row.count for row in prof.key_averages() if row.key == name)
def work(times=5):
    for _ in range(times):
        torch.ones(4).neg()
"""


@pytest.fixture(autouse=True)
def own_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSPAN_COLLECTOR", "native")


def run(code: str, collector: str = "native", timeout: float = 180) -> subprocess.CompletedProcess[str]:
    program = PRELUDE + textwrap.dedent(code)
    environment = {**os.environ, "HOTSPAN_COLLECTOR": collector, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=timeout
    )
    assert result.returncode == 0, f"exit code {result.returncode}\n{result.stdout}\n{result.stderr}"
    return result


def count(prof: profile, name: str = "aten::neg") -> int:
    return sum(row.count for row in prof.key_averages() if row.key == name)


@pytest.mark.parametrize("method", ["fork", "spawn"])
@pytest.mark.parametrize("collector", ["native", "kineto"])
def test_dataloader_workers(method: str, collector: str) -> None:
    run(
        f"""
        from torch.utils.data import DataLoader, TensorDataset
        dataset = TensorDataset(torch.arange(24.0).reshape(12, 2))
        with profile(activities=CPU, record_shapes=True, profile_memory=True) as prof:
            loader = DataLoader(dataset, 3, num_workers=2, multiprocessing_context="{method}")
            total = sum(batch.sum().item() for (batch,) in loader)
        assert total == sum(range(24)), total
        assert any("enumerate(DataLoader)" in row.key for row in prof.key_averages())
        assert count(prof, "aten::sum") == 4, count(prof, "aten::sum")
        """,
        collector,
    )


def test_a_forked_child_may_work_profile_and_exit() -> None:
    run(
        """
        prof = profile(activities=CPU, profile_memory=True)
        prof.start()
        work()
        child = os.fork()
        if child == 0:
            work(100)
            with profile(activities=CPU) as own:
                work(7)
            os._exit(0 if count(own) == 7 else 1)
        assert os.waitpid(child, 0)[1] == 0
        second = os.fork()
        if second == 0:
            work()
            sys.exit(0)
        assert os.waitpid(second, 0)[1] == 0
        work()
        prof.stop()
        assert count(prof) == 10, count(prof)
        """
    )


def test_exceptions_pass_through_operators() -> None:
    with profile(activities=CPU, record_shapes=True, profile_memory=True) as prof:
        for _ in range(5):
            with pytest.raises(RuntimeError):
                torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        with pytest.raises(ZeroDivisionError), torch.profiler.record_function("range"):
            torch.ones(2).neg()
            _ = 1 / 0
    assert count(prof, "aten::mm") == 5
    assert count(prof, "range") == 1
    assert prof.trace.losses == {}


def test_an_exception_in_the_program_ends_the_profile_and_is_not_hidden() -> None:
    with pytest.raises(KeyError), profile(activities=CPU) as prof:
        torch.ones(2).neg()
        raise KeyError("mine")
    assert count(prof) == 1


def test_started_and_stopped_on_other_threads() -> None:
    prof = profile(activities=CPU, profile_memory=True)
    for step in (prof.start, lambda: torch.ones(2).neg(), prof.stop):
        thread = threading.Thread(target=step)
        thread.start()
        thread.join()
    assert count(prof) == 1


def test_a_second_profile_is_refused_and_the_first_goes_on() -> None:
    with profile(activities=CPU) as first:
        torch.ones(2).neg()
        with pytest.raises(hotspan.CollectError, match="already recording"), profile(activities=CPU):
            pass
        with pytest.raises(RuntimeError, match="recording already"):
            first.start()
        torch.ones(2).neg()
    assert count(first) == 2
    with profile(activities=CPU) as second:
        torch.ones(2).neg()
    assert count(second) == 1


@pytest.mark.parametrize("collector", ["native", "kineto"])
def test_torch_profiler_first_is_a_clear_error(collector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSPAN_COLLECTOR", collector)
    with torch.profiler.profile(activities=CPU) as theirs:
        torch.ones(2).neg()
        with (
            pytest.raises(hotspan.CollectError, match=r"torch\.profiler is already recording"),
            profile(activities=CPU),
        ):
            pass
        torch.ones(2).neg()
    assert sum(row.count for row in theirs.key_averages() if row.key == "aten::neg") == 2


@pytest.mark.parametrize("memory", [False, True])
def test_torch_profiler_second_neither_crashes_nor_disturbs(memory: bool) -> None:
    run(
        f"""
        with profile(activities=CPU, profile_memory={memory}, record_shapes=True) as ours:
            work()
            with torch.profiler.profile(activities=CPU, profile_memory={memory}) as theirs:
                work()
            assert count(theirs) == 5
            assert ({memory} is False) == all(row.cpu_memory_usage == 0 for row in theirs.key_averages())
            work()
        assert count(ours) == 15, count(ours)
        # What was lost is counted.
        assert ours.trace.losses == ({{"memory_released": 1}} if {memory} else {{}}), ours.trace.losses
        assert ({memory} is False) == all(row.cpu_memory_usage == 0 for row in ours.key_averages())
        with torch.profiler.profile(activities=CPU, profile_memory=True) as theirs:
            work()
        assert count(theirs) == 5
        """
    )


def test_a_thousand_short_profiles_leave_nothing_behind() -> None:
    result = run(
        """
        def resident():
            return int(open("/proc/self/statm").read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        def short():
            with profile(activities=CPU, record_shapes=True, profile_memory=True) as prof:
                work(20)
            return prof
        for _ in range(100):
            short().key_averages()
        gc.collect()
        before = resident()
        for _ in range(1000):
            short()
        gc.collect()
        grown = (resident() - before) / 1e6
        print(f"{grown:.2f}")
        assert grown < 5, grown
        """
    )
    assert float(result.stdout) < 5


@pytest.mark.parametrize("collector", ["native", "kineto"])
@pytest.mark.parametrize(
    "ending",
    ["pass", "sys.exit(0)", "os._exit(0)", "del prof; gc.collect(); work()"],
    ids=["end", "exit", "_exit", "del"],
)
def test_a_profile_that_is_never_stopped(collector: str, ending: str) -> None:
    run(
        f"""
        prof = profile(activities=CPU, profile_memory=True, record_shapes=True)
        prof.start()
        work(100)
        {ending}
        """,
        collector,
    )


def test_the_program_ends_while_threads_work_and_record() -> None:
    """Not with daemon threads: torch itself aborts when the interpreter takes those down."""
    run(
        """
        prof = profile(activities=CPU, profile_memory=True, record_shapes=True, with_modules=True)
        prof.start()
        model = torch.nn.Linear(4, 4)
        def long():
            for _ in range(2000):
                model(torch.ones(4))
        for _ in range(3):
            threading.Thread(target=long).start()
        work(100)
        """
    )


def test_a_dropped_profile_makes_room_for_the_next() -> None:
    run(
        """
        prof = profile(activities=CPU)
        prof.start()
        work()
        del prof
        gc.collect()
        with profile(activities=CPU) as prof:
            work()
        assert count(prof) == 5
        """
    )


def test_threads_that_come_and_go() -> None:
    def work() -> None:
        for _ in range(10):
            torch.ones(4).neg()

    with profile(activities=CPU, record_shapes=True, profile_memory=True) as prof:
        for _ in range(20):
            group = [threading.Thread(target=work) for _ in range(4)]
            for thread in group:
                thread.start()
            for thread in group:
                thread.join()
    assert count(prof) == 800
    assert sum(row.self_cpu_memory_usage for row in prof.key_averages() if row.key != "[memory]") >= 0
    assert prof.trace.losses == {}


def test_operators_that_come_and_go_keep_their_names() -> None:
    """The memory of a name that is gone is soon that of another."""
    names = [f"operator_number_{number:03}" for number in range(60)]
    with profile(activities=CPU) as prof:
        for name in names:
            library = torch.library.Library("hotspan_test", "DEF")
            library.define(f"{name}(Tensor x) -> Tensor")
            library.impl(name, torch.neg, "CPU")
            for _ in range(2):
                getattr(torch.ops.hotspan_test, name)(torch.ones(1))
            library._destroy()
    rows = {row.key: row.count for row in prof.key_averages() if row.key.startswith("hotspan_test::")}
    assert rows == {f"hotspan_test::{name}": 2 for name in names}


def test_without_a_compiler_torch_profiler_records(tmp_path: object) -> None:
    """One line says so, and everything else is as usual."""
    program = PRELUDE + textwrap.dedent(
        """
        with profile(activities=CPU) as prof:
            work()
        assert count(prof) == 5
        assert prof.trace.format != "hotspan recording"
        with profile(activities=CPU) as prof:
            work()
        """
    )
    environment = {**os.environ, "PATH": "/nonexistent", "HOTSPAN_CACHE_DIR": str(tmp_path)}
    environment["HOTSPAN_HOOKS_DIR"] = str(tmp_path)
    environment = {
        name: value for name, value in environment.items() if name not in ("CXX", "HOTSPAN_COLLECTOR")
    }
    result = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=180
    )
    assert result.returncode == 0, result.stderr
    said = [line for line in result.stderr.splitlines() if line.startswith("hotspan:")]
    assert len(said) == 1, result.stderr
    assert "recording through torch.profiler" in said[0]
    assert "no C++ compiler was found" in said[0]
