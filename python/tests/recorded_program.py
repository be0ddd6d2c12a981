"""Runs one program of ``real/`` without hotspan, under torch.profiler and under ``hotspan run``, side by side."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow

import hotspan
from conftest import REPOSITORY

PROGRAMS = REPOSITORY / "python" / "tests" / "real"
#: Where a program lies in a command.
SCRIPT = "SCRIPT"
RECORDING = "recording.hotspan"
#: An import of some of them takes a minute on a machine with other things to do.
PATIENCE = 400


@dataclass
class Seen:
    """What a user sees of a program that ran."""

    code: int
    output: str
    errors: str
    files: set[str]


class RecordedProgram:
    """A program, its ways to run, and what came of each."""

    def __init__(self, python: Path, folder: Path, command: list[str], is_counted: bool = False) -> None:
        self.python, self.folder, self.command, self.is_counted = python, folder, command, is_counted

    def environment(self, **more: str) -> dict[str, str]:
        """Variables of all runs: no network, none of the test's own settings."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PYTEST", "COV_", "PYTHON", "VIRTUAL_ENV"))
        }
        path = f"{self.python.parent}:{kept['PATH']}"
        offline = {"HF_HUB_OFFLINE": "1", "KINETO_LOG_LEVEL": "5", "PYTHONDONTWRITEBYTECODE": "1"}
        quiet = {"NO_COLOR": "1", "PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1"}
        return {**kept, **offline, **quiet, "PATH": path, **more}

    def start(self, name: str, command: list[str], **variables: str) -> subprocess.Popen[str]:
        """Start a command in a folder of its own."""
        folder = self.folder / name
        folder.mkdir()
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(**variables),
            start_new_session=True,
        )

    def wait(self, name: str, started: subprocess.Popen[str]) -> Seen:
        """Its end."""
        output, errors = started.communicate(timeout=PATIENCE)
        files = (path for path in (self.folder / name).rglob("*") if path.is_file())
        output, errors = (text.replace(str(self.folder / name), "FOLDER") for text in (output, errors))
        return Seen(
            started.returncode,
            output,
            errors,
            {str(path.relative_to(self.folder / name)) for path in files},
        )

    def words(self, *before: str) -> list[str]:
        """The command, with a program and its arguments in front of the script."""
        words: list[str] = []
        for word in self.command:
            if word.startswith(SCRIPT):
                words += before
                word = str(PROGRAMS / word.removeprefix(f"{SCRIPT}/"))
            words.append(word)
        if (self.python.parent / words[0]).exists():
            words[0] = str(self.python.parent / words[0])
        return words

    def recorded_words(self) -> list[str]:
        """The same command under ``hotspan run``."""
        return [str(self.python), "-m", "hotspan", "run", "-o", RECORDING, *self.words()]

    @cached_property
    def seen(self) -> tuple[Seen, Seen]:
        """Without hotspan, and with it."""
        plain = self.start("plain", self.words())
        if not self.is_counted:
            return self.wait("plain", plain), self.record()
        # Side by side: there is a second core.
        counted = self.start("counted", self.words(str(PROGRAMS / "count_operators.py"), "counts"))
        seen = self.wait("plain", plain)
        self.wait("counted", counted)
        return seen, self.record()

    def record(self) -> Seen:
        """Run it under ``hotspan run``, alone."""
        return self.wait("recorded", self.start("recorded", self.recorded_words()))

    @property
    def counted(self) -> Counter[str]:
        """Operators by name, as torch.profiler counted them in the processes that ran the script."""
        counts: Counter[str] = Counter()
        for file in (self.folder / "counted").glob("counts-*.json"):
            counts.update(json.loads(file.read_text()))
        return counts

    @cached_property
    def trace(self) -> hotspan.Trace:
        """The recording."""
        return hotspan.open(self.folder / "recorded" / RECORDING)

    def operators(self, *processes: str) -> Counter[str]:
        """Operators by name, of these processes or of all."""
        spans = pyarrow.table(self.trace.spans).select(["name", "category", "process"]).to_pylist()
        return Counter(
            span["name"]
            for span in spans
            if span["category"] == "cpu_op" and (not processes or span["process"] in processes)
        )

    @property
    def processes(self) -> list[dict[str, Any]]:
        """What the recording says about each process."""
        told: list[dict[str, Any]] = self.trace.metadata["hotspan.processes"]
        return told

    @property
    def main_process(self) -> str:
        """The number of the process that was started."""
        return str(self.trace.metadata["hotspan.run"]["pid"])

    def left_running(self) -> list[str]:
        """Commands of processes that go on to run with this recording's variables."""
        end = time.monotonic() + 20
        while (left := self._running()) and time.monotonic() < end:
            time.sleep(0.2)
        return left

    def _running(self) -> list[str]:
        mark = f"{self.folder / 'recorded'}/".encode()
        left = []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if mark in (process / "environ").read_bytes():
                    left.append((process / "cmdline").read_text().replace("\0", " "))
            except OSError:
                continue  # it has just ended, or is not ours
        return left


def without_numbers(text: str) -> str:
    """Text in which process numbers, times, rates and addresses are alike."""
    # How often a bar is drawn, and how far it is then, depends on the time.
    text = "\n".join(line for line in re.split(r"[\r\n]", text) if not re.search("[━─]{4}", line))
    return re.sub(r"0x[0-9a-f]+|\d+(?:\.\d+)?[kKMG]?", "N", text)
