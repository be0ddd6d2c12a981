"""`hotspan.cprofile` and `hotspan stats x.prof`: cProfile's command, pstats' reports, files that other readers open."""

from __future__ import annotations

import cProfile
import io
import json
import marshal
import pickle
import pstats
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import hotspan
import hotspan.cprofile
from called_programs import PROGRAMS
from interpreters import interpreter, run_python

__all__ = ["interpreter"]

Command = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def prof(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written by cProfile: recursion, builtins, classes."""
    profile = cProfile.Profile()
    for name in ("recursion", "builtins", "classes", "comprehensions"):
        profile.runcall(PROGRAMS[name])
    path = tmp_path_factory.mktemp("prof") / "theirs.prof"
    profile.dump_stats(path)
    return path


@pytest.fixture(scope="module")
def own_prof(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Written by hotspan."""
    profile = hotspan.cprofile.Profile()
    for name in ("recursion", "generators", "classes"):
        profile.runcall(PROGRAMS[name])
    path = tmp_path_factory.mktemp("prof") / "own.prof"
    profile.dump_stats(path)
    return path


def pstats_text(show: Callable[[pstats.Stats], object], *files: Path) -> str:
    """What pstats prints, with file names where it has dates too."""
    stream = io.StringIO()
    show(pstats.Stats(*map(str, files), stream=stream))
    return re.sub(r"^\w{3} \w{3} .{16}    ", "", stream.getvalue(), flags=re.MULTILINE)


SORTS = ["calls", "cumulative", "filename", "line", "name", "nfl", "pcalls", "stdname", "time", "tottime"]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("source", ["prof", "own_prof"])
def test_reports_are_pstats_own(
    hotspan_command: Command, request: pytest.FixtureRequest, source: str, sort: str
) -> None:
    path: Path = request.getfixturevalue(source)
    expected = pstats_text(lambda stats: stats.sort_stats(sort).print_stats(10), path)
    told = hotspan_command("stats", path, "--sort", sort, "--limit", "10")
    assert told.returncode == 0, told.stderr
    assert told.stdout == expected


def test_restrictions_callers_and_callees_are_pstats_own(hotspan_command: Command, prof: Path) -> None:
    def ours(*arguments: str) -> str:
        told = hotspan_command("stats", prof, "--sort", "cumulative", "--limit", "0", *arguments)
        assert told.returncode == 0, told.stderr
        return str(told.stdout)

    def theirs(show: Callable[[pstats.Stats], object]) -> str:
        return pstats_text(lambda stats: show(stats.sort_stats("cumulative")), prof)

    assert ours("--only", ".5", "--only", "fib|even") == theirs(lambda s: s.print_stats(0.5, "fib|even"))
    assert ours("--only", "no such function") == theirs(lambda s: s.print_stats("no such function"))
    assert ours("--callers", "fib") == theirs(lambda s: s.print_callers("fib"))
    assert ours("--callers", "fib|append", "--only", ".9") == theirs(
        lambda s: s.print_callers(0.9, "fib|append")
    )
    assert ours("--callees", "") == theirs(lambda s: s.print_callees(""))

    def stripped(stats: pstats.Stats) -> object:
        return stats.strip_dirs().sort_stats("cumulative").print_callees("classes")

    assert ours("--strip-dirs", "--callees", "classes") == theirs(stripped)


def test_several_files_are_added_up(hotspan_command: Command, prof: Path, own_prof: Path) -> None:
    expected = pstats_text(lambda stats: stats.sort_stats("cumulative").print_stats(), prof, own_prof)
    told = hotspan_command("stats", prof, own_prof, "--sort", "cumulative", "--limit", "0")
    # Equal times are in another order: pstats adds the files from the last to the first.
    assert sorted(told.stdout.splitlines()) == sorted(expected.splitlines())
    assert told.stdout.splitlines()[:4] == expected.splitlines()[:4]


def test_every_beginning_of_a_sort_key_is_what_pstats_takes_it_for(
    hotspan_command: Command, prof: Path
) -> None:
    known = pstats.Stats(str(prof), stream=io.StringIO()).get_sort_arg_defs()
    for beginning in (
        "c",
        "ca",
        "cu",
        "cum",
        "cumu",
        "t",
        "ti",
        "to",
        "n",
        "na",
        "nc",
        "nf",
        "p",
        "f",
        "mod",
        "s",
        "l",
    ):
        told = hotspan_command("stats", prof, "--sort", beginning, "--limit", "1")
        if beginning in known:
            assert f"Ordered by: {known[beginning][1]}\n" in told.stdout, beginning
        else:
            assert told.returncode == 2, beginning
            assert "valid keys: calls, ncalls" in told.stderr


def test_rows_as_json(hotspan_command: Command, prof: Path) -> None:
    told = hotspan_command("stats", prof, "--sort", "calls", "--limit", "2", "--callers", "", "--json")
    (table,) = json.loads(told.stdout)
    first = table["rows"][0]
    stats = pstats.Stats(str(prof), stream=io.StringIO())
    function = (first["file"], first["line"], first["function"])
    primitive, calls, own, total, callers = stats.stats[function]  # type: ignore[attr-defined]
    assert (first["pcalls"], first["ncalls"]) == (primitive, calls)
    assert (first["tottime"], first["cumtime"]) == (round(own * 1e9), round(total * 1e9))
    assert {(c["file"], c["line"], c["function"]): (c["ncalls"], c["pcalls"]) for c in first["callers"]} == {
        caller: sums[:2] for caller, sums in callers.items()
    }


def test_what_is_written_is_what_is_read(prof: Path, tmp_path: Path) -> None:
    hotspan.open(prof)._core.export("prof", str(tmp_path / "again.prof"))
    theirs, ours = (marshal.loads(path.read_bytes()) for path in (prof, tmp_path / "again.prof"))
    assert ours.keys() == theirs.keys()
    for function, expected in theirs.items():
        assert ours[function][:2] == expected[:2]
        assert ours[function][2:4] == pytest.approx(expected[2:4], abs=1e-9)
        assert {key: sums[:2] for key, sums in ours[function][4].items()} == {
            key: sums[:2] for key, sums in expected[4].items()
        }


def test_other_readers_open_our_files(own_prof: Path) -> None:
    gprof2dot = pytest.importorskip("gprof2dot")
    parsed = gprof2dot.PstatsParser(str(own_prof)).parse()
    names = {function.name for function in parsed.functions.values()}
    assert any("fib" in name for name in names)


def test_the_object_prints_and_feeds_pstats() -> None:
    profile = hotspan.cprofile.Profile()
    with profile:
        PROGRAMS["recursion"]()
    stream = io.StringIO()
    stats = pstats.Stats(profile, stream=stream).strip_dirs().sort_stats(pstats.SortKey.CALLS)
    stats.print_stats()
    out = io.StringIO()
    stdout, sys.stdout = sys.stdout, out
    try:
        profile.print_stats(pstats.SortKey.CALLS)
    finally:
        sys.stdout = stdout
    assert out.getvalue() == stream.getvalue()
    assert "177/1" in out.getvalue()


def test_a_trace_with_functions_shows_them(hotspan_command: Command, tmp_path: Path) -> None:
    profile = hotspan.cprofile.Profile()
    profile.runcall(PROGRAMS["recursion"])
    profile.to_trace().save(tmp_path / "calls.hotspan")
    profile.dump_stats(tmp_path / "calls.prof")
    expected = hotspan_command("stats", tmp_path / "calls.prof").stdout
    told = hotspan_command("stats", tmp_path / "calls.hotspan")
    assert told.stdout.splitlines()[1:] == expected.splitlines()[1:]
    told = hotspan_command("stats", tmp_path / "calls.hotspan", "--by", "function", "--markdown")
    assert "| ncalls" in told.stdout


# The command line, as CPython's.

SCRIPT = """\
import os, pickle, sys
class Made: pass
def work(): return pickle.loads(pickle.dumps(Made()))
if __name__ == "__main__":
    work()
    print(sys.argv, __file__, sys.path[0] == os.path.dirname(__file__))
    if sys.argv[1:] == ["chdir"]: os.chdir("/")
    if sys.argv[1:] == ["fail"]: raise RuntimeError("as told")
    sys.exit(int(sys.argv[1]) if sys.argv[1:] and sys.argv[1].isdigit() else 0)
"""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scripts") / "program.py"
    path.write_text(SCRIPT)
    return path


def test_a_script_runs_as_main(interpreter: str, script: Path) -> None:
    told = run_python(interpreter, "-m", "hotspan.cprofile", "-s", "tottime", script, "one", "-s").stdout
    assert told.startswith(f"{[str(script), 'one', '-s']!r} {script} True\n")
    assert "Ordered by: internal time" in told
    assert re.search(r"^ +1 +\d.*program\.py:3\(work\)$", told, re.MULTILINE)


def test_exit_codes_and_exceptions_are_kept(interpreter: str, script: Path) -> None:
    told = run_python(interpreter, "-m", "hotspan.cprofile", script, "7", code=7)
    assert "function calls" in told.stdout
    told = run_python(interpreter, "-m", "hotspan.cprofile", script, "fail", code=1)
    assert "RuntimeError: as told" in told.stderr
    assert "function calls" in told.stdout
    told = run_python(interpreter, "-m", "hotspan.cprofile", "missing.py", code=2)
    assert "can't open file 'missing.py': no such file" in told.stderr
    assert "Traceback" not in told.stderr
    run_python(interpreter, "-m", "hotspan.cprofile", code=2)
    run_python(interpreter, "-m", "hotspan.cprofile", "-s", "nonsense", script, code=2)


def test_a_syntax_error_is_shown_as_python_shows_it(interpreter: str, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("def broken(:\n")
    told = run_python(interpreter, "-m", "hotspan.cprofile", tmp_path / "broken.py", code=1)
    assert "SyntaxError" in told.stderr


def test_a_file_is_written_where_it_was_asked_for(interpreter: str, script: Path, tmp_path: Path) -> None:
    relative = Path("..") / tmp_path.name / "out.prof"
    environment = tmp_path / "here"
    environment.mkdir()
    code = f"import os, sys; os.chdir({str(tmp_path)!r}); sys.argv[1:] = ['-o', {str(relative)!r}, {str(script)!r}, 'chdir']; from hotspan.cprofile import main; main()"  # noqa: E501
    told = run_python(interpreter, "-c", code)
    assert "function calls" not in told.stdout
    assert any(function[2] == "work" for function in pstats.Stats(str(tmp_path / "out.prof")).stats)  # type: ignore[attr-defined]


def test_a_module_runs_as_main(interpreter: str) -> None:
    told = run_python(interpreter, "-m", "hotspan.cprofile", "-m", "calendar", "2026", "1").stdout
    assert "January 2026" in told
    assert "calendar.py" in told


def test_every_call_on_request(interpreter: str, tmp_path: Path) -> None:
    (tmp_path / "calls.py").write_text(
        "import threading\n"
        "def leaf(): return len('a')\n"
        "def work():\n"
        "    for _ in range(3): leaf()\n"
        "work()\n"
        "thread = threading.Thread(target=work); thread.start(); thread.join()\n"
    )
    out = tmp_path / "calls.hotspan"
    run_python(interpreter, "-m", "hotspan.cprofile", "-o", out, tmp_path / "calls.py")
    trace = hotspan.open(out)
    spans = [(event.name, event.start_ns, event.start_ns + event.duration_ns) for event in trace.events()]
    leaves = [span for span in spans if span[0].endswith("calls.py(2): leaf")]
    around = [span for span in spans if span[0].endswith("calls.py(3): work")]
    assert (len(leaves), len(around)) == (6, 2)
    lengths = [span for span in spans if span[0] == "<built-in function len>"]
    for _, start, end in leaves:
        assert any(first <= start <= end <= last for _, first, last in around)
        assert sum(start <= first <= last <= end for _, first, last in lengths) == 1
    told = run_python(
        sys.executable, "-m", "hotspan", "stats", out, "--by", "function", "--only", "leaf", "--json"
    ).stdout
    assert [row["ncalls"] for row in json.loads(told)[0]["rows"]] == [6], "the sums are there too"


# Files that are no profiles.


def test_no_content_can_do_harm(hotspan_command: Command, prof: Path, tmp_path: Path) -> None:
    whole = prof.read_bytes()
    broken = {
        "cut off": whole[: len(whole) // 2],
        "a reference to nothing": b"{(\x03\x00\x00\x00r\xff\x00\x00\x00",
        "a length beyond the end": b"{(\xff\xff\xff\x7f",
        "a negative length": b"{(\xff\xff\xff\xff",
        "nested without end": b"{" + b")\x01" * 100_000,
        "a code object": b"{)\x03c" + bytes(64),
        "of another shape": marshal.dumps({("a", 1): 2}),
        "callers again and again": b"{" + b"".join(_entry(index) for index in range(2_000)) + b"0",
    }
    for name, content in broken.items():
        path = tmp_path / "broken.prof"
        path.write_bytes(content)
        told = hotspan_command("stats", path)
        assert told.returncode == 1, name
        assert "failed to open" in told.stderr, name
        assert "panicked" not in told.stderr, name
    path.write_bytes(pickle.dumps({"never": "unpickled"}))
    assert "a Python pickle" in hotspan_command("stats", path).stderr


def _entry(index: int) -> bytes:
    """A function whose callers are those of the first one, by reference."""
    key = b"(\x03\x00\x00\x00z\x01fi" + index.to_bytes(4, "little") + b"z\x01n"
    numbers = b"i\x01\x00\x00\x00" * 2 + b"g" + bytes(8) + b"g" + bytes(8)
    if index > 0:
        return key + b"(\x05\x00\x00\x00" + numbers + b"r\x00\x00\x00\x00"
    callers = b"".join(
        b"(\x03\x00\x00\x00z\x01ci" + place.to_bytes(4, "little") + b"z\x01n(\x04\x00\x00\x00" + numbers
        for place in range(2_000)
    )
    return key + b"(\x05\x00\x00\x00" + numbers + b"\xfb" + callers + b"0"
