"""memory_profiler in all its forms, by hotspan: backends, limits, time stamps, the log, IPython, mprof."""

from __future__ import annotations

import io
import json
import logging
import os
import re
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

import hotspan.memory
from environments import environment
from hotspan.memory import mprof

PACKAGE = Path(__file__).resolve().parents[1]
MEBIBYTE = 1 << 20


def run(*arguments: str | Path, cwd: Path, **options: Any) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False, **options)


def grows() -> int:
    before = 1
    kept = bytearray(64 * MEBIBYTE)
    kept[::4096] = bytes([1]) * (len(kept) // 4096)
    return before + len(kept)


@pytest.mark.parametrize("backend", ["psutil", "psutil_pss", "psutil_uss", "posix", "tracemalloc"])
def test_each_backend_sees_what_a_line_allocates(backend: str) -> None:
    text = io.StringIO()
    try:
        assert hotspan.memory.profile(grows, stream=text, backend=backend)() == 1 + 64 * MEBIBYTE
    finally:
        tracemalloc.stop()
    (row,) = (
        line
        for line in text.getvalue().splitlines()
        if "kept[::" in line or "= bytearray" in line
        if float(re.findall(r"(-?[\d.]+) MiB", line)[1]) > 32
    )
    increment = float(re.findall(r"(-?[\d.]+) MiB", row)[1])
    assert increment == pytest.approx(64, abs=4)


def test_what_was_measured_can_be_asked_for() -> None:
    for options in ({}, {"backend": "psutil_uss"}):
        profiler = hotspan.memory.LineProfiler(**options)
        profiler(grows)()
        lines = profiler.code_map[grows.__code__]
        first = grows.__code__.co_firstlineno
        assert [lines[first + line][2] for line in (1, 2, 3, 4)] == [1, 1, 1, 1]
        increments = [measured[0] for measured in lines.values()]
        assert max(increments[1:]) == pytest.approx(64, abs=4)
        ((file, shown),) = profiler.code_map.items()
        assert file == __file__
        assert [line for line, _ in shown] == list(range(first, first + 5))


def test_a_backend_that_does_not_exist_is_refused() -> None:
    for make in (hotspan.memory.choose_backend, lambda name: hotspan.memory.LineProfiler(backend=name)):
        with pytest.raises(ValueError, match="there is no backend 'shark'"):
            make("shark")
    with pytest.raises(ValueError, match="there is no backend 'shark'"):
        hotspan.memory.memory_usage(backend="shark")


def test_children_count_where_they_are_asked_for() -> None:
    code = "kept = bytearray(80 << 20); kept[::4096] = bytes([1]) * (len(kept) // 4096); print(1, flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"1\n"
        usage = hotspan.memory.memory_usage
        (alone,), (both,) = usage(), usage(include_children=True)
        assert both - alone > 60
        ((own, *children),) = usage(multiprocess=True)
        assert own == pytest.approx(alone, abs=20)
        assert max(children) > 60
        text = io.StringIO()
        assert usage(multiprocess=True, stream=text) is None
        kinds = [line.split()[0] for line in text.getvalue().splitlines()]
        assert kinds[0] == "MEM"
        assert set(kinds[1:]) == {"CHLD"}
        shares = [usage(child.pid, backend=name)[0] for name in ("psutil", "psutil_pss", "psutil_uss")]
        assert shares == sorted(shares, reverse=True)
        child.communicate(b"\n")


SCRIPT = """
import sys
@profile
def work(count):
    kept = bytearray(count)
    kept[::4096] = bytes([1]) * (count // 4096)
    return inner(kept)
@profile
def inner(kept):
    with_length = len(kept)
    return with_length
work(int(sys.argv[1]))
work(4096)
"""


def test_the_debugger_begins_where_memory_is_too_much(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    # More than an interpreter takes, and less than the script does.
    command = ["hotspan.memory", "--pdb-mmem=200", "script.py"]
    told = run(*command, str(400 * MEBIBYTE), cwd=tmp_path, input="p 'count is %d' % count\nc\n")
    assert told.returncode == 0, told.stderr
    assert "here is the debugger" in told.stdout
    assert f"count is {400 * MEBIBYTE}" in told.stdout
    told = run(*command, "4096", cwd=tmp_path)
    assert "debugger" not in told.stdout
    assert told.returncode == 0, told.stderr


def test_time_stamps_of_functions(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    told = run(
        "hotspan.memory",
        "--timestamp",
        "--include-children",
        "-o",
        "stamps",
        "script.py",
        "4096",
        cwd=tmp_path,
    )
    assert (told.returncode, told.stdout) == (0, ""), told.stderr
    rows = [line.split() for line in (tmp_path / "stamps").read_text().splitlines()]
    assert [(row[0], row[1], row[6]) for row in rows] == [
        ("FUNC", "__main__.work", "0"),
        ("FUNC", "__main__.work", "0"),
        ("FUNC", "__main__.inner", "1"),
        ("FUNC", "__main__.inner", "1"),
    ]
    for outer, inner in zip(rows[:2], rows[2:], strict=True):
        assert float(outer[3]) <= float(inner[3]) <= float(inner[5]) <= float(outer[5])


def test_blocks_can_be_stamped() -> None:
    stamper = hotspan.memory.TimeStamper("psutil")
    with stamper.timestamp("outer"), stamper.timestamp():
        pass

    @stamper(precision=2)
    def fails() -> None:
        raise KeyError

    with pytest.raises(KeyError):
        fails()
    text = io.StringIO()
    stamper.show_results(text)
    names = [(line.split()[1], line.split()[-1]) for line in text.getvalue().splitlines()]
    assert names == [(".outer", "0"), (".<block>", "1"), (f"{__name__}.fails", "0")]
    assert stamper.current_stack_level == -1
    with pytest.raises(ValueError, match="only functions"):
        stamper(3)


def test_a_module_needs_no_flag(tmp_path: Path) -> None:
    (tmp_path / "worked.py").write_text(SCRIPT)
    told = run("hotspan.memory", "worked", "4096", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "def work(count):" in told.stdout


def test_scripts_and_modules_run_with_a_profiler(tmp_path: Path) -> None:
    (tmp_path / "worked.py").write_text(SCRIPT)
    code = """
import sys
from hotspan.memory import LineProfiler, exec_with_profiler, run_module_with_profiler, show_results
for run, target in ((exec_with_profiler, "worked.py"), (run_module_with_profiler, "worked")):
    profiler = LineProfiler()
    run(target, profiler, "psutil", ["4096"])
    show_results(profiler)
"""
    (tmp_path / "starts.py").write_text(code)
    told = run("starts", cwd=tmp_path)
    assert told.stdout.count("def work(count):") == 2, told.stderr


def test_tables_go_to_a_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "memory"):
        hotspan.memory.profile(grows, stream=hotspan.memory.LogFile("memory", reportIncrementFlag=True))()  # type: ignore[arg-type]
    messages = [record.getMessage() for record in caplog.records]
    assert messages[0].startswith("Filename:")
    assert any("bytearray" in message or "kept[::" in message for message in messages)
    assert not any("return before" in message for message in messages)


def test_mprof_records_lists_draws_and_removes(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text(SCRIPT)
    told = run(
        "hotspan.memory.mprof", "run", "-E", "-T", "0.01", "script.py", str(200 * MEBIBYTE), cwd=tmp_path
    )
    assert told.returncode == 0, told.stderr
    (file,) = tmp_path.glob("mprofile_*.dat")
    content = mprof.read_mprofile_file(str(file))
    assert content["cmd_line"].endswith(f"script.py {200 * MEBIBYTE}")
    assert set(content["func_timestamp"]) == {"__main__.work", "__main__.inner"}
    assert len(content["mem_usage"]) == len(content["timestamp"]) > 2
    listed = run("hotspan.memory.mprof", "list", cwd=tmp_path).stdout
    assert re.fullmatch(rf"0 {file.name} \d\d:\d\d:\d\d \d\d/\d\d/\d{{4}}\n", listed)
    peak = run("hotspan.memory.mprof", "peak", file.name, cwd=tmp_path).stdout
    assert peak == f"{file.name}\t{max(content['mem_usage']):.3f} MiB\n"
    assert "NaN" in run("hotspan.memory.mprof", "peak", "--func", "nobody", cwd=tmp_path).stdout
    for options in ([], ["-f", "-s", "-w", "0,1", "-t", "a < b"], ["-n", "0", "-o", "other.svg"]):
        drawn = run("hotspan.memory.mprof", "plot", *options, cwd=tmp_path)
        assert drawn.returncode == 0, drawn.stderr
        picture = tmp_path / re.findall(r"wrote (\S+)", drawn.stdout)[0]
        texts = "".join(ElementTree.parse(picture).getroot().itertext())
        assert ("work " in texts) is ("-n" not in options)
        assert ("a < b" in texts) is ("-t" in options)
    assert "SVG" in run("hotspan.memory.mprof", "plot", "-o", "x.png", cwd=tmp_path).stderr
    assert run("hotspan.memory.mprof", "rm", "--dry-run", "-1", cwd=tmp_path).stdout.endswith(
        f"{file.name}\n"
    )
    assert file.exists()
    assert run("hotspan.memory.mprof", "clean", cwd=tmp_path).returncode == 0
    assert not file.exists()
    assert run("hotspan.memory.mprof", "plot", cwd=tmp_path).returncode == 1


def test_mprof_draws_children_apart_and_attaches(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    child = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(0.5)'])"
    script.write_text(child)
    told = run("hotspan.memory.mprof", "run", "-M", "-T", "0.02", "-o", "a.dat", "script.py", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert len(mprof.read_mprofile_file(str(tmp_path / "a.dat"))["children"]) == 1
    drawn = run("hotspan.memory.mprof", "plot", "a.dat", cwd=tmp_path)
    assert "child " in (tmp_path / "a.svg").read_text(), drawn.stderr
    command = ["attach", "-t", "1", "-T", "0.5", "-o", "b.dat", str(os.getpid())]
    told = run("hotspan.memory.mprof", *command, cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert len(mprof.read_mprofile_file(str(tmp_path / "b.dat"))["mem_usage"]) >= 2


def test_mprof_says_what_is_wrong(tmp_path: Path) -> None:
    for words in (
        ["run"],
        ["run", "./nothing"],
        ["rm", "7"],
        ["rm", "."],
        ["attach", "no such program"],
        ["peak"],
        [],
    ):
        told = run("hotspan.memory.mprof", *words, cwd=tmp_path)
        assert told.returncode == 1, words
        assert "Traceback" not in told.stderr
    (tmp_path / "torn.dat").write_text("MEM 1.0\n")
    assert "line 1" in run("hotspan.memory.mprof", "peak", "torn.dat", cwd=tmp_path).stderr
    assert run("hotspan.memory.mprof", "run", "-E", "sh", "-c", "exit 3", cwd=tmp_path).returncode == 3


def test_labels_are_as_short_as_they_can_be() -> None:
    names = ["a.b.run", "a.c.run", "a.stop", "z.a.b.run"]
    expected = {"a.b.run": "a.b.run", "a.c.run": "c.run", "a.stop": "stop", "z.a.b.run": "z.a.b.run"}
    assert mprof.function_labels(names) == expected
    # The whole name of one is the end of another: both are as long as they must be.
    assert mprof.function_labels(["run", "a.run"]) == {"run": "run", "a.run": "a.run"}


NOTEBOOK = """
import json, sys
import hotspan.memory
assert "IPython" not in sys.modules
from IPython.testing.globalipapp import start_ipython
shell = start_ipython()
shell.run_line_magic("load_ext", "hotspan.memory")
shell.run_line_magic("memit", "-r 2 -i 0.01 kept = bytearray(1000)")
result = shell.run_cell_magic("memit", "-o -q -c count = 64 << 20", "kept = b'x' * count")
sys.path.insert(0, ".")
shell.run_cell("import worked_module")
profiler = shell.run_line_magic("mprun", "-r -T table.txt -f worked_module.work worked_module.work()")
print(json.dumps([len(result.mem_usage), max(result.mem_usage) - result.baseline, type(profiler).__name__]))
"""


def test_magics(tmp_path: Path) -> None:
    python = environment("peers", "3.11")
    if not python.exists():
        pytest.skip("the environment with IPython is not here: make real")
    (tmp_path / "worked_module.py").write_text("def work():\n    return len(bytes(100))\n")
    variables = {
        **os.environ,
        "PYTHONPATH": str(PACKAGE),
        "IPYTHONDIR": str(tmp_path),
        "TERM": "dumb",
        "PAGER": "cat",
    }
    done = subprocess.run(
        [str(python), "-c", NOTEBOOK],
        cwd=tmp_path,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"peak memory: [\d.]+ MiB, increment: -?[\d.]+ MiB", done.stdout)
    count, growth, kind = json.loads(done.stdout.splitlines()[-1])
    assert (count, kind) == (1, "MemoryProfiler")
    assert growth == pytest.approx(64, abs=8)
    assert "return len(bytes(100))" in (tmp_path / "table.txt").read_text()
