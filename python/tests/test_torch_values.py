"""What single events and rows say has torch's types and values: compared with torch.profiler's own."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.autograd.profiler
import torch.profiler
from torch.autograd.profiler import KinetoStepTracker
from torch.profiler import DeviceType, ExecutionTraceObserver, ProfilerActivity

import hotspan.profiler
from hotspan.profiler import autograd_profile, profile, schedule
from hotspan.profiler.autograd import ProfilerState

CPU = [ProfilerActivity.CPU]
MODULES = [torch.profiler, hotspan.profiler]


def inputs() -> None:
    x = torch.rand(2, 6)
    x.as_strided([4, 3], [1, 4])
    torch.full((2, 2), 1.5)
    torch.add(x, x, alpha=2)
    torch.complex(x, x).mul(3 - 4.5j)


def one(prof: Any, name: str) -> Any:
    return next(event for event in prof.events() if event.name == name)


def test_concrete_inputs_are_values() -> None:
    def values(module: Any) -> Any:
        with module.profile(activities=CPU, record_shapes=True) as prof:
            inputs()
        return [(event.name, event.concrete_inputs) for event in prof.events()]

    theirs, ours = (values(module) for module in MODULES)
    assert ("aten::as_strided", [None, [4, 3], [1, 4], None]) in ours
    assert ours == theirs


class Scaled(torch.autograd.Function):
    """A function with an input that is no tensor."""

    @staticmethod
    def forward(_context: Any, x: Any, scale: float, y: Any) -> Any:
        return x + y * scale

    @staticmethod
    def backward(_context: Any, gradient: Any) -> Any:
        return gradient, None, gradient


def test_functions_of_the_program_keep_places_for_what_is_no_tensor() -> None:
    x, y = torch.ones(2, 3, requires_grad=True), torch.ones(3, requires_grad=True)
    with profile(activities=CPU, record_shapes=True) as prof:
        Scaled.apply(x, 2.0, y)
    assert one(prof, "Scaled").input_shapes == [[2, 3], [], [3]]
    assert not torch._C._autograd._profiler_enabled()


@pytest.mark.filterwarnings("ignore:Unable to infer type")
def test_fast_ranges_have_their_inputs_and_keywords() -> None:
    x = torch.ones(4, 4)
    keywords = {"stream": 0, "grid": "text", "names": ["a", "b"], "flag": True, "mixed": ["a", 1]}
    with profile(activities=CPU, record_shapes=True) as prof:
        with torch._C._profiler._RecordFunctionFast("fast", [x, x], keywords):
            torch.add(x, x)
        with torch._C._profiler._RecordFunctionFast("user", [x], {"scope": "user_scope"}):
            torch.add(x, x)
    event = one(prof, "fast")
    assert event.input_shapes == [[4, 4], [4, 4]]
    assert event.kwinputs == {"stream": 0, "grid": "text", "names": ["a", "b"], "flag": True}
    assert (event.category, one(prof, "user").category) == ("cpu_op", "user_annotation")
    assert one(prof, "aten::add").kwinputs == {}
    with profile(activities=CPU) as prof, torch._C._profiler._RecordFunctionFast("fast", [x], keywords):
        pass
    assert (one(prof, "fast").input_shapes, one(prof, "fast").kwinputs) == ([], {})


RPC = """
import sys
import torch
import torch.distributed.rpc as rpc
from hotspan.profiler import ProfilerActivity, profile

enabled = torch._C._autograd._profiler_enabled
options = rpc.TensorPipeRpcBackendOptions(init_method=f"file://{sys.argv[1]}")
original = rpc.backend_registry.init_backend
said = []
with profile(activities=[ProfilerActivity.CPU], record_shapes=True):
    said.append(enabled())
    rpc.init_rpc("one", rank=0, world_size=1, rpc_backend_options=options)
    said.append(enabled())
    rpc.rpc_sync("one", torch.add, args=(torch.ones(2), 1))
with profile(activities=[ProfilerActivity.CPU], record_shapes=True):
    said += [enabled(), torch.autograd._profiler_enabled()]
    rpc.rpc_sync("one", torch.add, args=(torch.ones(2), 1))
said.append(rpc.backend_registry.init_backend is original)
rpc.shutdown()
print(*said)
"""


@pytest.mark.skipif(
    not hasattr(torch.distributed, "rpc") or not torch.distributed.rpc.is_available(), reason="needs RPC"
)
def test_rpc_finds_no_profiler(tmp_path: Path) -> None:
    """It would take ours for one of its own, and write into it."""
    program = tmp_path / "program.py"
    program.write_text(RPC)
    command = [sys.executable, str(program), str(tmp_path / "store")]
    said = subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout
    assert said.split() == ["True", "False", "False", "True", "True"]


def test_devices_are_torchs() -> None:
    with profile(activities=CPU) as prof:
        inputs()
    assert {event.device_type for event in prof.events()} == {DeviceType.CPU}
    assert {row.device_type for row in prof.key_averages()} == {DeviceType.CPU}


def test_the_thread_of_the_forward_operator_is_one_that_was_seen() -> None:
    with profile(activities=CPU) as prof:
        x = torch.ones(3, requires_grad=True)
        (x + x).sum().backward()
    node = one(prof, "AddBackward0")
    assert node.fwd_thread == one(prof, "aten::add").thread
    assert one(prof, "aten::sum").fwd_thread == 0


def test_flows_are_those_of_the_exported_trace(tmp_path: Path) -> None:
    with profile(activities=CPU) as prof:
        x = torch.ones(3, requires_grad=True)
        (x + x).sum().backward()
    prof.export_chrome_trace(tmp_path / "trace.json")
    exported = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    flows = {(event["id"], event["ph"]) for event in exported if event.get("cat") == "fwdbwd"}
    assert flows
    events = [event for event in prof.events() if event.flow_type == 1]
    assert {(event.flow_id, "s" if event.flow_start else "f") for event in events} == flows


def test_times_and_results_fit_the_exported_trace(tmp_path: Path) -> None:
    with profile(activities=CPU) as prof:
        torch.ones(3)
    prof.profiler.kineto_results.save(tmp_path / "trace.json")
    exported = json.loads((tmp_path / "trace.json").read_text())
    event = next(event for event in exported["traceEvents"] if event["name"] == "aten::ones")
    ours = one(prof, "aten::ones")
    origin = prof.profiler.kineto_results.trace_start_ns()
    assert (
        round(ours.time_range.start * 1000) + origin
        == round(event["ts"] * 1000) + exported["baseTimeNanoseconds"]
    )
    raw = next(event for event in prof.profiler.kineto_results.events() if event.name() == "aten::ones")
    assert raw.start_ns() == ours.start_ns + origin
    assert raw.end_ns() - raw.start_ns() == raw.duration_ns() == ours.duration_ns
    assert (raw.correlation_id(), raw.device_type()) == (ours.id, DeviceType.CPU)


def test_torchs_exporter_writes_what_was_recorded(tmp_path: Path) -> None:
    export = pytest.importorskip("torch.profiler._chrome_trace_export").export_chrome_trace
    with profile(activities=CPU) as prof:
        inputs()
    export(prof.profiler.kineto_results, str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = [event["name"] for event in events if event.get("cat") == "cpu_op"]
    assert names == [event.name for event in prof.events()]


def test_python_calls_have_the_numbers_of_the_exported_trace(tmp_path: Path) -> None:
    module = torch.nn.Linear(2, 2)
    with profile(activities=CPU, with_stack=True) as prof:
        module(torch.ones(2))
    prof.export_chrome_trace(tmp_path / "trace.json")
    exported = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    keys = ("Python id", "Python parent id", "Python module id")
    calls = {
        tuple(event["args"].get(key, -1) or -1 for key in keys)
        for event in exported
        if event.get("cat") == "python_function"
    }
    ours = {
        (event.python_id, event.python_parent_id or -1, event.python_module_id or -1)
        for event in prof.events()
        if event.is_python_function
    }
    assert ours == calls


def test_events_are_a_list(tmp_path: Path) -> None:
    with profile(activities=CPU, with_stack=True) as prof:
        inputs()
    events = prof.events()
    assert isinstance(events, list)
    made = list(events)
    assert made == events
    assert made[0] in events
    assert len(events + events) == 2 * len(events)
    assert events[-1] == made[-1]
    assert events[:2] == made[:2]
    events.sort(key=lambda event: event.name)
    assert [event.name for event in events] == sorted(event.name for event in made)
    events.append(made[0])
    assert len(events) == len(made) + 1
    assert [event.name for event in prof.events()] == [event.name for event in made]
    events.export_chrome_trace(tmp_path / "trace.json")
    assert json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    events.export_stacks(tmp_path / "stacks.txt", events.supported_export_stacks_metrics()[0])
    assert (tmp_path / "stacks.txt").read_text().splitlines()
    assert {row.key for row in events.key_averages(include_python_functions=True)} >= {
        row.key for row in events.key_averages()
    }


def test_torchs_own_list_takes_them() -> None:
    with profile(activities=CPU) as prof:
        inputs()
    table = torch.autograd.profiler.EventList(prof.events()).table()
    assert "aten::as_strided" in table


def test_rows_can_be_added() -> None:
    with profile(activities=CPU) as prof:
        inputs()
    rows = prof.key_averages()
    add = next(row for row in rows if row.key == "aten::add")
    total, calls = add.cpu_time_total, add.count
    assert add.add(add) is add
    assert (add.cpu_time_total, add.count) == (2 * total, 2 * calls)
    with pytest.raises(AssertionError, match="aten::add"):
        add.add(next(row for row in rows if row.key == "aten::full"))
    assert add.cpu_time_total_str == f"{add.cpu_time_total:.3f}us" or add.cpu_time_total >= 1000


def test_an_execution_trace_has_the_numbers_of_the_operators(tmp_path: Path) -> None:
    written = tmp_path / "execution.json"
    observer = ExecutionTraceObserver().register_callback(str(written))
    with profile(activities=CPU, record_shapes=True, execution_trace_observer=observer) as prof:
        inputs()
    prof.export_chrome_trace(tmp_path / "trace.json")
    exported = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    ours = {
        (event["args"]["Record function id"], event["name"])
        for event in exported
        if event.get("cat") == "cpu_op"
    }
    theirs = {
        (attribute["value"], node["name"])
        for node in json.loads(written.read_text())["nodes"]
        for attribute in node["attrs"]
        if attribute["name"] == "rf_id"
    }
    assert len(ours) == len(prof.events())
    assert ours <= theirs


def test_an_execution_trace_is_written_when_the_environment_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ENABLE_PYTORCH_EXECUTION_TRACE", "1")
    with profile(activities=CPU) as prof:
        inputs()
    written = Path(prof.execution_trace_observer.get_output_file_path())
    try:
        assert any(node["name"] == "aten::full" for node in json.loads(written.read_text())["nodes"])
    finally:
        written.unlink()


def test_steps_are_counted_for_the_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KINETO_USE_DAEMON", "1")

    def steps(module: Any) -> int:
        with module.profile(activities=CPU, schedule=schedule(wait=1, warmup=1, active=2)) as prof:
            before = KinetoStepTracker.current_step()
            for _ in range(8):
                prof.step()
            return KinetoStepTracker.current_step() - before

    assert steps(hotspan.profiler) == steps(torch.profiler) == 8


def test_kinds_of_activity_that_torch_does_not_know_are_refused() -> None:
    for activity, name in ((ProfilerActivity.CPU, "NONSENSE"), (ProfilerActivity.CPU, "GPU_MEMCPY")):
        with pytest.raises(RuntimeError, match="Unknown or non-member activity type name"):
            profile(activities=[{activity: [name]}])
    with pytest.raises(RuntimeError, match="CPU_OP"):
        profile(activities=[{ProfilerActivity.CUDA: ["CPU_OP"]}])
    profile(activities=[{ProfilerActivity.CPU: ["CPU_OP", "USER_ANNOTATION"]}])


@pytest.mark.filterwarnings("ignore:PrivateUse1 is not available")
def test_devices_of_the_older_interface(monkeypatch: pytest.MonkeyPatch) -> None:
    with autograd_profile(use_device="cpu", use_kineto=True) as prof:
        inputs()
    assert prof.use_device is None
    assert "aten::full" in str(prof)
    monkeypatch.setattr(torch.autograd.profiler, "_get_privateuse1_backend_name", lambda: "mine")
    if not hasattr(ProfilerState, "KINETO_PRIVATEUSE1"):
        pytest.skip("this torch does not distinguish these kinds")
    kinds = [
        autograd_profile(use_device="mine", use_kineto=use_kineto).profiler_kind
        for use_kineto in (True, False)
    ]
    assert kinds == [ProfilerState.KINETO_PRIVATEUSE1, ProfilerState.KINETO_PRIVATEUSE1_FALLBACK]
    with pytest.raises(AssertionError, match="use_kineto"):
        autograd_profile(use_cpu=False, use_device="mine")


def test_how_long_it_took_is_told() -> None:
    with profile(activities=CPU) as prof:
        inputs()
    told = prof._stats()
    assert told.number_of_events == 0
    assert prof.profiler._stats is told
    prof.events()
    assert told.number_of_events > 0
    assert min(told.profiling_window_duration_sec, told.profiler_disable_call_duration_us) > 0


def test_collections_of_garbage_are_recorded_on_request() -> None:
    config = torch.profiler._ExperimentalConfig(record_python_gc_info=True)
    found = []
    for given in (config, None):
        with profile(activities=CPU, experimental_config=given) as prof:
            gc.collect()
        found.append(sum(event.name == "Python GC" for event in prof.events()))
    assert found[0] > 0
    assert found[1] == 0
    assert not [
        callback for callback in gc.callbacks if "hotspan.profiler" in getattr(callback, "__module__", "")
    ]


def test_only_the_trace() -> None:
    try:
        config = torch.profiler._ExperimentalConfig(trace_only=True)
    except TypeError:
        pytest.skip("this torch has no such option")
    with profile(activities=CPU, experimental_config=config) as prof:
        inputs()
    with pytest.raises(RuntimeError, match="trace_only"):
        prof.events()
    with pytest.warns(UserWarning, match="trace_only"):
        profile(activities=CPU, with_stack=True, experimental_config=config)


def outline(nodes: Any, depth: int = 0) -> list[tuple[int, str]]:
    return [line for node in nodes for line in ((depth, node.name), *outline(node.children, depth + 1))]


@pytest.mark.parametrize("memory", [False, True])
def test_the_tree_of_events_is_torchs(memory: bool) -> None:
    def tree(module: Any) -> list[tuple[int, str]]:
        x = torch.ones(1, requires_grad=True)
        with module.profile(activities=CPU, profile_memory=memory) as prof:
            with module.record_function("a range"):
                loss = (torch.ones(1) - x) ** 2
                module.record_function("never closed").__enter__()
                torch.ones(1)
            loss.backward()
        return outline(prof.profiler.kineto_results.experimental_event_tree())

    tree(torch.profiler)
    theirs, ours = (tree(module) for module in MODULES)
    assert ours == theirs
    assert ((1, "[memory]") in ours) == memory


def test_windows_of_one_program_go_on_counting() -> None:
    def numbers() -> set[int]:
        with profile(activities=CPU) as prof:
            torch.ones(1).add(1)
        return {event.id for event in prof.events()}

    first, second = numbers(), numbers()
    assert first
    assert second
    assert not first & second


def test_nodes_of_the_tree_tell_who_called() -> None:
    def called() -> None:
        torch.ones(1)

    with profile(activities=CPU, with_stack=True) as prof:
        called()
    roots = prof.profiler.kineto_results.experimental_event_tree()
    nodes = list(torch.profiler._utils.traverse_dfs(roots))
    calls = [node for node in nodes if isinstance(node.extra_fields, torch._C._profiler._ExtraFields_PyCall)]
    found = next(node for node in calls if node.name.endswith(": called"))
    assert found.typed[0] == torch._C._profiler._EventType.PyCall
    assert found.extra_fields.callsite.function_name == "called"
    assert found.extra_fields.caller.function_name == "test_nodes_of_the_tree_tell_who_called"
    operator = next(node for node in nodes if node.name == "aten::ones")
    assert isinstance(operator.extra_fields, torch._C._profiler._ExtraFields_TorchOp)
    assert operator.parent.parent is found
    assert operator.start_tid == found.start_tid == threading.get_native_id()


def test_torchs_own_tools_get_torchs_results_where_torch_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"record_shapes": True, "profile_memory": True, "with_stack": True}
    monkeypatch.setenv("HOTSPAN_COLLECTOR", "kineto")
    with profile(activities=CPU, **options) as prof:
        inputs()
    assert prof._memory_profile().timeline
    assert prof.profiler.kineto_results.experimental_event_tree()
    with pytest.raises(ValueError, match="with_stack=True"):
        profile(activities=CPU)._memory_profile()
