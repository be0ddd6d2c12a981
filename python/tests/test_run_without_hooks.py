"""A program under ``hotspan run`` where there are no torch hooks: it runs, and everything but operators is recorded."""

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
    environment = {name: value for name, value in os.environ.items() if name != "CXX"}
    places = {"HOTSPAN_CACHE_DIR": str(tmp_path / "cache"), "HOTSPAN_HOOKS_DIR": str(tmp_path)}
    environment = {**environment, **places, "PATH": "/nonexistent", "HOTSPAN_CUPTI": str(fake_cupti)}
    output = tmp_path / "program.hotspan"
    result = hotspan_command("run", "-o", output, program, env=environment)
    assert (result.returncode, result.stdout) == (0, "199999990000000\n"), result.stderr
    said = [line for line in result.stderr.splitlines() if "operators are not recorded" in line]
    assert len(said) == 1, result.stderr
    assert "no C++ compiler was found" in said[0]
    assert "hotspan carries no hooks for this torch" in said[0]
    trace = hotspan.open(output)
    assert [(kernel.name, kernel.calls) for kernel in trace.kernels()] == [("my_kernel", 3)]
    assert len(trace.samples) > 0
    assert "Memory" in result.stderr
    assert not [row.key for row in trace.key_averages() if row.key.startswith("aten::")]
