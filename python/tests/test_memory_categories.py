"""What memory is used for: known by arithmetic, told by torch's own analysis, and deduced from a trace alone."""

from __future__ import annotations

import gzip
import json
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan
from conftest import complete
from test_memory_timeline import memory

pytest.importorskip("torch")

import torch
import torch.profiler
from torch import nn
from torch.nn.modules import module as module_hooks
from torch.optim import optimizer as optimizer_hooks

from hotspan.profiler import ProfilerActivity, profile

CPU = [ProfilerActivity.CPU]
# The order of torch's lists.
CATEGORIES = [
    "parameter",
    "optimizer_state",
    "input",
    "temporary",
    "activation",
    "gradient",
    "autograd_detail",
    "unknown",
]


def train(prof: Any, adam: bool = False) -> int:
    """Three steps of a small network; returns the bytes of its parameters."""
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 30 * 30, 10)
    )
    kind = torch.optim.Adam if adam else torch.optim.SGD
    optimizer = kind(model.parameters(), lr=0.1, **({} if adam else {"momentum": 0.9}))
    with prof:
        for _ in range(3):
            images = torch.randn(4, 3, 32, 32)
            labels = torch.zeros(4, dtype=torch.long)
            nn.functional.cross_entropy(model(images), labels).backward()
            optimizer.step()
            optimizer.zero_grad()
            prof.step()
    return sum(parameter.numel() * 4 for parameter in model.parameters())


def most(sizes: list[list[int]]) -> dict[str, int]:
    return {name: max(row[1 + place] for row in sizes) for place, name in enumerate(CATEGORIES)}


@pytest.fixture(scope="module")
def trained() -> tuple[profile, int]:
    prof = profile(activities=CPU, profile_memory=True)
    return prof, train(prof)


@pytest.mark.parametrize("collector", ["native", "kineto"])
@pytest.mark.parametrize("adam", [False, True])
def test_parameters_gradients_and_optimizer_state(
    collector: str, adam: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOTSPAN_COLLECTOR", collector)
    prof = profile(activities=CPU, profile_memory=True)
    size = train(prof, adam)
    (cpu,) = prof.trace.memory_by_category()
    assert set(cpu.bytes["parameter"]) == {size}, "parameters are there from the start, and stay"
    assert max(cpu.bytes["gradient"]) == size
    assert cpu.bytes["gradient"][0] == cpu.bytes["gradient"][-1] == 0
    # Adam keeps two averages of each parameter, and a count of steps (4 bytes) for each of six tensors.
    assert cpu.bytes["optimizer_state"][-1] == (2 * size + 6 * 4 if adam else size)
    assert max(cpu.bytes["input"]) == 2 * 4 * 3 * 32 * 32 * 4, (
        "the next batch is made before the last one goes"
    )


def test_as_torch_tells_them(trained: tuple[profile, int], tmp_path: Path) -> None:
    ours, _ = trained
    theirs = torch.profiler.profile(activities=CPU, profile_memory=True, record_shapes=True, with_stack=True)
    train(theirs)
    ours.export_memory_timeline(tmp_path / "ours.json", "cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        theirs.export_memory_timeline(str(tmp_path / "theirs.json"), "cpu")
    (our_times, our_sizes), (_, their_sizes) = (
        json.loads((tmp_path / name).read_text()) for name in ("ours.json", "theirs.json")
    )
    assert len(our_times) == len(our_sizes)
    assert our_times == sorted(our_times)
    assert {len(row) for row in our_sizes} == {len(row) for row in their_sizes} == {9}
    mine, known = most(our_sizes), most(their_sizes)
    for category in ("parameter", "optimizer_state", "activation", "gradient", "autograd_detail"):
        assert mine[category] == known[category], category
    # torch cannot tell what comes and goes in an optimizer step, and takes running averages for inputs.
    assert mine["temporary"] + mine["unknown"] == pytest.approx(
        known["temporary"] + known["unknown"], rel=0.01
    )
    assert mine["input"] == pytest.approx(known["input"], rel=0.01)


def test_raw_events_add_up(trained: tuple[profile, int], tmp_path: Path) -> None:
    prof, size = trained
    prof.export_memory_timeline(tmp_path / "memory.raw.json.gz")
    events = json.loads(gzip.decompress((tmp_path / "memory.raw.json.gz").read_bytes()))
    (cpu,) = prof.trace.memory_timeline()
    assert sum(amount for _, _, amount, _ in events) == cpu.held[-1][1]
    assert sum(amount for _, action, amount, category in events if action == 1 and category == 0) == size
    for time, action, amount, category in events:
        assert (action == 1) == (time == -1)
        assert (action == 4) == (amount < 0)
        assert 0 <= category < 8
    times = [time for time, *_ in events if time != -1]
    assert times == sorted(times)
    assert abs(times[0] / 1e9 - (prof.trace.unix_start_ns or 0) / 1e9) < 60


def test_the_page_stands_alone(trained: tuple[profile, int], tmp_path: Path) -> None:
    prof, _ = trained
    prof.export_memory_timeline(tmp_path / "memory.html")
    page = (tmp_path / "memory.html").read_text()
    assert not re.search(r"""(src|href)=|https?://|@import""", page)
    assert page.count("<path ") == page.count("</title></path>")
    (cpu,) = prof.trace.memory_timeline()
    for category in cpu.peak_by_category:
        title = category.replace("_", " ").capitalize()
        assert f"<title>{title}</title>" in page
    data = json.loads(re.search(r"const d=(\{.*\});\n", page).group(1))  # type: ignore[union-attr]
    totals = [sum(line["values"][at] for line in data["lines"]) for at in range(len(data["times"]))]
    assert max(totals) == cpu.peak_bytes == sum(cpu.peak_by_category.values())


def test_the_uses_survive_a_file(trained: tuple[profile, int], tmp_path: Path) -> None:
    prof, _ = trained
    prof.save(tmp_path / "x.hotspan")
    prof.export_chrome_trace(tmp_path / "x.json")
    for name in ("x.hotspan", "x.json"):
        assert hotspan.open(tmp_path / name).memory_timeline() == prof.trace.memory_timeline()


def test_a_device_or_name_that_is_not_there(trained: tuple[profile, int], tmp_path: Path) -> None:
    prof, _ = trained
    for path, device, hint in (
        ("x.json", "cuda:0", "no memory of cuda:0, only of cpu"),
        ("x.json", "gpu", "unknown device 'gpu'"),
        ("x.png", None, r"known ones: \.html"),
    ):
        with pytest.raises(ValueError, match=hint):
            prof.export_memory_timeline(tmp_path / path, device)
    with profile(activities=CPU) as without:
        torch.ones(2)
    with pytest.raises(ValueError, match="profile_memory=True"):
        without.export_memory_timeline(tmp_path / "x.html")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(FileNotFoundError):
        prof.export_memory_timeline(tmp_path / "nowhere" / "x.json")


def test_inference_has_inputs_and_activations() -> None:
    model = nn.Linear(1000, 10)
    with torch.no_grad(), profile(activities=CPU, profile_memory=True) as prof:
        made = torch.ones(8, 1000)
        result = model(made)
    (cpu,) = prof.trace.memory_timeline()
    assert cpu.peak_by_category == {
        "parameter": 4 * (10_000 + 10),
        "input": 4 * 8000,
        "activation": result.numel() * 4,
    }


def test_hooks_leave_with_the_profile() -> None:
    places = (
        module_hooks._global_forward_pre_hooks,
        module_hooks._global_forward_hooks,
        optimizer_hooks._global_optimizer_pre_hooks,
        optimizer_hooks._global_optimizer_post_hooks,
    )
    before = [len(place) for place in places]
    with profile(activities=CPU, profile_memory=True):
        assert [len(place) for place in places] == [count + 1 for count in before]
    assert [len(place) for place in places] == before
    with pytest.raises(KeyError), profile(activities=CPU, profile_memory=True):
        raise KeyError
    assert [len(place) for place in places] == before


def test_tensors_without_memory_do_no_harm() -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.meta = nn.Parameter(torch.ones(3, device="meta"))
            self.sparse = nn.Parameter(torch.eye(3).to_sparse())

        def forward(self, inputs: Any) -> Any:
            return inputs["nested"][0].sum()

    with profile(activities=CPU, profile_memory=True) as prof:
        Odd()({"nested": [torch.ones(3), None], "text": "x"})
    (cpu,) = prof.trace.memory_timeline()
    assert "parameter" not in cpu.peak_by_category


def test_a_trace_without_marks(write_trace: Callable[..., Path]) -> None:
    """Kineto's own files say nothing about tensors; operators and annotations tell what they can."""

    def annotation(name: str, start: float, duration: float) -> dict[str, Any]:
        return {**complete(name, start, duration), "cat": "user_annotation"}

    events = [
        annotation("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 0, 10),
        memory(1, 100, 0xA00),
        complete("aten::linear", 20, 10, args={"Sequence number": 1, "Fwd thread id": 0}),
        memory(21, 200, 0xB00),
        memory(22, 300, 0xC00),
        memory(23, -300, 0xC00),
        complete("autograd::engine::evaluate_function: AddmmBackward0", 40, 10),
        complete("AddmmBackward0", 41, 8),
        complete("aten::mm", 42, 6),
        memory(43, 400, 0xD00),
        complete("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 52, 4),
        complete("torch::autograd::AccumulateGrad", 53, 2),
        memory(54, 500, 0xE00),
        annotation("Optimizer.step#SGD.step", 60, 20),
        complete("aten::clone", 61, 4),
        memory(62, 600, 0xF00),
        complete("aten::mul", 66, 4),
        memory(67, 700, 0x1F00),
        memory(75, -700, 0x1F00),
        memory(90, 1, 0x2F00),
        # A release that nobody saw: the same place is given away again.
        memory(91, 2, 0x2F00),
        # And one of what was there before.
        memory(92, -1000, 0x3F00),
    ]
    (cpu,) = hotspan.open(write_trace(events)).memory_by_category()
    assert {category: max(values) for category, values in cpu.bytes.items()} == {
        "input": 100,
        "activation": 200,
        "temporary": 700,
        "autograd_detail": 400,
        "gradient": 500,
        "optimizer_state": 600,
        "unknown": 1002,
    }
    assert cpu.bytes["unknown"][0] == 1000
    assert cpu.bytes["unknown"][-1] == 2


def test_few_points_keep_the_peak(trained: tuple[profile, int]) -> None:
    prof, _ = trained
    (whole,), (coarse,) = prof.trace.memory_by_category(), prof.trace.memory_by_category(20)
    assert len(coarse.times_ns) <= 21 < len(whole.times_ns)
    peak = max(map(sum, zip(*whole.bytes.values(), strict=True)))
    assert max(map(sum, zip(*coarse.bytes.values(), strict=True))) == peak
