"""Device work from a recording to its tables and export, with a libcupti of our own in place of a GPU.

The operators are torch's, and real: a custom operator launches a kernel of the fake device where a real one would.
"""

from __future__ import annotations

import ctypes
import json
import os
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.profiler import DeviceType

from hotspan.profiler import ProfilerActivity, profile, record_function, schedule

BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
MANGLED = b"_ZN2at6native4copyEPfi"
READABLE = "at::native::copy(float*, int)"


class Device:
    """The fake device."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.library = ctypes.CDLL(str(path))
        self.library.fake_launch.argtypes = [ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint64]
        self.library.fake_copy.argtypes = [ctypes.c_uint64, ctypes.c_uint64]
        # CUPTI's names outlive their kernels; so must these.
        self.names = {name: ctypes.create_string_buffer(name) for name in (MANGLED, b"gemm", b"tail")}

    def launch(self, name: bytes = b"gemm", stream: int = 7, nanoseconds: int = 5_000) -> None:
        self.library.fake_launch(self.names[name], stream, nanoseconds)


@pytest.fixture(scope="session")
def built(fake_cupti: Path) -> Device:
    device = Device(fake_cupti)

    @torch.library.custom_op("hotspan_test::launch", mutates_args=())
    def launch(x: torch.Tensor) -> torch.Tensor:
        device.launch()
        return x.clone()

    return device


@pytest.fixture
def device(built: Device, monkeypatch: pytest.MonkeyPatch) -> Iterator[Device]:
    monkeypatch.setenv("HOTSPAN_CUPTI", str(built.path))
    built.library.fake_reset()
    yield built
    built.library.fake_reset()


def launch(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.hotspan_test.launch(x)  # type: ignore[no-any-return]


def exported(recording: profile, folder: Path) -> list[dict[str, Any]]:
    path = folder / "trace.json"
    recording.export_chrome_trace(str(path))
    return json.loads(path.read_text())["traceEvents"]  # type: ignore[no-any-return]


def of(events: list[dict[str, Any]], category: str, phase: str = "X") -> list[dict[str, Any]]:
    return [event for event in events if event.get("cat") == category and event["ph"] == phase]


def test_ranges_around_the_kernels_of_triton_own_them(device: Device) -> None:
    """torch makes these ranges only on threads where it finds a profiler."""
    fast = torch._C._profiler._RecordFunctionFast
    x = torch.ones(4, requires_grad=True)

    def launch_in_range(_gradient: torch.Tensor) -> None:
        with fast("triton_backward"):
            device.launch(b"tail")

    with profile(activities=BOTH) as recording:
        with fast("triton_forward"):
            device.launch()
        y = x * 2
        y.register_hook(launch_in_range)
        y.sum().backward()
    rows = {row.key: row for row in recording.key_averages()}
    assert rows["triton_forward"].self_device_time_total == 5
    assert rows["triton_backward"].self_device_time_total == 5
    with torch.profiler.profile(activities=[ProfilerActivity.CPU]):  # the threads are as they were
        x.add(1)


@pytest.mark.parametrize(
    ("kinds", "expected"),
    [
        (None, {"kernel", "gpu_memcpy"}),
        (["GPU_MEMCPY"], {"gpu_memcpy"}),
        (["CONCURRENT_KERNEL", "CUDA_RUNTIME"], {"kernel"}),
        ([], set()),
    ],
)
def test_only_the_kinds_of_work_that_were_asked_for(
    device: Device, kinds: list[str] | None, expected: set[str], tmp_path: Path
) -> None:
    activities: Any = BOTH if kinds is None else [ProfilerActivity.CPU, {ProfilerActivity.CUDA: kinds}]
    with profile(activities=activities) as recording:
        launch(torch.ones(4))
        device.library.fake_copy(100, 7)
    events = exported(recording, tmp_path)
    assert {event.get("cat") for event in events} & {"kernel", "gpu_memcpy"} == expected
    assert of(events, "cpu_op")


@pytest.mark.usefixtures("device")
def test_torch_profiler_starts_beside_a_recording_of_a_device() -> None:
    x = torch.ones(4)
    with profile(activities=BOTH) as recording:
        launch(x)
        with torch.profiler.profile(activities=[ProfilerActivity.CPU]) as theirs:
            x.add(1)
        launch(x)
    assert "aten::add" in {row.key for row in theirs.key_averages()}
    assert {row.key: row.count for row in recording.key_averages()}["hotspan_test::launch"] == 2


@pytest.mark.usefixtures("device")
def test_kernels_belong_to_the_operator_that_launched_them(tmp_path: Path) -> None:
    x = torch.ones(4)
    with profile(activities=BOTH) as recording:
        with record_function("forward"):
            launch(x)
            launch(x)
        x.add(1)
    events = exported(recording, tmp_path)
    operators = {event["args"]["External id"]: event for event in of(events, "cpu_op")}
    kernels = of(events, "kernel")
    assert [kernel["name"] for kernel in kernels] == ["gemm", "gemm"]
    for kernel in kernels:
        owner = operators[kernel["args"]["External id"]]
        assert owner["name"] == "hotspan_test::launch"
        call = next(
            call
            for call in of(events, "cuda_runtime")
            if call["args"]["correlation"] == kernel["args"]["correlation"]
        )
        assert call["name"] == "cudaLaunchKernel"
        assert call["tid"] == threading.get_native_id()
        assert call["pid"] == os.getpid()
        assert owner["ts"] <= call["ts"] <= owner["ts"] + owner["dur"]
        assert (kernel["pid"], kernel["tid"], kernel["dur"]) == (0, 7, 5.0)
        assert kernel["args"]["grid"] == [132, 2, 1]
        assert kernel["args"]["block"] == [128, 1, 1]
    # An annotation has a second row, as the device saw it.
    rows = {row.key: row for row in recording.key_averages() if row.device_type == DeviceType.CPU}
    assert rows["hotspan_test::launch"].self_device_time_total == pytest.approx(10.0)
    assert rows["forward"].device_time_total == pytest.approx(10.0)
    assert rows["aten::add"].device_time_total == 0
    assert "Self CUDA" in recording.key_averages().table(sort_by="cuda_time_total")


def test_arrows_and_annotations_reach_the_device(device: Device, tmp_path: Path) -> None:
    x = torch.ones(4)
    with profile(activities=BOTH) as recording, record_function("outer"):
        launch(x)
        with record_function("inner"):
            launch(x)
            device.launch(b"tail", stream=9)
    events = exported(recording, tmp_path)
    starts, ends = (of(events, "ac2g", phase) for phase in "sf")
    assert sorted(arrow["id"] for arrow in starts) == sorted(arrow["id"] for arrow in ends)
    assert len(ends) == 3
    assert all(arrow["bp"] == "e" for arrow in ends)
    kernels = {(kernel["ts"], kernel["tid"]) for kernel in of(events, "kernel")}
    assert {(arrow["ts"], arrow["tid"]) for arrow in ends} == kernels
    marks = {(mark["name"], mark["tid"]): mark for mark in of(events, "gpu_user_annotation")}
    assert set(marks) == {("outer", 7), ("inner", 7), ("inner", 9)}
    annotations = {event["name"]: event["args"]["External id"] for event in of(events, "user_annotation")}
    assert marks["inner", 9]["args"]["External id"] == annotations["inner"]
    tail = next(kernel for kernel in of(events, "kernel") if kernel["name"] == "tail")
    assert (marks["inner", 9]["ts"], marks["inner", 9]["dur"]) == (tail["ts"], tail["dur"])
    assert tail["args"]["External id"] == annotations["inner"], "launched outside any operator"


def test_each_thread_launches_for_its_own_operators(device: Device, tmp_path: Path) -> None:
    def work() -> None:
        with record_function("elsewhere"):
            for _ in range(5):
                device.launch(b"tail", stream=9)

    with profile(activities=BOTH) as recording:
        thread = threading.Thread(target=work)
        with record_function("here"):
            thread.start()
            for _ in range(5):
                launch(torch.ones(1))
            thread.join()
    events = exported(recording, tmp_path)
    names = {
        event["args"]["External id"]: event["name"]
        for event in events
        if "External id" in event.get("args", {}) and event["cat"] in ("cpu_op", "user_annotation")
    }
    owners = {(kernel["name"], names[kernel["args"]["External id"]]) for kernel in of(events, "kernel")}
    assert owners == {("gemm", "hotspan_test::launch"), ("tail", "elsewhere")}


def test_threads_are_known_where_cupti_has_only_names_of_the_c_library(
    device: Device, tmp_path: Path
) -> None:
    device.library.fake_fail(b"cuptiSetThreadIdType", 0, 1)
    with profile(activities=BOTH) as recording:
        launch(torch.ones(1))
    events = exported(recording, tmp_path)
    assert [call["tid"] for call in of(events, "cuda_runtime")] == [threading.get_native_id()]
    owners = {event["args"]["External id"]: event["name"] for event in of(events, "cpu_op")}
    assert [owners[kernel["args"]["External id"]] for kernel in of(events, "kernel")] == [
        "hotspan_test::launch"
    ]


def test_names_are_demangled_and_rows_are_named_like_kinetos(device: Device, tmp_path: Path) -> None:
    with profile(activities=BOTH) as recording:
        device.launch(MANGLED)
        device.library.fake_copy(1_000, 500)
    events = exported(recording, tmp_path)
    assert [kernel["name"] for kernel in of(events, "kernel")] == [READABLE]
    copy = of(events, "gpu_memcpy")[0]
    assert copy["name"] == "Memcpy HtoD (Pinned -> Device)"
    assert copy["args"]["memory bandwidth (GB/s)"] == 2.0
    described = {
        (event["name"], event["pid"], event["tid"]): event["args"] for event in events if event["ph"] == "M"
    }
    assert described["thread_name", 0, 7]["name"] == "stream 7 "
    assert described["process_labels", 0, 0]["labels"] == "GPU 0"
    assert described["process_sort_index", 0, 0]["sort_index"] == 5_000_000


def test_each_window_of_a_schedule_has_its_own_kernels(device: Device, tmp_path: Path) -> None:
    counts = []

    def ready(recording: profile) -> None:
        counts.append(len(of(exported(recording, tmp_path), "kernel")))

    plan = schedule(wait=1, warmup=1, active=2, repeat=2)
    with profile(activities=BOTH, schedule=plan, on_trace_ready=ready) as recording:
        for step in range(8):
            for _ in range(step + 1):
                launch(torch.ones(1))
            recording.step()
    assert counts == [3 + 4, 7 + 8]
    assert device.library.fake_enabled() == 0


@pytest.mark.usefixtures("device")
def test_collection_can_be_paused_for_the_device_alone(tmp_path: Path) -> None:
    with profile(activities=BOTH) as recording:
        launch(torch.ones(1))
        recording.toggle_collection_dynamic(False, [ProfilerActivity.CUDA])
        launch(torch.ones(1))
        recording.toggle_collection_dynamic(True, [ProfilerActivity.CUDA])
    events = exported(recording, tmp_path)
    assert len(of(events, "kernel")) == 1
    assert sum(event["name"] == "hotspan_test::launch" for event in of(events, "cpu_op")) == 2


@pytest.mark.usefixtures("device")
def test_the_trace_is_the_same_after_a_round_trip(tmp_path: Path) -> None:
    import hotspan

    with profile(activities=BOTH) as recording, record_function("step"):
        launch(torch.ones(1))
    path = tmp_path / "trace.json"
    recording.export_chrome_trace(str(path))
    before, after = recording.key_averages(), hotspan.open(path).key_averages()
    assert {row.key: row.device_time_total for row in before} == {
        row.key: row.device_time_total for row in after
    }


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (39, "CUPTI is held by another profiler (CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)"),
        (35, "the driver does not let this user record device work"),
        (15, "CUPTI refused kernels (CUPTI error 15)"),
    ],
)
def test_a_refusal_is_one_line_and_the_cpu_goes_on(
    device: Device, capfd: pytest.CaptureFixture[str], code: int, words: str
) -> None:
    device.library.fake_fail(b"cuptiActivityEnable", 10, code)
    with profile(activities=BOTH) as recording:
        launch(torch.ones(1))
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("hotspan:")]
    assert len(said) == 1
    assert "device work is not recorded, only the CPU" in said[0]
    assert words in said[0]
    assert "hotspan_test::launch" in {row.key for row in recording.key_averages()}


def run(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=60,
    )


def test_a_library_that_is_no_cupti_stops_nothing(tmp_path: Path) -> None:
    program = """
        import torch
        from hotspan.profiler import profile, ProfilerActivity
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as recording:
            torch.ones(1) + 1
        print("aten::add" in {row.key for row in recording.key_averages()})
    """
    done = run(program, HOTSPAN_CUPTI=str(tmp_path / "nothing.so"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "True\n"
    said = [line for line in done.stderr.splitlines() if line.startswith("hotspan:")]
    assert len(said) == 1, done.stderr
    assert "libcupti is not loaded" in said[0]


@pytest.mark.usefixtures("device")
def test_a_forked_child_records_nothing_and_ends() -> None:
    with profile(activities=BOTH) as recording:
        launch(torch.ones(1))
        child = os.fork()
        if child == 0:
            recording.stop()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        launch(torch.ones(1))
    assert sum(row.count for row in recording.key_averages() if row.key == "hotspan_test::launch") == 2
