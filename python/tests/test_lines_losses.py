"""No line is lost: functions that compare equal, a module that is recorded while it runs, generators left suspended."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import hotspan
from hotspan.lines import load_stats

WORK = "def work(n):\n    total = 0\n    for i in range(n):\n        total += i\n    return total\n"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    ended = subprocess.run(
        [sys.executable, *arguments], cwd=folder, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stderr
    return ended


def hits(path: Path) -> dict[tuple[str, str], list[int]]:
    """Hits of the lines of each function, by the name of the file and its own."""
    timings = load_stats(path).timings
    return {(Path(file).name, name): [row.hits for row in rows] for (file, _, name), rows in timings.items()}


def test_equal_functions_of_two_files_are_two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("equal_one", "equal_two"):
        (tmp_path / f"{name}.py").write_text(WORK)
    monkeypatch.syspath_prepend(tmp_path)
    import equal_one  # type: ignore[import-not-found]
    import equal_two  # type: ignore[import-not-found]

    assert equal_one.work.__code__ == equal_two.work.__code__, "what makes the case hard"
    profiler = hotspan.LineProfiler()
    one, two = profiler(equal_one.work), profiler(equal_two.work)
    one(3)
    two(5)
    profiler.dump_stats(tmp_path / "two.lprof")
    assert hits(tmp_path / "two.lprof") == {
        ("equal_one.py", "work"): [1, 4, 3, 1],
        ("equal_two.py", "work"): [1, 6, 5, 1],
    }


@pytest.mark.parametrize("backend", ["psutil", "tracemalloc"])
def test_the_memory_of_equal_functions_is_that_of_two(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("alike_one", "alike_two"):
        (tmp_path / f"{name}.py").write_text(WORK)
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    import alike_one  # type: ignore[import-not-found]
    import alike_two  # type: ignore[import-not-found]

    profiler = hotspan.memory.MemoryProfiler(backend=backend)
    one, two = profiler(alike_one.work), profiler(alike_two.work)
    one(3)
    two(5)
    counts = {
        Path(file).name: [row[2] for _, row in lines if row is not None]
        for file, lines in profiler.code_map.items()
    }
    # The line of the function itself is where it begins.
    assert counts == {"alike_one.py": [1, 1, 4, 3, 1], "alike_two.py": [1, 1, 6, 5, 1]}


def test_equal_functions_under_the_agent_are_two(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.py").write_text(WORK)
    (tmp_path / "main.py").write_text("import one, two\none.work(3)\ntwo.work(5)\n")
    options = ["--lines", "one.py", "--lines", "two.py", "-o", "run.hotspan"]
    run(tmp_path, "-m", "hotspan", "run", *options, "--", sys.executable, "main.py")
    assert hits(tmp_path / "run.hotspan") == {
        ("one.py", "work"): [1, 4, 3, 1],
        ("two.py", "work"): [1, 6, 5, 1],
    }


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "other.py").write_text("def inner():\n    return 1\n")
    main = "print('imported as', __name__)\nif __name__ == '__main__':\n    work(7)\n"
    (folder / "train.py").write_text("from . import other\n" + WORK + main + "    other.inner()\n")
    (folder / "__main__.py").write_text(WORK + main)
    return tmp_path


@pytest.mark.parametrize("target", ["package.train", "package/train.py", "package"])
def test_a_module_is_recorded_while_it_runs_and_imported_once(package: Path, target: str) -> None:
    ended = run(package, "-m", "hotspan.lines", "-o", "x.lprof", "-p", target, "-m", "package.train")
    assert ended.stdout == "imported as __main__\n"
    found = hits(package / "x.lprof")
    assert found["train.py", "work"] == [1, 8, 7, 1]
    assert found.get(("other.py", "inner")) == ([1] if target == "package" else None)


def test_the_main_module_of_a_package_is_recorded(package: Path) -> None:
    ended = run(package, "-m", "hotspan.lines", "-o", "x.lprof", "-p", "package.__main__", "-m", "package")
    assert ended.stdout == "imported as __main__\n"
    assert hits(package / "x.lprof") == {("__main__.py", "work"): [1, 8, 7, 1]}


def test_a_module_that_is_run_looks_as_under_python(package: Path) -> None:
    asks = "import sys\nprint(__spec__.name, __package__, sys.argv, sys.modules['__main__'].__dict__ is globals())\n"
    (package / "package" / "asks.py").write_text(asks)
    plain = run(package, "-m", "package.asks", "a").stdout
    assert run(package, "-m", "hotspan.lines", "-q", "-m", "package.asks", "a").stdout == plain
    missing = subprocess.run(
        [sys.executable, "-m", "hotspan.lines", "-m", "package.nothing"],
        cwd=package,
        capture_output=True,
        text=True,
        check=False,
    )
    assert missing.returncode == 1
    assert "No module named package.nothing" in missing.stderr
    assert "Traceback" not in missing.stderr


def test_a_generator_that_is_left_when_python_ends_is_closed(tmp_path: Path) -> None:
    (tmp_path / "left.py").write_text(
        "import hotspan, os\nprofiler = hotspan.LineProfiler()\nwrite = os.write\n@profiler\ndef count():\n"
        "    try:\n        yield 1\n    finally:\n        write(1, b'closed')\nleft = count()\nnext(left)\n"
    )
    ended = run(tmp_path, "left.py")
    assert (ended.stdout, ended.stderr) == ("closed", "")


def test_what_is_left_suspended_leaves_nothing_on() -> None:
    profiler = hotspan.LineProfiler()
    before = sys.gettrace()
    ended = []

    @profiler
    def count(n: int):  # type: ignore[no-untyped-def]
        try:
            while True:
                n += yield n
        finally:
            ended.append(n)

    @profiler
    async def wait() -> int:
        await asyncio.sleep(0)
        return 1

    @profiler
    async def each():  # type: ignore[no-untyped-def]
        yield 1
        yield 2

    generator = count(1)
    assert next(generator) == 1
    assert profiler.enable_count == 0
    assert sys.gettrace() is before
    assert generator.send(4) == 5
    with pytest.raises(KeyError, match="thrown"):
        generator.throw(KeyError("thrown"))
    other = count(9)
    next(other)
    other.close()
    assert ended == [5, 9], "both ended where they stood"

    async def program() -> list[int]:
        left = each()
        first = await left.__anext__()
        assert profiler.enable_count == 0
        return [first, await wait()]

    assert asyncio.run(program()) == [1, 1]
    assert profiler.enable_count == 0
    assert profiler.last_time == {}
    found = {name.rpartition(".")[2]: rows for (_, _, name), rows in profiler.get_stats().timings.items()}
    assert [row.hits for row in found["count"]] == [2, 3, 3, 2]
    assert [row.hits for row in found["wait"]] == [1, 1]
