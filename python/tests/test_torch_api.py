"""Every public name, parameter and default of torch's profilers is in hotspan.profiler, or there is a reason."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
import torch.autograd.profiler
import torch.autograd.profiler_util
import torch.profiler
from torch.profiler import ProfilerActivity

import hotspan.profiler
import hotspan.profiler.autograd

REASONS = Path(__file__).parent / "data" / "torch_api_reasons.txt"


def reasons() -> dict[str, str]:
    """What is left out on purpose, and why: `name: reason`, one a line."""
    lines = [line for line in REASONS.read_text().splitlines() if line and not line.startswith("#")]
    return {name: reason for name, _, reason in (line.partition(": ") for line in lines)}


def public(names: Iterable[str]) -> list[str]:
    return sorted(name for name in names if not name.startswith("_"))


def public_names(module: Any) -> list[str]:
    """What a module offers, and not what it uses itself."""
    offered = set(module.__all__)
    offered |= {
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", "").startswith(module.__name__)
    }
    return public(offered)


def described(function: Any) -> dict[str, Any]:
    """The parameters of a function, and their defaults."""
    parameters = inspect.signature(function).parameters.values()
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return {one.name: one.default for one in parameters if one.name != "self" and one.kind not in kinds}


def recorded(module: Any, **options: Any) -> Any:
    with module.profile(activities=[ProfilerActivity.CPU], **options) as prof:
        x = torch.ones(3, requires_grad=True)
        (x + x).sum().backward()
    return prof


@pytest.fixture(scope="module")
def profiles() -> tuple[Any, Any]:
    return recorded(torch.profiler), recorded(hotspan.profiler)


def missing(what: str, theirs: Iterable[str], ours: Any) -> list[str]:
    """Names that ours does not have, but for those with a reason."""
    known = reasons()
    return [f"{what}.{name}" for name in theirs if not hasattr(ours, name) and f"{what}.{name}" not in known]


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        (torch.profiler, hotspan.profiler),
        (torch.profiler.profiler, hotspan.profiler),
        (torch.autograd.profiler, hotspan.profiler.autograd),
    ],
    ids=lambda module: str(module.__name__),
)
def test_every_public_name_can_be_imported(theirs: Any, ours: Any) -> None:
    assert missing(theirs.__name__, public_names(theirs), ours) == []


@pytest.mark.parametrize(
    "name",
    ["PerformanceMetricsConfig", "CuspyConfig", "ProfilerActivityConfig", "_KinetoProfile", "RecordScope"],
)
def test_names_of_other_releases_can_be_imported(name: str) -> None:
    assert getattr(hotspan.profiler, name) is not None


def test_methods_of_other_releases_can_be_called(profiles: tuple[Any, Any]) -> None:
    assert profiles[1].take_pending_cupti_export() is None


def test_a_name_that_nobody_has_cannot_be_imported() -> None:
    with pytest.raises(ImportError):
        exec("from hotspan.profiler import nonsense")


def test_what_has_a_meaning_whoever_records_is_torchs_own() -> None:
    for name in ("DeviceType", "ExecutionTraceObserver", "KinetoStepTracker", "RecordScope", "itt"):
        assert getattr(hotspan.profiler, name) is getattr(torch.profiler, name), name
    for name in ("emit_nvtx", "emit_itt", "load_nvprof", "KinetoStepTracker", "EventList", "FunctionEvent"):
        assert getattr(hotspan.profiler.autograd, name) is getattr(torch.autograd.profiler, name), name


CALLABLES = [
    ("torch.profiler.profile", torch.profiler.profile, hotspan.profiler.profile),
    ("torch.profiler.schedule", torch.profiler.schedule, hotspan.profiler.schedule),
    (
        "torch.profiler.tensorboard_trace_handler",
        torch.profiler.tensorboard_trace_handler,
        hotspan.profiler.tensorboard_trace_handler,
    ),
    ("torch.autograd.profiler.profile", torch.autograd.profiler.profile, hotspan.profiler.autograd.profile),
]


@pytest.mark.parametrize(("name", "theirs", "ours"), CALLABLES, ids=[name for name, *_ in CALLABLES])
def test_every_parameter_and_default_is_the_same(name: str, theirs: Any, ours: Any) -> None:
    wanted, had, known = described(theirs), described(ours), reasons()
    different = [
        f"{name}({parameter}={default!r})"
        for parameter, default in wanted.items()
        if (parameter not in had or had[parameter] != default) and f"{name}({parameter})" not in known
    ]
    assert different == []


CLASSES = [
    ("torch.profiler.profile", torch.profiler.profile, hotspan.profiler.profile),
    ("torch.autograd.profiler.profile", torch.autograd.profiler.profile, hotspan.profiler.autograd.profile),
    ("EventList", torch.autograd.profiler_util.EventList, type(recorded(hotspan.profiler).events())),
]


@pytest.mark.parametrize(("name", "theirs", "ours"), CLASSES, ids=[name for name, *_ in CLASSES])
def test_every_method_has_its_parameters_and_defaults(name: str, theirs: Any, ours: Any) -> None:
    known = reasons()
    different = []
    for method in public(dir(theirs)):
        their_method = getattr(theirs, method)
        if not inspect.isfunction(their_method) or f"{name}.{method}" in known:
            continue
        wanted, had = described(their_method), described(getattr(ours, method))
        for parameter, default in wanted.items():
            if parameter not in had or had[parameter] != default:
                different.append(f"{name}.{method}({parameter}={default!r})")
    assert different == []


@pytest.mark.parametrize(("name", "theirs", "ours"), CLASSES[:2], ids=[name for name, *_ in CLASSES[:2]])
def test_no_method_of_torchs_is_left(name: str, theirs: Any, ours: Any) -> None:
    """Ours are torch's classes by inheritance, and must not run torch's code on what torch has not set up."""
    need_no_recording = {"config", "create_trace_id", "default_trace_id"}
    left = {
        method
        for method in public(dir(theirs))
        if inspect.isfunction(getattr(theirs, method)) and getattr(ours, method) is getattr(theirs, method)
    }
    assert left <= need_no_recording, name


def test_a_profile_has_every_attribute(profiles: tuple[Any, Any]) -> None:
    theirs, ours = profiles
    assert missing("torch.profiler.profile", public({*dir(theirs), *vars(theirs)}), ours) == []
    older, ours_older = theirs.profiler, ours.profiler
    assert missing("torch.autograd.profiler.profile", public({*dir(older), *vars(older)}), ours_older) == []


def test_an_event_has_every_attribute(profiles: tuple[Any, Any]) -> None:
    theirs, ours = (prof.events() for prof in profiles)
    assert missing("FunctionEvent", public(dir(theirs[0])), ours[0]) == []
    assert missing("EventList", public(dir(theirs)), ours) == []


def test_a_row_has_every_attribute(profiles: tuple[Any, Any]) -> None:
    theirs, ours = (prof.key_averages() for prof in profiles)
    assert missing("FunctionEventAvg", public(dir(theirs[0])), ours[0]) == []
    assert missing("EventList of averages", public(dir(theirs)), ours) == []


def test_an_event_of_kineto_has_every_method(profiles: tuple[Any, Any]) -> None:
    theirs, ours = (prof.profiler.kineto_results for prof in profiles)
    assert missing("_ProfilerResult", public(dir(theirs)), ours) == []
    assert missing("_KinetoEvent", public(dir(theirs.events()[0])), ours.events()[0]) == []


def test_every_reason_is_about_something_that_is_missing(profiles: tuple[Any, Any]) -> None:
    """A reason for what is there by now would hide that it goes again."""
    _, ours = profiles
    places = {
        "torch.profiler.profile": ours,
        "torch.autograd.profiler.profile": ours.profiler,
        "FunctionEvent": ours.events()[0],
        "FunctionEventAvg": ours.key_averages()[0],
        "EventList": ours.events(),
        "EventList of averages": ours.key_averages(),
        "_ProfilerResult": ours.profiler.kineto_results,
        "_KinetoEvent": ours.profiler.kineto_results.events()[0],
    }
    for name in reasons():
        place, _, attribute = name.rpartition(".")
        assert place in places, f"{name}: what is that?"
        assert not hasattr(places[place], attribute), f"{name} is there"


def test_profiles_are_torchs_for_programs_that_ask(profiles: tuple[Any, Any]) -> None:
    _, ours = profiles
    assert isinstance(ours, torch.profiler.profile)
    assert isinstance(ours.profiler, torch.autograd.profiler.profile)
