"""A trace function of another tool goes on while lines are recorded: ``wrap_trace``."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from hotspan.lines import LineProfiler

FAILS = "the tool fails"


def work(times: int) -> int:
    total = 0
    for number in range(times):
        total += number
    return total


def hits(profiler: LineProfiler) -> int:
    """How often the line in the loop ran."""
    ((_, _, name), lines), *_ = profiler.get_stats().timings.items()
    assert name.endswith("work")
    return {line: count for line, count, _ in lines}[work.__code__.co_firstlineno + 3]


class Tool:
    """Writes down what it is told of ``work``, like a debugger or a coverage tool."""

    def __init__(self, fails_at: str = "", quiet: bool = False) -> None:
        self.seen: list[str] = []
        self.fails_at, self.quiet = fails_at, quiet

    def __call__(self, frame: Any, event: str, _value: Any) -> Any:
        if frame.f_code is not work.__code__:
            return None
        self.seen.append(event)
        if event == self.fails_at:
            raise RuntimeError(FAILS)
        if event == "line" and self.quiet:
            frame.f_trace_lines = False
        return self


@pytest.fixture
def profiler() -> Iterator[LineProfiler]:
    earlier, made = sys.gettrace(), LineProfiler(wrap_trace=True)
    try:
        yield made
    finally:
        sys.settrace(earlier)
        made.wrap_trace = False


def expected(times: int) -> list[str]:
    """What the tool is told without a profiler."""
    tool = Tool()
    sys.settrace(tool)
    work(times)
    sys.settrace(None)
    return tool.seen


def test_the_tool_is_told_what_it_is_told_without_a_profiler(profiler: LineProfiler) -> None:
    wanted, tool, watched = expected(5), Tool(), profiler(work)
    sys.settrace(tool)
    assert watched(5) == 10
    assert sys.gettrace() is tool
    sys.settrace(None)
    assert tool.seen == wanted
    assert hits(profiler) == 5


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="recording lines needs no trace function there")
def test_the_tool_rests_unless_asked_for(profiler: LineProfiler) -> None:
    profiler.wrap_trace = False
    tool, watched = Tool(), profiler(work)
    sys.settrace(tool)
    assert watched(5) == 10
    assert sys.gettrace() is tool
    sys.settrace(None)
    assert tool.seen == []
    assert hits(profiler) == 5


def test_a_tool_that_fails_is_told_no_more(profiler: LineProfiler) -> None:
    tool, watched = Tool(fails_at="return"), profiler(work)
    sys.settrace(tool)
    with pytest.raises(RuntimeError, match=FAILS):
        watched(3)
    assert sys.gettrace() is None
    assert watched(4) == 6
    assert tool.seen.count("return") == 1
    assert hits(profiler) == 7


def test_a_tool_that_wants_no_lines_takes_none_away(profiler: LineProfiler) -> None:
    tool, watched = Tool(quiet=True), profiler(work)
    sys.settrace(tool)
    assert watched(5) == 10
    sys.settrace(None)
    assert tool.seen == ["call", "line", "return"]
    assert hits(profiler) == 5


def test_each_thread_has_its_own(profiler: LineProfiler) -> None:
    wanted, watched = expected(4), profiler(work)
    tools = [Tool(), Tool()]

    def run(tool: Tool) -> None:
        sys.settrace(tool)
        watched(4)

    threads = [threading.Thread(target=run, args=(tool,)) for tool in tools]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [tool.seen for tool in tools] == [wanted, wanted]
    assert hits(profiler) == 8


@pytest.mark.parametrize(("value", "wraps"), [("yes", True), ("0", False), ("", False)])
def test_the_environment_has_a_say(value: str, wraps: bool) -> None:
    program = "from hotspan.lines import LineProfiler; print(LineProfiler().wrap_trace)"
    environment = {**os.environ, "LINE_PROFILER_WRAP_TRACE": value}
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == str(wraps)
