"""Lines: hits equal those of line_profiler and of a counter in plain Python, on every Python there is."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import REPOSITORY
from hotspan.lines import load_stats
from interpreters import environment, interpreter, interpreters

__all__ = ["interpreter"]

PROGRAM = REPOSITORY / "python" / "tests" / "line_program.py"
COUNTER = REPOSITORY / "python" / "tests" / "count_lines.py"


def run(
    python: Path | str, *arguments: str | Path, cwd: Path, **options: Any
) -> subprocess.CompletedProcess[str]:
    command = [str(python), *map(str, arguments)]
    defaults: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 60, "env": environment()}
    return subprocess.run(command, check=False, cwd=cwd, **{**defaults, **options})


def hits_of(path: Path) -> dict[str, dict[int, int]]:
    return {
        f"{name.rpartition('.')[2]}:{first}": {line: hits for line, hits, _ in rows}
        for (_, first, name), rows in load_stats(path).timings.items()
    }


def test_hits_equal_a_plain_count_on_every_python(interpreter: str, tmp_path: Path) -> None:
    counted = run(interpreter, COUNTER, PROGRAM, cwd=tmp_path)
    assert counted.returncode == 0, counted.stderr
    ours = run(
        interpreter, "-m", "hotspan.lines", "--physical-lines", "-o", "ours.lprof", PROGRAM, cwd=tmp_path
    )
    assert ours.returncode == 0, ours.stderr
    expected = {
        name: {int(line): hits for line, hits in rows.items()}
        for name, rows in json.loads(counted.stdout).items()
    }
    assert hits_of(tmp_path / "ours.lprof") == expected


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, Path]:
    """The reports of kernprof and of hotspan.lines on the same program."""
    pytest.importorskip("line_profiler")
    folder = tmp_path_factory.mktemp("lines")
    # line_profiler's wrapper does not hand exceptions on to the generator it wraps: the program would fail under it.
    unsupported = "    thrower.throw(KeyError)\n    list(thrower)\n"
    assert unsupported in PROGRAM.read_text()
    (folder / "program.py").write_text(PROGRAM.read_text().replace(unsupported, ""))
    theirs = run(sys.executable, "-m", "kernprof", "-l", "-v", "-o", "theirs.lprof", "program.py", cwd=folder)
    assert theirs.returncode == 0, theirs.stderr
    arguments = ["-l", "-v", "--physical-lines", "-o", "ours.lprof", "program.py"]
    ours = run(sys.executable, "-m", "hotspan.lines", *arguments, cwd=folder)
    assert ours.returncode == 0, ours.stderr
    return theirs.stdout.split("\n", 1)[1], ours.stdout, folder


def without_times(report: str) -> list[str]:
    """A report with times as question marks; column places stay."""
    lines = []
    for line in report.splitlines():
        if line.startswith("Total time: "):
            line = re.sub(r"[0-9.e-]+ s", "? s", line)
        elif re.match(r" +\d+ +\d+ +[0-9.e+]+ +[0-9.e+]+ ", line):
            line = line[:16] + "?" + line[47:]
        lines.append(line)
    return lines


def test_the_report_is_line_profilers(both: tuple[str, str, Path]) -> None:
    theirs, ours, _ = both
    assert without_times(ours) == without_times(theirs)
    assert "Function: never_called at line" in ours


def test_line_profiler_reads_our_file(both: tuple[str, str, Path]) -> None:
    _, ours, folder = both
    shown = run(sys.executable, "-m", "line_profiler", "-u", "1e-6", "ours.lprof", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == ours


def test_hotspan_reads_line_profilers_file(
    both: tuple[str, str, Path], hotspan_command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    theirs, _, folder = both
    shown = hotspan_command("stats", "theirs.lprof", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert shown.stdout == theirs
    rows = json.loads(hotspan_command("stats", "theirs.lprof", "--json", cwd=folder).stdout)[0]["rows"]
    assert {row["hits"] for row in rows if row["function"] == "fib"} == {41, 21, 20}


def test_a_statement_of_several_lines_counts_once(tmp_path: Path) -> None:
    ours = run(sys.executable, "-m", "hotspan.lines", "-o", "ours.hotspan", PROGRAM, cwd=tmp_path)
    assert ours.returncode == 0, ours.stderr
    source = PROGRAM.read_text().splitlines()
    rows = next(
        rows
        for (_, _, name), rows in load_stats(tmp_path / "ours.hotspan").timings.items()
        if name == "several_lines"
    )
    assert [(source[line - 1].strip(), hits) for line, hits, _ in rows] == [
        ("value = max(", 2),
        ("text = (", 2),
        ("if (value > 1 and", 2),
        ("value += 1", 2),
        ("return dict(a=a,", 2),
    ]


def test_time_goes_to_the_line_that_took_it_and_recursion_counts_once() -> None:
    import time

    def descend(n: int) -> None:
        time.sleep(0.01)
        if n:
            descend(n - 1)

    profiler = hotspan.LineProfiler(descend)
    start = time.perf_counter_ns()
    profiler.runcall(descend, 4)
    wall = time.perf_counter_ns() - start
    ((_, rows),) = profiler.get_stats().timings.items()
    sleep, condition, call = (time for _, _, time in rows)
    assert [hits for _, hits, _ in rows] == [5, 5, 4]
    assert 5 * 10_000_000 <= sleep <= sleep + condition + call <= wall * 1.01


def test_the_interface_of_line_profiler() -> None:
    def work(n: int) -> int:
        total = 0
        for i in range(n):
            total += i
        return total

    profiler = hotspan.LineProfiler()
    wrapped = profiler(work)
    assert wrapped(3) == 3
    assert work(100) == 4950, "not recorded: called past the wrapper"
    with profiler:
        work(2)
    profiler.enable_by_count()
    profiler.enable_by_count()
    profiler.disable_by_count()
    assert profiler.enable_count == 1
    work(1)
    profiler.disable_by_count()
    profiler.disable_by_count()
    assert profiler.enable_count == 0
    profiler.enable()
    work(1)
    profiler.disable()
    profiler.runctx("work(1)", {"work": work}, {})
    ((key, rows),) = profiler.get_stats().timings.items()
    first = work.__code__.co_firstlineno
    assert key[:2] == (__file__, first)
    assert {line - first: hits for line, hits, _ in rows} == {1: 5, 2: 13, 3: 8, 4: 5}
    stream = io.StringIO()
    profiler.print_stats(stream, output_unit=1e-3, summarize=True)
    assert stream.getvalue().startswith("Timer unit: 0.001 s\n\nTotal time: ")
    assert f" seconds - {__file__}:{first} - " in stream.getvalue()
    profiler.clear()
    assert profiler.get_stats().timings == {key: []}


def test_several_profilers_do_not_disturb_each_other() -> None:
    def work() -> int:
        return 1

    one, two = hotspan.LineProfiler(work), hotspan.LineProfiler(work)
    with one:
        work()
        with two:
            work()
        work()
    hits = [[hits for _, hits, _ in rows] for p in (one, two) for rows in p.get_stats().timings.values()]
    assert hits == [[3], [1]]
    del one
    with two:
        work()
    assert [hits for rows in two.get_stats().timings.values() for _, hits, _ in rows] == [2]


def test_an_earlier_trace_function_comes_back() -> None:
    def work() -> int:
        return 1

    def trace(*_: object) -> None:
        return None

    before = sys.gettrace()
    profiler = hotspan.LineProfiler(work)
    sys.settrace(trace)
    try:
        profiler.runcall(work)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)
    assert [hits for rows in profiler.get_stats().timings.values() for _, hits, _ in rows] == [1]


def test_the_decorator_prints_at_exit(interpreter: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        "import hotspan, os\n@hotspan.lines.profile\ndef f(x):\n    return x\nf(1)\nf(2)\nprint('end')\n"
        "if os.fork() == 0: raise SystemExit\nos.wait()\n"
    )
    ended = run(interpreter, "script.py", cwd=tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.count("Function: f at line 2") == 1
    assert re.search(r"^ +4 +2 ", ended.stdout, re.MULTILINE)
    assert (
        run(interpreter, "script.py", cwd=tmp_path, env={**environment(), "LINE_PROFILE": "0"}).stdout
        == "end\n" * 1
    )
    under = run(interpreter, "-m", "hotspan.lines", "-v", "script.py", cwd=tmp_path)
    assert under.stdout.count("Function: f at line 2") == 1


def test_whole_scripts_modules_classes_and_functions(interpreter: str, tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("def top():\n    return 0\n")
    (package / "deep.py").write_text(
        "class Deep:\n    def go(self):\n        return 1\n    def other(self):\n        return 2\n"
    )
    script = tmp_path / "script.py"
    script.write_text(
        "import threading\nfrom package import top\nfrom package.deep import Deep\n"
        "def main():\n    def inner():\n        return 3\n    top()\n    Deep().go()\n    inner()\n"
        "main()\nt = threading.Thread(target=main)\nt.start()\nt.join()\n"
    )

    def names(*targets: str) -> dict[str, int]:
        flags = [word for target in targets for word in ("-p", target)]
        ended = run(interpreter, "-m", "hotspan.lines", "-o", "out.lprof", *flags, "script.py", cwd=tmp_path)
        assert ended.returncode == 0, ended.stderr
        timings = load_stats(tmp_path / "out.lprof").timings
        return {
            name.replace("main.<locals>.", ""): max((hits for _, hits, _ in rows), default=0)
            for (_, _, name), rows in timings.items()
        }

    # Code objects know their class since 3.11.
    go, other = ("go", "other") if interpreter == interpreters().get("3.10") else ("Deep.go", "Deep.other")
    assert names("script.py") == {"main": 2, "inner": 2}
    assert names("package") == {"top": 2, go: 2, other: 0}
    if interpreter != sys.executable:
        return
    assert names("package.__init__") == {"top": 2}
    assert names("package/deep.py") == {go: 2, other: 0}
    assert names("package.deep.Deep.go,package.top") == {go: 2, "top": 2}


def test_programs_end_as_they_would(tmp_path: Path) -> None:
    def lines(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
        return run(sys.executable, "-m", "hotspan.lines", "-v", *arguments, cwd=tmp_path, **options)

    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n@profile\ndef f(code):\n    sys.exit(code)\n"
        "assert sys.argv[1:] == ['-v', 'a b'], sys.argv\nf(41)\n"
    )
    ended = lines("script.py", "-v", "a b")
    assert ended.returncode == 41
    assert re.search(r"^ +4 +1 ", ended.stdout, re.MULTILINE), "what ran before the exit is shown"
    script.write_text("@profile\ndef f():\n    return 1 / 0\nf()\n")
    ended = lines("script.py")
    assert ended.returncode == 1
    assert "ZeroDivisionError" in ended.stderr
    assert "_program.py" not in ended.stderr
    assert "__main__.py" not in ended.stderr
    assert "Function: f at line 1" in ended.stdout
    script.write_text("def f(:\n")
    ended = lines("script.py")
    assert ended.returncode == 1
    assert "SyntaxError" in ended.stderr
    assert "hotspan" not in ended.stderr
    ended = lines("missing.py")
    assert ended.returncode == 2
    assert "missing.py" in ended.stderr
    assert "Traceback" not in ended.stderr
    assert lines().returncode == 2
    assert lines("-c", "print(profile(lambda: 5)())").stdout.startswith("5\n")
    assert lines("-", input="print(6)").stdout.startswith("6\n")
    assert lines("-m", "no_such_module").returncode == 1
    script.write_text(
        "import os, signal\n@profile\ndef f():\n    os.kill(os.getpid(), signal.SIGINT)\n    while True: pass\nf()\n"
    )
    ended = lines("script.py")
    assert ended.returncode in (-2, 130)
    assert "Function: f at line 2" in ended.stdout


def test_a_damaged_file_is_refused(
    tmp_path: Path, hotspan_command: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    profiler = hotspan.LineProfiler(run)
    profiler.dump_stats(tmp_path / "good.lprof")
    good = (tmp_path / "good.lprof").read_bytes()
    bad = tmp_path / "bad.lprof"
    for content in [
        good[:-1],
        good[:40],
        good.replace(b"timings", b"tamings"),
        b"\x80\x04cos\nsystem\n(X\x04\0\0\0LineStatstR.",
    ]:
        bad.write_bytes(content)
        with pytest.raises(hotspan.TraceFormatError):
            hotspan.open(bad)
        refused = hotspan_command("stats", bad)
        assert refused.returncode == 1
        assert "bad.lprof" in refused.stderr
