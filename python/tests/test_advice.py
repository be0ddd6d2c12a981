"""The advice: each rule finds what is wrong with a real program, and leaves the mended one alone."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import hotspan
from advice_programs import PAIRS, clean_training, cores, masking, record, threads, undisturbed
from advice_traces import DEVICE_PAIRS
from conftest import REPOSITORY, complete, shared_trace_files
from hotspan.profiler import profile
from hotspan.trace import Trace
from run_advice_programs import PAIRS as RUN_PAIRS

Command = Callable[..., subprocess.CompletedProcess[str]]


def rules(trace: Trace, **selection: Any) -> set[str]:
    return {finding.rule for finding in trace.advise(**selection)}


def documented_rules() -> list[str]:
    page = (REPOSITORY / "docs" / "advice.md").read_text()
    return [line[3:] for line in page.splitlines() if line.startswith("## ") and " " not in line[3:]]


@pytest.mark.parametrize("rule", PAIRS)
def test_a_rule_finds_the_fault_and_not_the_mended_program(rule: str) -> None:
    if rule in ("one-thread", "thread-oversubscription") and cores() < 2:
        pytest.skip("needs two cores")
    pair = PAIRS[rule]
    # One thread, for on a busy machine several wait for each other.
    with threads(1):
        for make, is_wrong in ((pair.wrong, True), (pair.right, False)):
            trace, is_quiet = undisturbed(make)
            if (rule in rules(trace)) != is_wrong and not is_quiet:
                pytest.skip("other programs took the processor during every recording")
            assert (rule in rules(trace)) == is_wrong


@pytest.mark.parametrize("rule", DEVICE_PAIRS)
def test_a_rule_finds_the_fault_in_a_trace_with_a_device(rule: str, write_trace: Callable[..., Path]) -> None:
    wrong, right = DEVICE_PAIRS[rule]
    assert rule in rules(hotspan.open(write_trace(wrong.events, "wrong.json", **wrong.metadata)))
    assert rule not in rules(hotspan.open(write_trace(right.events, "right.json", **right.metadata)))


def test_every_rule_has_a_wrong_and_a_right_program() -> None:
    # Ranks have a file of their own, test_advice_ranks.py.
    assert sorted([*PAIRS, *DEVICE_PAIRS, *RUN_PAIRS, "uneven-ranks"]) == sorted(documented_rules())


def test_a_clean_program_is_left_alone() -> None:
    step = clean_training()
    with threads(1):
        trace, is_quiet = undisturbed(lambda: record(step, steps=6))
    # One thread is a setting of the test.
    found = rules(trace) - {"one-thread"}
    if found and not is_quiet:
        pytest.skip("other programs took the processor during every recording")
    assert not found


def test_the_documentation_is_made_from_the_rules(hotspan_command: Command) -> None:
    made = hotspan_command("advise", "--docs")
    assert made.returncode == 0
    page = REPOSITORY / "docs" / "advice.md"
    assert page.read_text() == made.stdout, "run: hotspan advise --docs > docs/advice.md"


def test_findings_have_everything_a_reader_needs() -> None:
    trace, _ = undisturbed(lambda: record(masking(with_numpy=True)))
    (finding,) = trace.advise(only=["numpy-round-trip"])
    assert "NumPy" in finding.title
    assert "nonzero" in finding.fix
    # Nothing says what happened between the operators.
    assert finding.confidence == "medium"
    assert finding.gain is not None
    assert 3 < finding.gain.percent <= 100
    assert finding.gain.time_ns <= trace.wall_time_ns
    row = finding.evidence[0]
    assert row.what == "between operators, in masking"
    assert row.count >= 1
    assert row.at_ns is not None
    assert 0 < row.at_ns < trace.wall_time_ns
    text = str(trace.advise())
    assert "numpy-round-trip" in text
    assert finding.fix in text


def test_stacks_give_the_source_line() -> None:
    step = masking(with_numpy=True)
    with profile(with_stack=True) as profiler:
        step()
    (finding,) = profiler.advise(only=["numpy-round-trip"])
    program = Path(__file__).with_name("advice_programs.py").read_text().splitlines()
    line = 1 + next(number for number, text in enumerate(program) if "np.argwhere" in text)
    assert finding.confidence == "high"
    assert finding.source is not None
    assert finding.source.endswith(f"advice_programs.py:{line}"), finding


def test_rules_say_what_they_lack() -> None:
    with profile() as profiler:
        masking(with_numpy=False)()
    lacking = {row.lacks: row for row in profiler.advise().skipped}
    assert "fp64-slow-path" not in [rule for row in lacking.values() for rule in row.rules]
    assert "dtype-casts" in lacking["input shapes and types"].rules
    assert "record_shapes=True" in lacking["input shapes and types"].record
    assert lacking["steps"].rules == ["warm-up-in-window", "memory-growth"]


def test_an_unknown_rule_is_an_error() -> None:
    with pytest.raises(ValueError, match="no rule is called"):
        record(masking(with_numpy=False)).advise(only=["fp46"])


def test_the_command_prints_and_fails_as_asked(tmp_path: Path, hotspan_command: Command) -> None:
    path = tmp_path / "run.hotspan"
    record(masking(with_numpy=True)).save(path)
    shown = hotspan_command("advise", path)
    assert shown.returncode == 0, shown.stderr
    assert "numpy-round-trip" in shown.stdout
    assert "Not checked:" in shown.stdout

    told = json.loads(hotspan_command("advise", path, "--json").stdout)
    (finding,) = [row for row in told[0]["findings"] if row["rule"] == "numpy-round-trip"]
    assert finding["gain_ns"] > 0
    assert finding["evidence"][0]["time"] > 0
    assert told[0]["steps"] == 3

    markdown = hotspan_command("advise", path, "--markdown", "--only", "numpy-round-trip").stdout
    assert "### numpy-round-trip" in markdown
    assert "| What |" in markdown

    assert hotspan_command("advise", path, "--fail-on", "numpy-round-trip").returncode == 3
    assert hotspan_command("advise", path, "--fail-on", "any").returncode == 3
    assert hotspan_command("advise", path, "--fail-on", "eager-attention,fp64-slow-path").returncode == 0
    only_others = ("--fail-on", "any", "--only", "eager-attention")
    assert hotspan_command("advise", path, *only_others).returncode == 0
    misspelt = hotspan_command("advise", path, "--fail-on", "numpy")
    assert misspelt.returncode == 2
    assert "numpy-round-trip" in misspelt.stderr


# What people who know these traces say about them (their folder's manifest).
KNOWN = {
    "kineto_tb_plugin/resnet50_num_workers_0": {
        "data-loading-bound",
        "for-loop-optimizer",
        "zero-grad-fills",
        "mixed-precision-unused",
    },
    "hta/critical_path/alexnet": {"allocator-calls"},
    "hta/negative_queue_length_values_check": {"device-sync", "exposed-communication"},
    "hta/nccl_parser_config": {"host-bound-launches", "low-device-use"},
    "param/dlrm_8ranks": {"exposed-communication", "for-loop-optimizer"},
}
ABSENT = {
    "kineto_tb_plugin/resnet50_num_workers_4": {"data-loading-bound", "low-device-use"},
    "hta/cpu_only": {"low-device-use", "fp64-slow-path"},
    "hta/ns_resolution_trace": {"data-loading-bound", "low-device-use", "host-bound-launches"},
}


@pytest.mark.skipif(not shared_trace_files(), reason="no sample traces beside the repository")
def test_sample_traces_are_judged_as_people_judge_them() -> None:
    seen = 0
    taken: Counter[Path] = Counter()
    for path in shared_trace_files():
        # Ranks and repetitions of one program say the same again.
        taken[path.parent] += 1
        if taken[path.parent] > 2:
            continue
        try:
            trace = hotspan.open(path)
        except hotspan.HotspanError:
            continue
        found = rules(trace)
        for folder, wanted in KNOWN.items():
            if folder in str(path):
                assert wanted <= found, (path, found)
                seen += 1
        for folder, unwanted in ABSENT.items():
            if folder in str(path):
                assert not unwanted & found, (path, found)
                seen += 1
    assert seen >= len(KNOWN)


LOADER = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"


@pytest.mark.parametrize(
    ("waits", "collection", "is_found"),
    [
        ([5000] * 16, None, True),
        # One batch of many was held up, or a garbage collection fell into it: workers would not help.
        ([100] * 7 + [60_000] + [100] * 8, None, False),
        ([2500] * 7 + [60_000] + [2500] * 8, (7, 57_500), False),
    ],
)
def test_loading_is_what_batches_have_in_common(
    waits: list[int], collection: tuple[int, int] | None, is_found: bool, write_trace: Callable[..., Path]
) -> None:
    events, at = [], 0
    for step, wait in enumerate(waits):
        events.append(complete(f"ProfilerStep#{step}", at, wait + 20_000, cat="user_annotation"))
        events.append(complete(LOADER, at + 1, wait, cat="user_annotation"))
        if collection is not None and collection[0] == step:
            events.append(complete("gc gen 2", at + 2, collection[1], cat="gc"))
        events.append(complete("aten::mm", at + wait + 10, 19_000))
        at += wait + 20_000
    found = rules(hotspan.open(write_trace(events)))
    assert ("data-loading-bound" in found) == is_found, found
