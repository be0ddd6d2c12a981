"""``hotspan run`` and torch: operators reach the file while the program runs, and other profilers find their place."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import hotspan

pytest.importorskip("torch")

#: Waits until the agent has written again, so that what was done before is in the file, whatever the machine is doing.
WAIT = """
def wait_for_the_agent():
    import json, os, time
    folder = json.loads(os.environ["HOTSPAN_RUN"])["spool"]
    def size():
        return sum(entry.stat().st_size for entry in os.scandir(folder) if entry.name.startswith(f"{os.getpid()}-"))
    for _ in range(2):
        before = size()
        while size() == before:
            time.sleep(0.02)
"""

TRAINING = """
import torch
torch.manual_seed(0)
torch.set_num_threads(1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def train(steps):
    for _ in range(steps):
        optimizer.zero_grad()
        model(torch.ones(4, 8)).sum().backward()
        optimizer.step()
"""


def run(folder: Path, program: str, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    (folder / "program.py").write_text(textwrap.dedent(program))
    return subprocess.run(
        [sys.executable, "-m", "hotspan", "run", *options, "program.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def counts(path: Path) -> dict[str, int]:
    return {row.key: row.count for row in hotspan.open(path).key_averages()}


def test_what_ran_before_a_kill_is_there(tmp_path: Path) -> None:
    program = TRAINING + WAIT + "train(200)\nwait_for_the_agent()\nimport os; os.kill(os.getpid(), 9)"
    seen = run(tmp_path, program)
    assert seen.returncode == -signal.SIGKILL
    trace = hotspan.open(tmp_path / "program.hotspan")
    assert trace.losses["truncated_file"] == 1
    assert counts(tmp_path / "program.hotspan")["aten::addmm"] == 400


def test_streaming_counts_what_a_profile_counts(tmp_path: Path) -> None:
    """An independent count: torch.profiler on the same program, run bare."""
    reference = TRAINING + textwrap.dedent("""
        import json
        from torch.profiler import ProfilerActivity, profile
        with profile(activities=[ProfilerActivity.CPU]) as recorded:
            train(300)
        import hotspan.profiler
        with hotspan.profiler.profile(activities=[ProfilerActivity.CPU]) as own:
            train(300)
        own.save("own.hotspan")
        print(json.dumps({row.key: row.count for row in recorded.key_averages()}))
    """)
    (tmp_path / "reference.py").write_text(reference)
    bare = subprocess.run(
        [sys.executable, "reference.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    expected = json.loads(bare.stdout)
    # The agent looks several times while this runs, also in the middle of operators that go on.
    program = TRAINING + textwrap.dedent("""
        import time
        with torch.profiler.record_function("whole"):
            for _ in range(6):
                train(50)
                time.sleep(0.25)
    """)
    seen = run(tmp_path, program, "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    trace = hotspan.open(tmp_path / "program.hotspan")
    assert not trace.losses, trace.losses
    found = counts(tmp_path / "program.hotspan")
    assert found["whole"] == 1
    for name in ("aten::addmm", "aten::relu", "AddmmBackward0", "Optimizer.step#SGD.step", "aten::sum"):
        assert found[name] == expected[name], name
    for name, count in expected.items():
        if name.startswith("autograd::engine"):
            assert found[name] == count, name
    whole = hotspan.open(tmp_path / "own.hotspan")
    assert trace.counts["flows"] == whole.counts["flows"] > 0


def test_memory_does_not_grow_with_operators(tmp_path: Path) -> None:
    program = """
        import time, torch
        torch.set_num_threads(1)
        def resident():
            with open("/proc/self/statm") as file:
                return int(file.read().split()[1]) * 4096
        x = torch.ones(1)
        def work(count):
            for number in range(count):
                x.neg_()
                if number % 50_000 == 0:
                    time.sleep(0.25)  # the agent may have little of a busy machine
        work(200_000)
        before = resident()
        work(500_000)
        print(resident() - before)
    """
    seen = run(tmp_path, program, "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    # 500,000 records of 32 bytes are 16 MB; a trace of them is several times as much.
    assert int(seen.stdout) < 12_000_000
    assert counts(tmp_path / "program.hotspan")["aten::neg_"] == 700_000


def test_profiles_inside_the_program(tmp_path: Path) -> None:
    """Both profilers give what they give without ``hotspan run``, and the whole recording has it too."""
    program = TRAINING + textwrap.dedent("""
        import hotspan.profiler, torch.profiler, warnings
        warnings.simplefilter("ignore")
        train(10)
        for module in (hotspan.profiler, torch.profiler):
            with module.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as recorded:
                train(5)
            rows = {row.key: row.count for row in recorded.key_averages()}
            print(rows["aten::addmm"], rows["Optimizer.step#SGD.step"])
            train(10)
    """)
    for options in ([], ["--memory"]):
        seen = run(tmp_path, program, *options)
        assert seen.returncode == 0, seen.stderr
        assert seen.stdout == "10 5\n10 5\n"
        assert counts(tmp_path / "program.hotspan")["aten::addmm"] == 80


def test_a_profile_inside_a_profile(tmp_path: Path) -> None:
    """What the recording has lent comes back once, when the outer one has ended."""
    program = TRAINING + textwrap.dedent("""
        import hotspan.profiler, torch.profiler
        cpu = [torch.profiler.ProfilerActivity.CPU]
        with hotspan.profiler.profile(activities=cpu):
            with torch.profiler.profile(activities=cpu):
                train(3)
            train(2)
        train(10)
    """)
    for options in ([], ["--memory"]):
        seen = run(tmp_path, program, *options)
        assert seen.returncode == 0, seen.stderr
        assert "hotspan: " not in seen.stderr
        assert counts(tmp_path / "program.hotspan")["aten::addmm"] == 30


def test_steps_that_were_asked_for(tmp_path: Path) -> None:
    for options, steps in ((["--steps", "2:5"], 3), (["--steps", "1:", "--every", "4"], 2)):
        seen = run(tmp_path, TRAINING + "train(11)", "-o", "program.hotspan", *options)
        assert seen.returncode == 0, seen.stderr
        assert counts(tmp_path / "program.hotspan")["aten::addmm"] == 2 * steps, options


def test_stacks_of_operators(tmp_path: Path) -> None:
    program = "import torch\ndef work(): return torch.ones(2).exp2()\nfor _ in range(3): work()"
    seen = run(tmp_path, program, "--stack", "--rate", "0")
    assert seen.returncode == 0, seen.stderr
    trace = hotspan.open(tmp_path / "program.hotspan")
    assert not trace.losses
    assert trace.categories["python_function"].spans >= 9
    stacks = {row.key: row.stack for row in trace.key_averages(group_by_stack_n=5)}
    assert any("work" in frame for frame in stacks["aten::exp2"])


def test_a_data_loader_with_processes(tmp_path: Path) -> None:
    for method in ("fork", "spawn"):
        program = f"""
            import torch
            from torch.utils.data import DataLoader, Dataset
            class Numbers(Dataset):
                def __len__(self):
                    return 16
                def __getitem__(self, index):
                    return torch.full((4,), float(index)).exp2()
            if __name__ == "__main__":
                loader = DataLoader(Numbers(), batch_size=4, num_workers=2, multiprocessing_context={method!r})
                print(sum(batch.shape[0] for batch in loader))
        """
        seen = run(tmp_path, program)
        assert (seen.returncode, seen.stdout) == (0, "16\n"), seen.stderr
        assert counts(tmp_path / "program.hotspan")["aten::exp2"] == 16


def test_device_work(tmp_path: Path, fake_cupti: Path) -> None:
    program = f"""
        import ctypes, torch
        fake, name = ctypes.CDLL({str(fake_cupti)!r}), ctypes.create_string_buffer(b"my_kernel")
        for _ in range(3):
            torch.ones(2).exp2()
            fake.fake_launch(name, 7, ctypes.c_uint64(1000))
    """
    seen = run(tmp_path, program, "--rate", "0", HOTSPAN_CUPTI=str(fake_cupti))
    assert seen.returncode == 0, seen.stderr
    trace = hotspan.open(tmp_path / "program.hotspan")
    assert [(kernel.name, kernel.calls) for kernel in trace.kernels()] == [("my_kernel", 3)]
    assert counts(tmp_path / "program.hotspan")["aten::exp2"] == 3
