"""hotspan.profiler has torch.profiler's names, arguments, states and manners."""

from __future__ import annotations

import gzip
import inspect
import itertools
import json
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan

pytest.importorskip("torch")

import torch
import torch.autograd.profiler
import torch.profiler
from torch.profiler import ProfilerAction

import hotspan.profiler
from hotspan._notices import _said
from hotspan.profiler import ProfilerActivity, autograd_profile, profile, record_function, schedule
from hotspan.profiler import tensorboard_trace_handler as handler

CPU = [ProfilerActivity.CPU]


@pytest.fixture(autouse=True)
def forget_what_was_said() -> None:
    _said.clear()


@pytest.fixture(params=["native", "kineto"])
def collector(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HOTSPAN_COLLECTOR", request.param)
    return str(request.param)


def work() -> None:
    torch.add(torch.ones(3, 4), 1)


def names(prof: Any) -> list[str]:
    return [row.key for row in prof.key_averages()]


# Names and signatures


def test_it_is_imported_only_when_asked_for() -> None:
    code = "import sys, hotspan; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    "name", ["ProfilerActivity", "ProfilerAction", "record_function", "kineto_available"]
)
def test_what_is_torchs_own_is_the_same_object(name: str) -> None:
    assert getattr(hotspan.profiler, name) is getattr(torch.profiler, name)


@pytest.mark.parametrize("name", ["profile", "schedule", "tensorboard_trace_handler", "supported_activities"])
def test_every_argument_of_torch_is_accepted(name: str) -> None:
    ours = inspect.signature(getattr(hotspan.profiler, name)).parameters
    theirs = inspect.signature(getattr(torch.profiler, name)).parameters
    assert theirs.keys() <= ours.keys()
    for argument, described in theirs.items():
        assert ours[argument].kind == described.kind, argument
        assert ours[argument].default == described.default, argument


def test_every_argument_of_the_older_interface_is_accepted() -> None:
    ours = inspect.signature(autograd_profile).parameters
    theirs = inspect.signature(torch.autograd.profiler.profile).parameters
    assert {name for name in theirs if not name.startswith("_")} <= ours.keys()


@pytest.mark.parametrize("cls", ["profile", "autograd"])
def test_every_public_method_exists(cls: str) -> None:
    ours, theirs = {
        "profile": (profile, torch.profiler.profile),
        "autograd": (autograd_profile, torch.autograd.profiler.profile),
    }[cls]
    about_other_machinery = {
        "export_memory_timeline",  # deprecated by torch
        "wait_for_exports",
        "take_pending_cuspy_export",
        "kineto_activities",
        "config",
        "create_trace_id",
        "default_trace_id",
    }
    missing = (
        {name for name in dir(theirs) if not name.startswith("_")} - set(dir(ours)) - about_other_machinery
    )
    assert missing == set()


# Schedules

SCHEDULES = list(itertools.product((0, 1, 3), (0, 1, 2), (1, 2, 3), (0, 1, 2), (0, 1, 4), (0, 1)))


def quiet_schedule(make: Callable[..., Any], values: tuple[int, ...]) -> Any:
    keys = ("wait", "warmup", "active", "repeat", "skip_first", "skip_first_wait")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(**dict(zip(keys, values, strict=True)))


def test_schedules_answer_like_torchs_step_by_step() -> None:
    for values in SCHEDULES:
        ours, theirs = quiet_schedule(schedule, values), quiet_schedule(torch.profiler.schedule, values)
        assert [ours(step) for step in range(40)] == [theirs(step) for step in range(40)], values


@pytest.mark.parametrize(
    "values",
    [
        (0, 1, 1, 0, 0, 0),
        (1, 1, 2, 0, 0, 0),
        (0, 0, 1, 0, 0, 0),
        (0, 0, 2, 2, 0, 0),
        (2, 1, 2, 1, 3, 0),
        (2, 1, 2, 0, 1, 1),
        (1, 2, 1, 2, 0, 0),
    ],
)
@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4, 5, 9])
def test_windows_are_handed_over_when_torch_does(values: tuple[int, ...], steps: int) -> None:
    """The same steps are recorded, and the handler is called after the same steps."""

    def run(module: Any) -> list[Any]:
        happened: list[Any] = []

        def ready(prof: Any) -> None:
            rows = {row.key: row.count for row in prof.key_averages() if not row.key.startswith("profiler::")}
            happened.append((prof.step_num, prof.current_action, rows))

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            with module.profile(
                activities=CPU, schedule=quiet_schedule(module.schedule, values), on_trace_ready=ready
            ) as prof:
                for _ in range(steps):
                    work()
                    prof.step()
                    happened.append((prof.step_num, prof.current_action))
        return happened

    assert run(hotspan.profiler) == run(torch.profiler)


def test_steps_are_ranges_only_with_a_schedule() -> None:
    with profile(activities=CPU) as prof:
        work()
        prof.step()
    assert not any(name.startswith("ProfilerStep") for name in names(prof))
    assert prof.step_num == 1
    with profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=2)) as prof:
        for _ in range(3):
            work()
            prof.step()
    assert "ProfilerStep*" in names(prof)
    assert [step.number for step in prof.trace.steps] == [1, 2]


@pytest.mark.parametrize("name", ["wait", "warmup", "repeat", "skip_first"])
def test_negative_schedule_values_are_refused(name: str) -> None:
    values = {"wait": 0, "warmup": 1, "active": 1, name: -1}
    for kind in (ValueError, AssertionError):
        with pytest.raises(kind) as refused:
            schedule(**values)
        assert f"{name}=-1" in str(refused.value)


def test_a_schedule_without_active_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one step"):
        schedule(wait=1, warmup=1, active=0)
    with pytest.raises(ValueError, match="negative"):
        schedule(wait=1, warmup=1, active=1)(-1)


def test_a_schedule_without_warmup_warns_as_torchs_does() -> None:
    with pytest.warns(UserWarning, match="won't be using warmup"):
        schedule(wait=0, warmup=0, active=1)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (ProfilerAction.WARMUP, ProfilerAction.NONE, "WARMUP followed by NONE"),
        (ProfilerAction.RECORD, ProfilerAction.NONE, "RECORD followed by NONE"),
        (ProfilerAction.RECORD, ProfilerAction.WARMUP, "RECORD followed by WARMUP"),
    ],
)
def test_a_schedule_of_ones_own_that_makes_no_sense_warns(
    before: ProfilerAction, after: ProfilerAction, said: str
) -> None:
    with (
        pytest.warns(UserWarning, match=said),
        profile(activities=CPU, schedule=lambda step: before if step == 0 else after) as prof,
    ):
        prof.step()


def test_a_schedule_of_ones_own_must_return_actions() -> None:
    with pytest.raises(ValueError, match="step 0"):
        profile(activities=CPU, schedule=lambda _step: "record")  # type: ignore[arg-type, return-value]


# Arguments


def test_unknown_activities_are_refused() -> None:
    with pytest.raises(TypeError, match=r"unknown activity 'cpu'.*ProfilerActivity\.CPU"):
        profile(activities=["cpu"])  # type: ignore[list-item]
    with pytest.raises(ValueError, match="more than once"):
        profile(activities=[ProfilerActivity.CPU, {ProfilerActivity.CPU: []}])
    with pytest.raises(AssertionError, match="no activities"):
        profile(activities=[])


def test_no_operators_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch documents an empty list as "nothing", and records operators all the same."""
    monkeypatch.setenv("HOTSPAN_COLLECTOR", "native")
    with profile(activities=[{ProfilerActivity.CPU: []}]) as prof:
        work()
    assert names(prof) == []


def test_ignored_arguments_warn_once() -> None:
    ignored = hotspan.profiler._ExperimentalConfig(performance_events=["cycles"])
    with pytest.warns(UserWarning, match="performance_events") as said:
        profile(activities=CPU, experimental_config=ignored)
    assert len(said) == 1
    profile(activities=CPU, experimental_config=ignored)


def test_events_are_made_within_the_time_that_is_given(caplog: pytest.LogCaptureFixture) -> None:
    with profile(activities=CPU, post_processing_timeout_s=60.0) as prof:
        work()
    assert "aten::add" in [event.name for event in prof.events()]
    with profile(activities=CPU, post_processing_timeout_s=0.0) as prof:
        work()
    assert len(prof.events()) == 0
    assert "timed out" in caplog.text
    with pytest.raises(ValueError, match="non-negative"):
        profile(activities=CPU, post_processing_timeout_s=-1)


@pytest.mark.skipif(torch.cuda.is_available(), reason="is about machines without CUDA")
def test_a_device_that_is_not_there_is_said_once_and_the_cpu_recorded() -> None:
    with (
        pytest.warns(UserWarning, match="CUDA is not available"),
        profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as prof,
    ):
        work()
    assert "aten::add" in names(prof)


def test_an_unknown_collector_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSPAN_COLLECTOR", "magic")
    with pytest.raises(hotspan.CollectError, match="'native' and 'kineto'"):
        profile(activities=CPU).start()


def test_stacks_need_no_torch_profiler(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with profile(activities=CPU, with_stack=True) as prof:
        for _ in range(200):
            work()
    said = [line for line in capfd.readouterr().err.splitlines() if line.startswith("hotspan:")]
    assert said == []
    assert prof.trace.format == "hotspan recording"
    rows = prof.key_averages(group_by_stack_n=5)
    assert any("work" in entry for row in rows for entry in row.stack)
    assert not any(row.key.endswith("work") for row in prof.key_averages())
    prof.export_stacks(tmp_path / "stacks.txt", "self_cpu_time_total")
    lines = (tmp_path / "stacks.txt").read_text().splitlines()
    assert lines
    for line in lines:
        stack, value = line.split(" ")
        assert int(value) > 0
        assert ";" in stack
    with pytest.raises(ValueError, match="valid ones"):
        prof.export_stacks(tmp_path / "stacks.txt", "self_gpu_time")


def test_modules_of_eager_models(collector: str) -> None:
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first = torch.nn.Linear(4, 8)
            self.second = torch.nn.Linear(8, 2)

        def forward(self, inputs: torch.Tensor) -> torch.Tensor:
            return self.second(self.first(inputs).relu())

    model = Block()
    with profile(activities=CPU, with_modules=True) as prof:
        for _ in range(3):
            model(torch.ones(1, 4))
    rows = {(row.key, row.module): row.count for row in prof.key_averages(group_by_module=True)}
    if collector == "native":
        assert rows["aten::linear", "nn.Module: Block.first"] == 3
        assert rows["aten::linear", "nn.Module: Block.second"] == 3
        assert rows["aten::relu", "nn.Module: Block"] == 3
    else:
        assert rows["aten::linear", "nn.Module: Linear_0"] == 3
        assert rows["aten::relu", "nn.Module: Block_0"] == 3
    assert not any(row.key.startswith("nn.Module") for row in prof.key_averages())
    assert prof.trace.metadata["with_modules"] == 1
    # The hooks are gone.
    assert not torch.nn.modules.module._global_forward_pre_hooks


def test_modules_survive_exceptions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOTSPAN_COLLECTOR", "native")

    class Fails(torch.nn.Module):
        def forward(self, _inputs: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("on purpose")

    with profile(activities=CPU, with_modules=True) as prof:
        with pytest.raises(RuntimeError, match="on purpose"):
            Fails()(torch.ones(1))
        torch.nn.ReLU()(torch.ones(1))
    modules = {event.name for event in prof.events() if event.name.startswith("nn.Module")}
    assert modules == {"nn.Module: Fails", "nn.Module: ReLU"}


# Results


@pytest.mark.usefixtures("collector")
def test_tables_events_files_and_traces(tmp_path: Path) -> None:
    with profile(activities=CPU, record_shapes=True, profile_memory=True, with_flops=True) as prof:
        with record_function("mine"):
            work()
        torch.mm(torch.ones(4, 5), torch.ones(5, 6))
    assert {"mine", "aten::add", "aten::mm"} <= set(names(prof))
    by_shape = {row.key: row for row in prof.key_averages(group_by_input_shape=True)}
    assert by_shape["aten::mm"].input_shapes == [[4, 5], [5, 6]]
    assert by_shape["aten::mm"].flops == 2 * 4 * 5 * 6
    table = prof.key_averages().table(sort_by="self_cpu_time_total", row_limit=5)
    assert "Self CPU Mem" in table
    assert "FLOPs" in table
    assert any(event.name == "mine" for event in prof.events())
    # More than once, compressed too.
    for path in ("a.json", "a.json", "b.json.gz"):
        prof.export_chrome_trace(str(tmp_path / path))
    plain = (tmp_path / "a.json").read_bytes()
    assert gzip.decompress((tmp_path / "b.json.gz").read_bytes()) == plain
    written = json.loads(plain)
    assert written["record_shapes"] == written["profile_memory"] == written["with_flops"] == 1
    prof.save(tmp_path / "c.hotspan")
    for path in ("a.json", "c.hotspan"):
        opened = hotspan.open(tmp_path / path)
        assert [row.key for row in opened.key_averages()] == names(prof)
        assert opened.counts == prof.trace.counts


@pytest.mark.usefixtures("collector")
def test_overload_names_on_request() -> None:
    from torch._C._profiler import _ExperimentalConfig

    with profile(
        activities=CPU, experimental_config=_ExperimentalConfig(capture_overload_names=True)
    ) as prof:
        work()
    assert "Tensor" in {row.overload_name for row in prof.key_averages(group_by_overload_name=True)}


def test_nothing_recorded_yet_is_an_error_that_helps() -> None:
    prof = profile(activities=CPU)
    with pytest.raises(hotspan.HotspanError, match="nothing has been recorded yet"):
        prof.key_averages()


@pytest.mark.usefixtures("collector")
def test_metadata_is_kept_whenever_it_is_given(tmp_path: Path) -> None:
    prof = profile(activities=CPU)
    prof.add_metadata("before", 'a "quoted" text')
    prof.preset_metadata_json("preset", '{"a": 1}')
    with prof:
        work()
        prof.add_metadata_json("during", "[1, 2]")
    prof.export_chrome_trace(tmp_path / "first.json")
    prof.add_metadata("after", "late")
    prof.export_chrome_trace(tmp_path / "second.json")
    first, second = (json.loads((tmp_path / f"{name}.json").read_text()) for name in ("first", "second"))
    assert (first["before"], first["preset"], first["during"]) == ('a "quoted" text', {"a": 1}, [1, 2])
    assert "after" not in first
    assert second["after"] == "late"
    assert prof.trace.metadata["after"] == "late"
    with pytest.raises(ValueError, match="'broken' is not valid JSON"):
        prof.add_metadata_json("broken", "{")


def test_each_window_has_its_id() -> None:
    ids = iter(["one", "two", "three"])
    seen = []
    with profile(
        activities=CPU,
        schedule=schedule(wait=0, warmup=1, active=1),
        custom_trace_id_callback=lambda: next(ids),
        on_trace_ready=lambda prof: seen.append((prof.get_trace_id(), prof.trace.metadata["trace_id"])),
    ) as prof:
        for _ in range(4):
            prof.step()
    assert seen == [("one", "one"), ("two", "two")]


@pytest.mark.usefixtures("collector")
def test_recording_can_be_paused() -> None:
    with profile(activities=CPU) as prof:
        torch.ones(2).neg()
        prof.toggle_collection_dynamic(False, CPU)
        torch.ones(2).exp()
        prof.toggle_collection_dynamic(True, CPU)
        torch.ones(2).cos()
    assert "aten::neg" in names(prof)
    assert "aten::cos" in names(prof)
    assert "aten::exp" not in names(prof)


@pytest.mark.usefixtures("collector")
def test_start_and_stop_again() -> None:
    prof = profile(activities=CPU)
    for _ in range(2):
        prof.start()
        work()
        prof.stop()
        assert [row.count for row in prof.key_averages() if row.key == "aten::add"] == [1]


# Handlers


def test_files_for_tensorboard(tmp_path: Path) -> None:
    with profile(activities=CPU, on_trace_ready=handler(str(tmp_path / "new" / "folder"), "worker", True)):
        work()
    (path,) = (tmp_path / "new" / "folder").iterdir()
    assert path.name.startswith("worker.")
    assert path.name.endswith(".pt.trace.json.gz")
    assert "aten::add" in [row.key for row in hotspan.open(path).key_averages()]


def test_a_folder_that_cannot_be_written_does_not_end_the_program(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with (
        pytest.warns(RuntimeWarning, match=r"not written: .*file.*prof\.trace"),
        profile(activities=CPU, on_trace_ready=handler(str(tmp_path / "file"))) as prof,
    ):
        work()
    assert "aten::add" in names(prof)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is full")
def test_a_full_disk_is_an_error_that_loses_nothing(tmp_path: Path) -> None:
    with profile(activities=CPU) as prof:
        for _ in range(2_000):
            work()
    # By another name: whoever replaces the file by a finished one must not replace the device.
    (tmp_path / "full.json").symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left"):
        prof.export_chrome_trace(tmp_path / "full.json")
    prof.export_chrome_trace(tmp_path / "elsewhere.json")
    assert [row.count for row in prof.key_averages() if row.key == "aten::add"] == [2_000]


def test_an_unwritable_path_is_an_error_with_its_name(tmp_path: Path) -> None:
    with profile(activities=CPU) as prof:
        work()
    for write in (prof.export_chrome_trace, prof.save, prof.export_stacks):
        with pytest.raises(OSError, match="missing"):
            write(tmp_path / "missing" / "trace.json")


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("at_exit", [False, True])
def test_a_handler_that_fails_ends_the_profile_cleanly(at_exit: bool) -> None:
    calls = []

    def fails(prof: Any) -> None:
        calls.append(prof.step_num)
        raise ValueError("on purpose")

    options: dict[str, Any] = {} if at_exit else {"schedule": schedule(wait=0, warmup=1, active=1)}
    with (
        pytest.raises(ValueError, match="on purpose"),
        profile(activities=CPU, on_trace_ready=fails, **options) as prof,
    ):
        for _ in range(5):
            work()
            prof.step()
    assert len(calls) == 1
    assert "aten::add" in names(prof)
    with profile(activities=CPU) as another:
        work()
    assert "aten::add" in names(another)


def test_the_program_may_go_on_after_a_handler_failed() -> None:
    def fails(_prof: Any) -> None:
        raise ValueError("on purpose")

    with profile(activities=CPU, schedule=schedule(wait=0, warmup=1, active=1), on_trace_ready=fails) as prof:
        prof.step()
        with pytest.raises(ValueError, match="on purpose"):
            prof.step()
        for _ in range(5):
            prof.step()
    assert prof.step_num == 7


# The older interface


@pytest.mark.usefixtures("collector")
def test_the_older_interface(tmp_path: Path) -> None:
    with autograd_profile(record_shapes=True, profile_memory=True) as prof:
        work()
    assert prof.self_cpu_time_total > 0
    assert prof.total_average().count == sum(row.count for row in prof.key_averages())
    assert "aten::add" in prof.table(sort_by="count")
    assert "aten::add" in str(prof)
    assert any(event.name == "aten::add" for event in prof.function_events)
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    with pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()


def test_the_older_interface_disabled() -> None:
    with autograd_profile(enabled=False) as prof:
        work()
    assert str(prof) == "<unfinished profile>"
    with pytest.raises(ValueError, match="unknown use_device 'tpu'"):
        autograd_profile(use_device="tpu")
