"""A program under ``hotspan run`` where there are no torch hooks: it runs, and all else is recorded."""

from __future__ import annotations

import os
import subprocess
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("torch")

import hotspan

Command = Callable[..., "subprocess.CompletedProcess[str]"]

TRAINING = """
import sys
import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def step():
    optimizer.zero_grad()
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


def without_hooks(folder: Path, **variables: str) -> dict[str, str]:
    """An environment in which there are no hooks, and no compiler to make them."""
    environment = {name: value for name, value in os.environ.items() if name != "CXX"}
    places = {"HOTSPAN_CACHE_DIR": str(folder / "cache"), "HOTSPAN_HOOKS_DIR": str(folder)}
    return {**environment, **places, "PATH": "/nonexistent", **variables}


def calls(path: Path) -> dict[str, int]:
    return {row.key: row.count for row in hotspan.open(path).key_averages()}


def test_devices_samples_and_memory_are_recorded_all_the_same(
    hotspan_command: Command, fake_cupti: Path, tmp_path: Path
) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        textwrap.dedent(
            f"""
            import ctypes, torch
            fake, name = ctypes.CDLL({str(fake_cupti)!r}), ctypes.create_string_buffer(b"my_kernel")
            for _ in range(3):
                torch.ones(2).exp2()
                fake.fake_launch(name, 7, ctypes.c_uint64(1000))
            print(sum(range(20_000_000)))
            """
        )
    )
    output = tmp_path / "program.hotspan"
    environment = without_hooks(tmp_path, HOTSPAN_CUPTI=str(fake_cupti))
    result = hotspan_command("run", "-o", output, program, env=environment)
    assert (result.returncode, result.stdout) == (0, "199999990000000\n"), result.stderr
    said = [line for line in result.stderr.splitlines() if "operators are not recorded, but" in line]
    assert len(said) == 1, result.stderr
    assert "no C++ compiler was found" in said[0]
    assert "hotspan carries no hooks for this torch" in said[0]
    trace = hotspan.open(output)
    assert [(kernel.name, kernel.calls) for kernel in trace.kernels()] == [("my_kernel", 3)]
    assert "Functions that cost most" in result.stderr
    assert "Memory at its peak" in result.stderr
    assert not [key for key in calls(output) if key.startswith("aten::")]


def test_torch_profiler_records_some_steps(hotspan_command: Command, tmp_path: Path) -> None:
    """From the end of the first step on, twenty of them; the rest is not held in memory."""
    program, output = tmp_path / "program.py", tmp_path / "program.hotspan"
    program.write_text(TRAINING + "for _ in range(30):\n    step()\n")
    result = hotspan_command("run", "-o", output, program, env=without_hooks(tmp_path))
    assert result.returncode == 0, result.stderr
    seen = calls(output)
    assert (seen["aten::addmm"], seen["Optimizer.step#SGD.step"]) == (20, 20)


def test_profiles_of_the_program_go_first(hotspan_command: Command, tmp_path: Path) -> None:
    """torch.profiler and hotspan's own find nobody in their way, also in the middle of those steps."""
    program, output = tmp_path / "program.py", tmp_path / "program.hotspan"
    program.write_text(
        TRAINING
        + textwrap.dedent(
            """
            import hotspan.profiler
            from torch.profiler import ProfilerActivity

            for module in (torch.profiler, hotspan.profiler):
                for _ in range(3):
                    step()
                with module.profile(activities=[ProfilerActivity.CPU]) as profile:
                    step()
                    step()
                print({row.key: row.count for row in profile.key_averages()}["aten::addmm"])
            """
        )
    )
    result = hotspan_command("run", "-o", output, program, env=without_hooks(tmp_path))
    assert (result.returncode, result.stdout) == (0, "2\n2\n"), result.stderr


def test_forked_workers_run_through_those_steps(hotspan_command: Command, tmp_path: Path) -> None:
    program, output = tmp_path / "program.py", tmp_path / "program.hotspan"
    program.write_text(
        TRAINING
        + textwrap.dedent(
            """
            from torch.utils.data import DataLoader

            step()
            for batch in DataLoader(torch.arange(8.0), batch_size=2, num_workers=2, multiprocessing_context="fork"):
                step()
                print(batch.sum().item())
            """
        )
    )
    result = hotspan_command("run", "-o", output, program, env=without_hooks(tmp_path))
    assert (result.returncode, result.stdout) == (0, "1.0\n5.0\n9.0\n13.0\n"), result.stderr
    assert result.stderr.count("operators are not recorded") == 1, result.stderr
    assert calls(output)["aten::addmm"] == 4
