"""A program that used line_profiler or kernprof does the same with hotspan in its place."""

from __future__ import annotations

import functools
import io
import os
import pstats
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import hotspan
from hotspan.lines import GlobalProfiler, LineStats, ScopingPolicy, load_stats, show_func

reads_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="Python 3.10 has no TOML")

SCRIPT = "def work(n):\n    return n + 1\n\n\nwork(1)\nwork(2)\n"


def run(folder: Path, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def kernprof(folder: Path, *arguments: str, **environment: str) -> str:
    ended = run(folder, "-m", "hotspan.lines.kernprof", *arguments, **environment)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def functions(path: Path) -> set[str]:
    return {name for _, _, name in load_stats(path).timings}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "script.py").write_text(SCRIPT)
    return tmp_path


def test_statistics_add_up_and_go_through_files(tmp_path: Path) -> None:
    one = LineStats({("a.py", 1, "f"): [(2, 3, 3600)]}, 0.015625)
    two = LineStats({("a.py", 1, "f"): [(2, 4, 700)], ("b.py", 10, "g"): [(10, 20, 1000)]}, 0.0625)
    one.to_file(tmp_path / "one.lprof")
    two.to_file(tmp_path / "two.lprof")
    assert load_stats(tmp_path / "one.lprof") == one, "in the unit it was written in"
    both = LineStats.from_files(tmp_path / "one.lprof", tmp_path / "two.lprof")
    assert both == one + two == LineStats.from_stats_objects(two, one)
    assert both.timings["a.py", 1, "f"] == [(2, 7, 1600)]  # type: ignore[index]
    one += two
    assert one == both
    assert one != two
    # line_profiler unpickles it into its own class.
    theirs = run(tmp_path, "-m", "line_profiler", "one.lprof", "two.lprof")
    ours = run(tmp_path, "-c", "import hotspan.lines; hotspan.lines.main()", "one.lprof", "two.lprof")
    assert theirs.returncode == ours.returncode == 0, ours.stderr
    assert ours.stdout == theirs.stdout


def test_one_function_is_shown_as_line_profiler_shows_it(tmp_path: Path) -> None:
    import line_profiler

    (tmp_path / "f.py").write_text("def f():\n    x = 1\n    return x\n")
    rows = [(2, 12_345_678_901, 5.5e9), (3, 4, 1e3)]
    shown = []
    for show in (line_profiler.show_func, show_func):
        stream: Any = io.StringIO()
        show(str(tmp_path / "f.py"), 1, "f", rows, 1e-6, 1e-3, stream)
        shown.append(stream.getvalue())
    assert shown[0] == shown[1]
    assert "Timer unit" not in shown[1]


def test_the_profile_object_is_off_until_it_is_asked_and_writes_files(tmp_path: Path) -> None:
    module = "from hotspan.lines import GlobalProfiler\nprofile = GlobalProfiler()\n"
    (tmp_path / "script.py").write_text(module + "@profile\n" + SCRIPT)
    assert run(tmp_path, "script.py").stdout == ""
    asked = run(tmp_path, "script.py", "--line-profile")
    assert "Wrote profile results to profile_output.lprof" in asked.stdout
    assert functions(tmp_path / "profile_output.lprof") == {"work"}
    assert re.search(r"^ +5 +2 ", (tmp_path / "profile_output.txt").read_text(), re.MULTILINE)
    assert run(tmp_path, "script.py", LINE_PROFILE="0").stdout == ""


@reads_toml
def test_our_own_profile_object_writes_line_profilers_files_when_asked(tmp_path: Path) -> None:
    (tmp_path / "script.py").write_text("from hotspan.lines import profile\n@profile\n" + SCRIPT)
    assert "Function: work" in run(tmp_path, "script.py").stdout, "on without being asked"
    assert [path.name for path in tmp_path.iterdir()] == ["script.py"]
    (tmp_path / "line_profiler.toml").write_text(
        "[tool.line_profiler.write]\noutput_prefix = 'mine'\ntext = false\ntimestamped_text = false\n"
    )
    run(tmp_path, "script.py", LINE_PROFILE="1")
    assert {path.name for path in tmp_path.iterdir()} == {"script.py", "line_profiler.toml", "mine.lprof"}


def test_the_profile_object_decorates_what_comes_while_it_is_enabled() -> None:
    profile = GlobalProfiler(config=False)
    profile._profile = hotspan.LineProfiler()  # shown by nobody
    profile.disable()

    def work() -> int:
        return 1

    assert profile(work) is work
    profile.enable(output_prefix="mine")
    assert profile(work)() == 1
    assert profile.output_prefix == "mine"
    assert [row.hits for rows in profile._profile.get_stats().timings.values() for row in rows] == [1]


def test_kernprof_counts_calls_without_l(script: Path) -> None:
    shown = kernprof(script, "-v", "script.py")
    assert "script.py:1(work)" in shown
    calls = {name: row[1] for (_, _, name), row in pstats.Stats(str(script / "script.py.prof")).stats.items()}  # type: ignore[attr-defined]
    assert calls["work"] == 2
    (script / "marked.py").write_text("@profile\n" + SCRIPT + "def other():\n    pass\nother()\n")
    shown = kernprof(script, "-b", "-v", "marked.py")
    assert "(work)" in shown
    assert "(other)" not in shown


@reads_toml
def test_flags_take_words_and_files_set_defaults(script: Path) -> None:
    (script / "mine.toml").write_text(
        "[tool.line_profiler.kernprof]\nline-by-line = true\nprof-mod = ['script.py']\noutfile = 'mine.lprof'\n"
    )
    kernprof(script, "--config=mine.toml", "script.py")
    assert functions(script / "mine.lprof") == {"work"}
    kernprof(script, "--config", "mine.toml", "--line-by-line=no", "-o", "calls.prof", "script.py")
    assert pstats.Stats(str(script / "calls.prof")).total_calls > 0  # type: ignore[attr-defined]
    kernprof(script, "-p", "", "-o", "none.lprof", "script.py", LINE_PROFILER_RC="mine.toml")
    assert functions(script / "none.lprof") == set(), "an empty name clears those before it"
    assert run(script, "-m", "hotspan.lines.kernprof", "--line-by-line=perhaps", "script.py").returncode == 2
    assert kernprof(script, "-V").strip() == hotspan.__version__
    assert kernprof(script, "-lqqq", "-c", "import sys; print(1); print(2, file=sys.stderr)") == ""
    refused = run(script, "-m", "hotspan.lines.kernprof", "--config=none.toml", "script.py")
    assert refused.returncode != 0
    assert "none.toml" in refused.stderr


def test_imports_of_the_program_are_recorded_on_demand(script: Path) -> None:
    (script / "one.py").write_text("def first():\n    return 1\ndef second():\n    return 2\n")
    (script / "main.py").write_text(
        "from __future__ import annotations\nfrom one import first as f\n\n\ndef go():\n    return f()\n\n\ngo()\n"
    )

    def recorded(*flags: str) -> set[str]:
        kernprof(script, "-l", "-o", "x.lprof", *flags, "main.py")
        return functions(script / "x.lprof")

    assert recorded("-p", "main.py") == {"go"}
    assert recorded("-p", "main.py", "--prof-imports") == {"go", "first"}
    assert recorded("-p", "one") == {"first", "second"}
    assert recorded("-p", "one", "--no-preimports") == {"first"}


def test_policies_say_what_belongs_to_a_namespace() -> None:
    module = ModuleType("pack.inner")
    source = (
        "class Outer:\n  def method(self): ...\n  class Inner:\n    def deep(self): ...\n\ndef own(): ...\n"
    )
    exec(source, vars(module))
    exec("def far(): ...", space := {"__name__": "pack.other"})
    exec("def foreign(): ...", alien := {"__name__": "elsewhere"})
    vars(module).update(far=space["far"], foreign=alien["foreign"])

    def added(policy: Any) -> set[str]:
        profiler = hotspan.LineProfiler()
        profiler.add_module(module, scoping_policy=policy)
        return {function.__name__ for function in profiler.functions}

    assert added("exact") == {"own"}
    assert added(ScopingPolicy.CHILDREN) == {"own", "method", "deep"}
    assert added("SIBLINGS") == added(None) == {"own", "method", "deep", "far"}
    assert added("none") == {"own", "method", "deep", "far", "foreign"}
    assert added({"func": "exact", "class": "exact", "module": "exact"}) == {"own"}
    with pytest.raises(ValueError, match="other"):
        added("other")


def test_a_wrapper_is_made_once_and_keeps_what_it_wraps() -> None:
    profiler = hotspan.LineProfiler()

    @functools.lru_cache
    def cached(n: int) -> int:
        return n

    def plain() -> int:
        return 1

    wrapped = profiler(plain)
    assert profiler(wrapped) is wrapped
    assert profiler.functions == [plain]
    counted = profiler(cached)
    assert [counted(1), counted(1)] == [1, 1]
    assert counted.cache_info().hits == 1
    names = {name.rpartition(".")[2]: rows for (_, _, name), rows in profiler.get_stats().timings.items()}
    assert [row.hits for row in names["cached"]] == [1]
    assert profiler.timer_unit == 1e-9
    assert set(profiler.code_map) == {plain.__code__, cached.__wrapped__.__code__}
