"""Names in a trace may hold anything; what a terminal obeys is spelled out in everything that is printed."""

from __future__ import annotations

import csv
import io
import json
import os
import pstats
import subprocess
import sys
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import complete
from hotspan._core import run_cli

# A title, the clipboard, a colour, a cleared screen, C1, DEL, directions, invisible characters, and rows that are none.
HOSTILE = (
    "\x1b]0;title\x07\x1b]52;c;cHduZWQ=\x1b\\\x1b[31m\x1b[2J\x9b31m\x9d0;x\x9c\x7f\x00\x08\x0b\x0c\x85"
    "\u202a\u202e\u2066\u2069\u200e\u200f\u061c\u200b\u2060\ufeff\U000e0041\tTAB\nFAKEROW\rFAKEROW\r\nFAKEROW\u2028FAKEROW"
)
FORMATS: list[list[str]] = [[], ["--json"], ["--csv"], ["--markdown"]]


def hostile(word: str = "") -> str:
    """A hostile text that differs from others by a word."""
    return f"{word}{HOSTILE}{word}"


def dirty(value: Any) -> Any:
    """Every text of a JSON value made hostile, the keys too."""
    if isinstance(value, dict):
        return {key: dirty(content) for key, content in value.items()}
    if isinstance(value, list):
        return [dirty(content) for content in value]
    return hostile(value) if isinstance(value, str) else value


def events(slowness: float) -> Iterator[dict[str, Any]]:
    """A training of six steps on a device, with stacks, modules, memory, threads, counters and collectives."""
    yield {"ph": "M", "name": "process_name", "pid": 1, "args": {"name": hostile("process")}}
    yield {"ph": "M", "name": "process_labels", "pid": 1, "args": {"labels": hostile("labels")}}
    yield {"ph": "M", "name": "thread_name", "pid": 1, "tid": 1, "args": {"name": hostile("thread")}}
    for step in range(6):
        at = step * 1000.0
        yield complete(f"ProfilerStep#{step}", at, 900, cat="user_annotation")
        yield complete(hostile("range"), at + 1, 890, cat="user_annotation")
        yield complete(
            f"{hostile('file')}.py(3): {hostile('function')}",
            at + 2,
            880,
            cat="python_function",
            args={"Python id": 1},
        )
        yield complete(hostile("nn.Module: "), at + 3, 870, cat="python_function", args={"Python id": 2})
        for number in range(3):
            begin = at + 10 + number * 200
            identity = step * 10 + number + 1
            args = {
                "External id": identity,
                "Input Dims": [[2, 3], hostile("shape")],
                "Input type": dirty(["float", ""]),
                "Concrete Inputs": dirty(["", "1"]),
                "Call stack": f"{hostile('a')}.py(1): f;{hostile('b')}.py(2): g",
            }
            yield complete(hostile("aten::mm"), begin, 100 * slowness, args=args)
            launch = {"External id": identity, "correlation": identity}
            yield complete("cudaLaunchKernel", begin + 10, 5, cat="cuda_runtime", args=launch)
            device = {"device": 0, "stream": 7, "grid": [1, 1, 1], "block": [1, 1, 1], **launch}
            kernel = {"cat": "kernel", "pid": 0, "tid": 7, "args": device}
            yield complete(hostile("gemm"), begin + 20, 80 * slowness, **kernel)
            copy = {
                "cat": "gpu_memcpy",
                "pid": 0,
                "tid": 7,
                "args": {**device, "bytes": 1000, "kind": hostile("kind")},
            }
            yield complete(hostile("Memcpy HtoD (Pageable -> Device)"), begin + 110, 20, **copy)
            nccl = {**device, "Collective name": hostile("allreduce"), "Process Group Name": hostile("group")}
            yield complete(
                hostile("ncclDevKernel_AllReduce"), begin + 140, 30, cat="kernel", pid=0, tid=20, args=nccl
            )
            memory = {"Bytes": 64, "Addr": 5, "Device Type": 0, "Device Id": -1, "Total Allocated": 64}
            yield {
                "ph": "i",
                "s": "t",
                "cat": "cpu_instant_event",
                "name": "[memory]",
                "pid": 1,
                "tid": 1,
                "ts": begin,
                "args": memory,
            }
        yield complete(hostile("Optimizer.step#Adam"), at + 700, 50, cat="cpu_op")
        yield {
            "ph": "C",
            "name": hostile("counter"),
            "pid": 1,
            "tid": 1,
            "ts": at,
            "args": {hostile("series"): step},
        }
    yield {"ph": hostile("phase"), "name": hostile(), "ts": hostile()}


def kineto(path: Path, slowness: float = 1.0, rank: int = 0) -> Path:
    """A trace as torch.profiler writes it."""
    trace = {
        "schemaVersion": 1,
        **{
            key: hostile(key)
            for key in ("host_name", "trace_id", "traceName", "cuda_runtime_version", "cupti_version")
        },
        "deviceProperties": [
            {"id": 0, "name": hostile("device"), "totalGlobalMem": 1000, "computeMajor": 9, "computeMinor": 0}
        ],
        "distributedInfo": {"backend": hostile("nccl"), "rank": rank, "world_size": 2},
        "record_shapes": 1,
        "with_stack": 1,
        "hotspan.run": {
            "command": hostile("command"),
            "ended": hostile("ended"),
            "unrecorded": [{"command": hostile()}],
        },
        "hotspan.environment": dirty(
            {"python": "3", "torch": "2", "system": "linux", "variables": {"OMP_NUM_THREADS": "1"}}
        ),
        "traceEvents": list(events(slowness)),
    }
    path.write_text(json.dumps(trace))
    return path


def speedscope(path: Path) -> Path:
    """Samples."""
    frames = [{"name": hostile(f"f{number}"), "file": hostile("file"), "line": number} for number in range(3)]
    profile = {
        "type": "sampled",
        "name": hostile("thread"),
        "unit": "seconds",
        "startValue": 0,
        "endValue": 3,
    }
    profile |= {"samples": [[0], [0, 1], [0, 1, 2]], "weights": [1, 1, 1]}
    schema = "https://www.speedscope.app/file-format-schema.json"
    document = {
        "$schema": schema,
        "name": hostile(),
        "exporter": hostile(),
        "shared": {"frames": frames},
        "profiles": [profile],
    }
    path.write_text(json.dumps(document))
    return path


def prof(path: Path) -> Path:
    """Functions, as cProfile writes them."""
    caller, called = (hostile("file"), 1, hostile("caller")), (hostile("file"), 2, hostile("called"))
    stats = pstats.Stats()
    stats.stats = {caller: (1, 1, 0.5, 1.0, {}), called: (1, 1, 0.5, 0.5, {caller: (1, 1, 0.5, 0.5)})}  # type: ignore[attr-defined]
    stats.dump_stats(path)
    return path


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Hostile traces in a folder with a hostile name."""
    folder = tmp_path_factory.mktemp("hostile") / HOSTILE.replace("\x00", "").replace("/", "")
    folder.mkdir()
    return {
        "kineto": kineto(folder / "rank0.json"),
        "slower": kineto(folder / "rank1.json", 1.7, rank=1),
        "speedscope": speedscope(folder / "samples.speedscope.json"),
        "prof": prof(folder / "calls.prof"),
    }


def commands(traces: dict[str, Path]) -> Iterator[list[str]]:
    """Every command that shows a trace, in every format."""
    one, two = str(traces["kineto"]), str(traces["slower"])
    views = [
        "op",
        "shape",
        "stack",
        "module",
        "thread",
        "call",
        "kernel",
        "copy",
        "stream",
        "function",
        "line",
    ]
    for view in views:
        yield from (["stats", one, "--by", view, *form] for form in FORMATS)
    yield ["stats", one, "--wide"]
    for form in FORMATS:
        yield ["stats", one, two, *form]
        yield ["steps", one, *form]
        yield ["gpu", one, *form]
        yield ["ranks", one, two, *form]
        yield ["diff", one, two, "--all", *form]
        yield ["stats", str(traces["prof"]), *form]
    yield ["stats", str(traces["prof"]), "--callers", "called"]
    yield ["stats", str(traces["prof"]), "--callees", "caller"]
    for trace in traces.values():
        yield from ([command, str(trace), *form] for command in ("info", "tree") for form in ([], ["--json"]))
        yield from (["report", str(trace), *form] for form in ([], ["--json"], ["--markdown"]))
    yield ["tree", one, "--all", "--least", "0", "--threads", "--lines"]
    yield from (["advise", one, *form] for form in ([], ["--json"], ["--markdown"]))
    yield from (["report", one, two, *form] for form in ([], ["--json"], ["--markdown"]))


def mistakes(folder: Path) -> Iterator[list[str]]:
    """Commands whose errors quote what they were given."""
    broken = folder / "broken.json"
    broken.write_text(HOSTILE)
    name = HOSTILE.replace("\x00", "")
    yield ["stats", str(broken)]
    yield ["stats", str(folder / name / "missing.json")]
    yield ["stats", "--sort", name, str(folder / "rank0.json")]
    yield ["stats", "--by", name]
    yield [name]
    yield ["advise", "--only", name, str(folder / "rank0.json")]
    yield [
        "export",
        str(folder / "rank0.json"),
        "--to",
        "chrome",
        "-o",
        str(folder / name / "missing" / "x.json"),
    ]
    yield ["run", str(folder / name)]
    yield ["run", "-o", str(folder), "-c", "pass"]


def offending(text: str) -> set[str]:
    """Characters that do something else than to appear."""
    kinds = {"Cc", "Cf", "Zl", "Zp"}
    return {
        f"U+{ord(one):04X}"
        for one in text
        if unicodedata.category(one) in kinds and one not in "\n\u200c\u200d"
    }


def check(text: str, command: list[str]) -> None:
    """Nothing is obeyed, and no row is made up."""
    assert not offending(text), (command, offending(text))
    made_up = [line for line in text.split("\n") if line.lstrip(' |"').startswith("FAKEROW")]
    assert not made_up, (command, made_up)


def test_no_command_prints_what_a_terminal_obeys(
    traces: dict[str, Path], capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    seen = 0
    for command in commands(traces):
        assert run_cli(["hotspan", *command]) == 0, (command, capfdbinary.readouterr())
        captured = capfdbinary.readouterr()
        check(captured.out.decode(), command)
        check(captured.err.decode(), command)
        seen += captured.out.count(b"\\x1b]") + captured.out.count(rb"\u001b]")
    # The names are there, spelled out.
    assert seen > 500


def test_no_error_prints_what_a_terminal_obeys(
    traces: dict[str, Path], capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The Python that is started has hotspan.
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    for command in mistakes(traces["kineto"].parent):
        assert run_cli(["hotspan", *command]) != 0, command
        captured = capfdbinary.readouterr()
        text = captured.err.decode()
        # A tab does no harm where there are no columns.
        assert offending(text) <= {"U+0009"}, (command, offending(text))
        assert "\\x9b31m" in text, (command, text)


def test_json_has_the_names_as_they_are(traces: dict[str, Path], capfd: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["hotspan", "stats", str(traces["kineto"]), "--by", "kernel", "--json"]) == 0
    [result] = json.loads(capfd.readouterr().out)
    assert hostile("gemm") in {row["name"] for row in result["rows"]}
    assert result["file"] == str(traces["kineto"])


def test_python_tables_and_errors(traces: dict[str, Path], tmp_path: Path) -> None:
    trace = hotspan.open(traces["kineto"])
    table = trace.key_averages().table(row_limit=100)
    check(table, ["table"])
    assert "aten::mm\\x1b]0;title" in trace.key_averages().table(max_name_column_width=None)
    check(str(trace.advise()), ["advise"])
    broken = tmp_path / "broken.json"
    broken.write_text(HOSTILE)
    with pytest.raises(hotspan.HotspanError) as raised:
        hotspan.open(broken)
    assert not offending(str(raised.value))


def test_spreadsheets_get_no_formulas(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = ["=cmd|' /C calc'!A0", "+1+cmd", "-2+3", "@SUM(1,2)", "aten::add", "-5"]
    path = tmp_path / "trace.json"
    path.write_text(
        json.dumps({"traceEvents": [complete(name, at * 10, 5) for at, name in enumerate(names)]})
    )

    def cells(*options: str) -> set[str]:
        assert run_cli(["hotspan", "stats", str(path), "--csv", *options]) == 0
        return {row["name"] for row in csv.DictReader(io.StringIO(capfd.readouterr().out))}

    assert cells() == {"'=cmd|' /C calc'!A0", "'+1+cmd", "'-2+3", "'@SUM(1,2)", "aten::add", "-5"}
    assert cells("--csv-formulas") == set(names)


RUNNING = """
import threading, time
def spin():
    while True:
        sum(range(1000))
text = chr(27) + "]0;x" + chr(7) + chr(0x202e) + chr(10) + "FAKEROW"
scope = {"local": text}
source = "def work():\\n    local = scope['local']\\n    spin()"
exec(compile(source, "file" + text, "exec"), globals() | {"scope": scope}, scope)
work = scope["work"]
work.__code__ = work.__code__.replace(co_name="work" + text)
threading.Thread(target=work, name="thread" + text, daemon=True).start()
print("ready", flush=True)
time.sleep(60)
"""


def test_a_running_program_with_hostile_names(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with subprocess.Popen([sys.executable, "-c", RUNNING], stdout=subprocess.PIPE) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        try:
            for words in (
                ["dump", "--locals"],
                ["dump", "--json"],
                ["dump", "--hotspan-json"],
                ["top", "--once", "-d", "0.3"],
            ):
                command = [*words, "--pid", str(program.pid)]
                assert run_cli(["hotspan", *command]) == 0, (command, capfdbinary.readouterr())
                text = capfdbinary.readouterr().out.decode()
                check(text, command)
                assert "u202e" in text.replace("{", ""), (command, text)
        finally:
            program.kill()


def test_a_terminal_gets_colours_of_ours_alone(traces: dict[str, Path]) -> None:
    """On a real terminal colours are on; those of a name are not among them."""
    master, slave = os.openpty()
    command = [sys.executable, "-m", "hotspan", "tree", str(traces["speedscope"])]
    environment = {key: value for key, value in os.environ.items() if key != "NO_COLOR"} | {"TERM": "xterm"}
    with subprocess.Popen(command, stdout=slave, stderr=subprocess.DEVNULL, env=environment) as program:
        os.close(slave)
        output = b""
        while True:
            try:
                piece = os.read(master, 65536)
            except OSError:
                break
            if not piece:
                break
            output += piece
    os.close(master)
    assert program.returncode == 0
    assert b"\x1b[2m" in output
    assert b"\\x1b[31m\\x1b[2J" in output
    assert b"\x1b]" not in output
    assert b"\x1b[2J" not in output
