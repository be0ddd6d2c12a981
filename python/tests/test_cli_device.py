"""The commands about devices: `stats --by copy|stream|kernel`, `steps`, `gpu`, in every form."""

from __future__ import annotations

import csv
import io
import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import complete

Command = Callable[..., "subprocess.CompletedProcess[str]"]


def on_device(name: str, start: float, duration: float, correlation: int, **fields: Any) -> dict[str, Any]:
    args = {"correlation": correlation, "device": 0, **fields.pop("args", {})}
    return complete(name, start, duration, **{"cat": "kernel", "pid": 0, "tid": 7, "args": args, **fields})


def call(name: str, start: float, duration: float, correlation: int) -> dict[str, Any]:
    return complete(name, start, duration, cat="cuda_runtime", args={"correlation": correlation})


# A step of 100 us: a copy, a product, and a wait for it.
EVENTS = [
    complete("ProfilerStep#3", 0, 100, cat="user_annotation"),
    complete("aten::copy_", 10, 15),
    call("cudaMemcpyAsync", 12, 10, 1),
    on_device("Memcpy HtoD (Pageable -> Device)", 20, 10, 1, cat="gpu_memcpy", args={"bytes": 40_000}),
    complete("aten::mm", 40, 20),
    call("cudaLaunchKernel", 45, 5, 2),
    on_device("sm90_xmma_gemm_bf16", 52, 40, 2, args={"blocks per SM": 0.5, "est. achieved occupancy %": 50}),
    call("cudaDeviceSynchronize", 60, 35, 3),
]


@pytest.fixture
def path(write_trace: Callable[..., Path]) -> Path:
    return write_trace(EVENTS, deviceProperties=[{"id": 0, "name": "NVIDIA H200"}])


def ask(command: Command, *arguments: str | Path) -> Any:
    done = command(*arguments, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)[0]


def keyed(tables: dict[str, list[hotspan.Row]]) -> dict[str, list[dict[str, object]]]:
    """Rows as the command line names their columns: without `_ns`, and `from` as it is."""

    def as_printed(row: hotspan.Row) -> dict[str, object]:
        return {name.removesuffix("_ns").rstrip("_"): value for name, value in row._asdict().items()}

    return {name: [as_printed(row) for row in rows] for name, rows in tables.items()}


def test_steps(hotspan_command: Command, path: Path) -> None:
    told = ask(hotspan_command, "steps", path)
    assert told["devices"] == [
        {
            "step": "3",
            "device": "0",
            "begin": 0,
            "time": 100_000,
            "compute": 40_000,
            "communication": 0,
            "copy": 10_000,
            "idle": 50_000,
            "compute_share": 40.0,
            "idle_share": 50.0,
        }
    ]
    host = told["host"][0]
    assert (host["waiting"], host["runtime"], host["operators"]) == (35_000, 15_000, 20_000)
    assert {name: told[name] for name in ("devices", "host")} == keyed(hotspan.open(path).step_breakdown())


def test_gpu(hotspan_command: Command, path: Path) -> None:
    told = ask(hotspan_command, "gpu", path, "--limit", "0")
    device = told["devices"][0]
    assert (device["name"], device["busy_share"], device["utilisation"]) == ("NVIDIA H200", 50.0, 40.0)
    assert (device["sm_efficiency"], device["occupancy"], device["tensor_cores"]) == (20.0, 50.0, 100.0)
    causes = {row["cause"]: row["total"] for row in told["idle"]}
    # Late 0-12, 30-50 with the launch itself; waiting 92-95, and 95-100 for having waited.
    assert causes == {"host_late": 32_000, "copy": 8_000, "dispatch": 2_000, "synchronise": 8_000}
    assert told["launches"][0]["calls"] == 2
    tables = {name: rows for name, rows in told.items() if name not in ("file", "rank")}
    assert tables == keyed(hotspan.open(path).gpu())


def test_copies_and_streams(hotspan_command: Command, path: Path) -> None:
    copy = ask(hotspan_command, "stats", path, "--by", "copy")["rows"][0]
    assert (copy["kind"], copy["from"], copy["to"]) == ("HtoD", "Pageable", "Device")
    assert (copy["calls"], copy["bytes"], copy["rate"]) == (1, 40_000, 4.0)
    stream = ask(hotspan_command, "stats", path, "--by", "stream")["rows"][0]
    assert (stream["stream"], stream["kernels"], stream["copies"], stream["busy"]) == ("7", 1, 1, 50_000)
    kernel = ask(hotspan_command, "stats", path, "--by", "kernel")["rows"][0]
    assert (kernel["name"], kernel["tensor_cores"]) == ("sm90_xmma_gemm_bf16", "yes")
    assert keyed({"copies": hotspan.open(path).copies()}) == {"copies": [copy]}
    assert keyed({"streams": hotspan.open(path).streams()}) == {"streams": [stream]}


@pytest.mark.parametrize("key", ["cuda_time_total", "self_cuda_time_total", "device_time_total", "cuda_time"])
def test_torchs_names_sort_the_operators(hotspan_command: Command, path: Path, key: str) -> None:
    rows = ask(hotspan_command, "stats", path, "--sort", key)["rows"]
    first = {"cuda_time": "device_time_total"}.get(key, key).replace("cuda", "device")
    values = [row[first] for row in rows]
    assert values == sorted(values, reverse=True)
    assert values[0] >= 40_000


@pytest.mark.parametrize("command", ["steps", "gpu"])
def test_every_form(hotspan_command: Command, path: Path, command: str) -> None:
    done = hotspan_command(command, path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Idle" in done.stdout
    assert "| Device |" in hotspan_command(command, path, "--markdown").stdout
    tables = hotspan_command(command, path, "--csv").stdout.split("\n\n")
    assert len(tables) == len(ask(hotspan_command, command, path)) - 2
    for table in tables:
        header, *rows = csv.reader(io.StringIO(table))
        assert rows
        assert all(len(row) == len(header) for row in rows)


def test_a_trace_without_devices_is_no_error(
    hotspan_command: Command, write_trace: Callable[..., Path]
) -> None:
    path = write_trace([complete("aten::mm", 0, 10)])
    done = hotspan_command("gpu", path)
    assert (done.returncode, done.stdout) == (0, "")
    assert "no device did anything" in done.stderr
    assert [row["step"] for row in ask(hotspan_command, "steps", path)["host"]] == ["all"]
