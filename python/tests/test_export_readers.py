"""Exported traces in other people's readers: HTA must say the same of the export as of the original."""

import logging
from pathlib import Path

import pandas
import pytest

import hotspan
from conftest import SHARED_TRACES

TRACES = [
    "hta/nccl_parser_config/nccl_data.json.gz",
    "param/dlrm_8ranks/worker0_step_12.1694128201545.pt.trace.json.gz",
]


def breakdowns(path: Path) -> list[pandas.DataFrame]:
    """Kernel, temporal and overlap breakdown by HTA."""
    # HTA talks a lot while it is imported and while it reads.
    logging.disable(logging.INFO)
    from hta.trace_analysis import TraceAnalysis

    analysis = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent))
    by_type, by_kernel = analysis.get_gpu_kernel_breakdown(visualize=False)
    return [
        by_type,
        by_kernel,
        analysis.get_temporal_breakdown(visualize=False),
        analysis.get_comm_comp_overlap(visualize=False),
    ]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", TRACES)
def test_hta_says_the_same_of_the_export(name: str, tmp_path: Path) -> None:
    original = SHARED_TRACES / name
    if not original.exists():
        pytest.skip(f"{name} is not beside the checkout")
    exported = tmp_path / "exported.json.gz"
    hotspan.open(original).export_chrome_trace(exported)
    for expected, found in zip(breakdowns(original), breakdowns(exported), strict=True):
        pandas.testing.assert_frame_equal(expected, found)


@pytest.mark.filterwarnings("ignore")
def test_hta_opens_what_hotspan_recorded(tmp_path: Path) -> None:
    """HTA finds the operators of a recording, as many of each as torch's own recording of the program has."""
    pytest.importorskip("torch")
    import torch.profiler

    from hotspan.profiler import ProfilerActivity, profile
    from profiled_programs import training_step

    logging.disable(logging.INFO)
    from hta.trace_analysis import TraceAnalysis

    program = training_step()
    counts = []
    for name, kind in (("ours", profile), ("theirs", torch.profiler.profile)):
        program()
        with kind(activities=[ProfilerActivity.CPU], record_shapes=True, profile_memory=True) as prof:
            program()
        path = tmp_path / f"{name}.json"
        prof.export_chrome_trace(str(path))
        trace = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(tmp_path)).t
        frame, words = trace.get_trace(0), dict(enumerate(trace.symbol_table.get_sym_table()))
        operators = frame[frame["cat"].map(words) == "cpu_op"]
        counts.append(operators["name"].map(words).value_counts().to_dict())
    assert len(counts[0]) > 10
    assert counts[0] == counts[1]
