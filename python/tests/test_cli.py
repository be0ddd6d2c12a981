"""The real `hotspan` command: what it prints, in which form, and with which exit code."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import complete
from independent_count import count

Command = Callable[..., "subprocess.CompletedProcess[str]"]

EVENTS = [
    complete("aten::linear", 100, 50, args={"External id": 1, "Input Dims": [[4, 8], [2, 8], [2]]}),
    complete("aten::addmm", 110, 30, args={"External id": 2, "Input Dims": [[2], [4, 8], [8, 2], [], []]}),
    complete("cudaLaunchKernel", 115, 5, cat="cuda_runtime", args={"correlation": 9, "External id": 2}),
    complete(
        "gemm", 130, 40, cat="kernel", pid=0, tid=7, args={"correlation": 9, "External id": 2, "device": 0}
    ),
    complete("aten::relu", 160, 7.5, args={"External id": 3, "Input Dims": [[4, 2]]}),
    complete("aten::relu", 170, 8.5, args={"External id": 4, "Input Dims": [[4, 2]]}),
]


@pytest.fixture
def path(write_trace: Callable[..., Path]) -> Path:
    return write_trace(EVENTS, deviceProperties=[{"id": 0, "name": "Some GPU"}])


def find(rows: list[dict[str, Any]], name: str) -> dict[str, Any]:
    return next(row for row in rows if row["name"] == name)


def rows_of(document: Any) -> list[dict[str, Any]]:
    """The rows of `stats --json` of one file, whatever stands around them."""
    if isinstance(document, list) and len(document) == 1 and "rows" in document[0]:
        document = document[0]
    return document["rows"] if isinstance(document, dict) else document


def test_stats_prints_the_operators(hotspan_command: Command, path: Path) -> None:
    done = hotspan_command("stats", path)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("aten::linear", "aten::relu", "gemm", "Self CPU", "# of Calls"):
        assert word in done.stdout


@pytest.mark.parametrize(
    ("by", "report"), [("op", "operators"), ("kernel", "kernels"), ("stream", "streams")]
)
def test_columns_say_what_they_mean(hotspan_command: Command, path: Path, by: str, report: str) -> None:
    columns = json.loads(hotspan_command("stats", "--by", by, "--columns", "--json").stdout)
    assert all(column["meaning"].endswith(".") for column in columns)
    sort_keys = {column["column"]: column["sort"] for column in columns}
    done = hotspan_command("stats", path, "--by", by, "--json", "--limit", "0")
    rows = rows_of(json.loads(done.stdout))
    assert rows
    assert set(rows[0]) <= set(sort_keys)
    for key in sort_keys.values():
        assert hotspan_command("stats", path, "--by", by, "--sort", key).returncode == 0
    text = hotspan_command("stats", "--by", by, "--columns").stdout
    assert all(column["meaning"] in text for column in columns)
    (table,) = hotspan.open(path).report(report).values()
    assert [list(row._asdict().values()) for row in table] == [list(row.values()) for row in rows]


def test_an_unknown_report_names_the_others(path: Path) -> None:
    with pytest.raises(ValueError, match="valid ones: overview, operators, shapes,"):
        hotspan.open(path).report("speed")
    with pytest.raises(ValueError, match="cannot sort by `speed`; valid keys: name, calls,"):
        hotspan.open(path).report("kernels", sort="speed")


def test_stats_as_json_is_what_python_says(hotspan_command: Command, path: Path) -> None:
    done = hotspan_command("stats", path, "--json")
    assert done.returncode == 0
    rows = rows_of(json.loads(done.stdout))
    averages = {row.key: row for row in hotspan.open(path).key_averages()}
    # torch lists kernels among operators; here they have a table of their own.
    kernels = rows_of(json.loads(hotspan_command("stats", path, "--by", "kernel", "--json").stdout))
    assert {row["name"] for row in rows} == set(averages) - {row["name"] for row in kernels}
    for row in rows:
        average = averages[row["name"]]
        assert row["count"] == average.count
        for name in ("self_cpu_time_total", "cpu_time_total", "self_device_time_total", "device_time_total"):
            # The command counts nanoseconds, Python speaks torch's microseconds.
            assert row[name] == pytest.approx(getattr(average, name) * 1000), (row["name"], name)


@pytest.mark.parametrize("by", ["op", "shape", "stack", "module", "kernel", "thread"])
def test_every_grouping_answers(hotspan_command: Command, path: Path, by: str) -> None:
    done = hotspan_command("stats", path, "--by", by, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = rows_of(json.loads(done.stdout))
    names = {row["name"] for row in rows}
    assert ("gemm" in names) == (by == "kernel")
    assert ("aten::relu" in names) == (by != "kernel")


def test_shapes_tell_rows_apart(hotspan_command: Command, path: Path) -> None:
    rows = rows_of(json.loads(hotspan_command("stats", path, "--by", "shape", "--json").stdout))
    assert "[4, 2]" in str(find(rows, "aten::relu")["input_shapes"])
    assert find(rows, "aten::relu")["count"] == 2


def test_sort_and_limit(hotspan_command: Command, path: Path) -> None:
    done = hotspan_command("stats", path, "--sort", "count", "--limit", "1", "--json")
    assert [row["name"] for row in rows_of(json.loads(done.stdout))] == ["aten::relu"]
    done = hotspan_command("stats", path, "--sort", "cpu_time_total", "--limit", "2", "--json")
    assert [row["name"] for row in rows_of(json.loads(done.stdout))] == ["aten::linear", "aten::addmm"]


def test_csv_is_a_table(hotspan_command: Command, path: Path) -> None:
    done = hotspan_command("stats", path, "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    relu = next(row for row in rows if row["name"] == "aten::relu")
    assert int(relu["count"]) == 2


def test_markdown_is_a_table(hotspan_command: Command, path: Path) -> None:
    lines = hotspan_command("stats", path, "--markdown").stdout.strip().splitlines()
    table = [line for line in lines if line.startswith("|")]
    assert "Name" in table[0]
    assert set(table[1]) <= set("|-: ")
    assert any("aten::relu" in line for line in table[2:])
    assert len({line.count("|") for line in table}) == 1


def test_only_one_form_at_a_time(hotspan_command: Command, path: Path) -> None:
    done = hotspan_command("stats", path, "--json", "--csv")
    assert done.returncode == 2
    assert done.stdout == ""


def test_info_says_what_it_is(hotspan_command: Command, path: Path) -> None:
    done = hotspan_command("info", path)
    assert (done.returncode, done.stderr) == (0, "")
    for word in ("Kineto", "Some GPU", "cpu_op", "kernel", "6"):
        assert word in done.stdout
    document = json.loads(hotspan_command("info", path, "--json").stdout)
    assert "cpu_op" in json.dumps(document)


def test_info_shows_losses(hotspan_command: Command, tmp_path: Path) -> None:
    path = tmp_path / "cut.json"
    path.write_text(json.dumps({"traceEvents": EVENTS})[:-30])
    done = hotspan_command("info", path)
    assert done.returncode == 0
    assert "truncated_file" in done.stdout


@pytest.mark.parametrize("suffix", [".json", ".json.gz", ".json.zst"])
def test_export_to_chrome(hotspan_command: Command, path: Path, tmp_path: Path, suffix: str) -> None:
    out = tmp_path / f"out{suffix}"
    done = hotspan_command("export", path, "--to", "chrome", "-o", out)
    assert done.returncode == 0
    assert hotspan.open(out).categories == hotspan.open(path).categories
    if suffix != ".json.zst":
        assert count(out).categories == count(path).categories


def test_export_to_hotspan(hotspan_command: Command, path: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.hotspan"
    assert hotspan_command("export", path, "--to", "hotspan", "-o", out).returncode == 0
    assert hotspan.open(out).categories == hotspan.open(path).categories
    same = hotspan_command("stats", out, "--json")
    assert rows_of(json.loads(same.stdout)) == rows_of(
        json.loads(hotspan_command("stats", path, "--json").stdout)
    )


def test_several_files_and_a_folder_tell_ranks_apart(
    hotspan_command: Command, write_trace: Callable[..., Path], tmp_path: Path
) -> None:
    folder = tmp_path / "ranks"
    folder.mkdir()
    paths = [
        write_trace(
            [complete(f"only on rank {rank}", 0, 10 + rank)],
            f"ranks/worker{rank}.pt.trace.json",
            distributedInfo={"rank": rank, "world_size": 3, "backend": "gloo"},
        )
        for rank in range(3)
    ]
    (folder / "notes.txt").write_text("not a trace")
    together = hotspan_command("stats", *paths)
    whole_folder = hotspan_command("stats", folder)
    for done in (together, whole_folder):
        assert done.returncode == 0
        for rank in range(3):
            assert f"only on rank {rank}" in done.stdout
            assert f"rank {rank}" in done.stdout.replace(f"only on rank {rank}", "").lower()
    info = json.dumps(json.loads(hotspan_command("info", folder, "--json").stdout))
    assert info.count('"world_size": 3') == 3


@pytest.mark.parametrize("bad_first", [False, True])
def test_one_bad_file_among_good_ones_fails_but_does_not_hide_them(
    hotspan_command: Command, path: Path, tmp_path: Path, bad_first: bool
) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("what is this")
    done = hotspan_command("stats", *([bad, path] if bad_first else [path, bad]))
    assert done.returncode == 1
    assert "aten::linear" in done.stdout
    assert "bad.json" in done.stderr


def test_a_missing_file_is_named(hotspan_command: Command, tmp_path: Path) -> None:
    done = hotspan_command("stats", tmp_path / "nowhere.json")
    assert done.returncode == 1
    assert done.stdout == ""
    assert "nowhere.json" in done.stderr
    assert "panicked" not in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_usage_is_2(hotspan_command: Command, path: Path) -> None:
    assert hotspan_command().returncode == 2
    assert hotspan_command("nonsense").returncode == 2
    assert hotspan_command("stats").returncode == 2
    assert hotspan_command("stats", path, "--by", "colour").returncode == 2
    assert hotspan_command("stats", path, "--limit", "many").returncode == 2
    assert hotspan_command("export", path, "--to", "nowhere", "-o", "x").returncode == 2


def test_an_unknown_sort_key_lists_the_valid_ones(hotspan_command: Command, path: Path) -> None:
    done = hotspan_command("stats", path, "--sort", "cpu_tme")
    assert done.returncode == 2
    for word in ("cpu_tme", "self_cpu_time_total", "count"):
        assert word in done.stderr


def test_help_and_version_are_fine(hotspan_command: Command) -> None:
    shown = hotspan_command("--help")
    assert shown.returncode == 0
    for command in ("stats", "info", "export", "completions"):
        assert command in shown.stdout
    assert "Exit" in shown.stdout or "exit" in shown.stdout
    commands = shown.stdout.split("Commands:\n")[1].split("\n\n")[0].splitlines()
    purposes = [line[15:] for line in commands if not line.startswith(" " * 15)]
    assert len(purposes) > 15
    assert len(set(purposes)) == len(purposes), "each command says what it is for"
    version = hotspan_command("--version")
    assert version.returncode == 0
    assert hotspan.__version__ in version.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions(hotspan_command: Command, shell: str) -> None:
    done = hotspan_command("completions", shell)
    assert done.returncode == 0
    assert "hotspan" in done.stdout
    assert "stats" in done.stdout
    if shell == "bash":
        assert subprocess.run(["bash", "-n"], input=done.stdout, text=True, check=False).returncode == 0


def test_a_closed_pipe_is_quiet(write_trace: Callable[..., Path]) -> None:
    # More than a pipe holds, so that the writer is still at it when the reader has gone.
    long = write_trace([complete(f"operator number {number:06}", number * 10, 5) for number in range(20_000)])
    program = Path(sys.executable).with_name("hotspan")
    script = 'set -o pipefail; "$0" stats "$1" --limit 20000 | head -1 > /dev/null; echo "${PIPESTATUS[0]}"'
    done = subprocess.run(
        ["bash", "-c", script, str(program), str(long)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.stdout.strip() in {"0", "141"}


def test_python_dash_m_is_the_same_command(hotspan_command: Command, path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "hotspan", "stats", str(path), "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0
    assert json.loads(done.stdout) == json.loads(hotspan_command("stats", path, "--json").stdout)


def test_no_colour_codes_and_no_progress_bar_in_a_pipe(hotspan_command: Command, path: Path) -> None:
    done = hotspan_command("stats", path)
    assert "\x1b" not in done.stdout + done.stderr
    assert "\r" not in done.stdout + done.stderr
