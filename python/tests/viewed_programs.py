"""A small training program that fills every view of the dashboard which needs no GPU, and the traces made of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

TRAIN = '''
"""Trains a small network; one function of plain Python takes a part of the time."""
import sys

import torch


def prepare(rounds):
    total = 0
    for number in range(rounds):
        total += number * number % 7
    return total


def train(width, steps, after_step):
    model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.ReLU(), torch.nn.Linear(width, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for _ in range(steps):
        prepare(60_000)
        loss = model(torch.randn(256, 64)).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        after_step()


if len(sys.argv) > 1:
    from hotspan.profiler import profile, schedule

    # What torch imports at first use would be most of the recording.
    train(8, 1, lambda: None)
    for name, width in (("before", 256), ("after", 2048)):
        steps = schedule(wait=0, warmup=1, active=4)
        options = {"record_shapes": True, "with_stack": True, "with_modules": True, "profile_memory": True}
        with profile(schedule=steps, **options) as recording:
            train(width, 5, recording.step)
        recording.save(f"{sys.argv[1]}/{name}.hotspan")
else:
    train(1024, 8, lambda: None)
'''


WORDS = '''
"""Counts the words of a text: one line takes most of the time."""
import re


def count(text):
    words = {}
    for word in text.split():
        word = re.sub(r"[^a-z]", "", word.lower())
        if word:
            words[word] = words.get(word, 0) + 1
    return sorted(words.items(), key=lambda pair: -pair[1])


def main():
    text = "The quick brown fox jumps over the lazy dog, and the dog sleeps on. " * 400
    for _ in range(3):
        count(text)


main()
'''


def record(folder: Path) -> None:
    """Makes `before.hotspan` and `after.hotspan`, with stacks, modules, shapes, memory; `run.hotspan` has samples,
    `lines.hotspan` has the time of each line."""
    program, words = folder / "train.py", folder / "words.py"
    program.write_text(TRAIN)
    words.write_text(WORDS)
    hotspan = str(Path(sys.executable).with_name("hotspan"))
    sampled = [hotspan, "run", "--memory", "--rate", "500", "-o", str(folder / "run.hotspan"), str(program)]
    lines = [
        sys.executable,
        "-m",
        "hotspan.lines",
        "-p",
        str(words),
        "-o",
        str(folder / "lines.hotspan"),
        str(words),
    ]
    for command in ([sys.executable, str(program), str(folder)], sampled, lines):
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert result.returncode == 0, result.stderr
