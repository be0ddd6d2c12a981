"""``hotspan doctor``: what was found for recording torch programs, what is missing, and how to get it."""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hotspan import _core


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    name: str
    found: str
    # What to do about it; empty when all is well.
    advice: str = ""


def examine() -> list[Finding]:
    """Look at everything that recording needs. Compiles the hooks where there are none."""
    findings = [Finding("python", f"{platform.python_version()} at {sys.executable}"), _compiler()]
    try:
        import torch
    except ImportError:
        return [
            *findings,
            Finding("torch", "not installed", "pip install torch; traces can be read without it"),
        ]
    findings.append(Finding("torch", f"{torch.__version__} at {Path(torch.__file__).parent}"))
    findings += _hooks(Path(torch.__file__).parent)
    findings.append(_cuda(torch))
    forced = os.environ.get("HOTSPAN_COLLECTOR", "")
    if forced:
        advice = "" if forced in ("native", "kineto") else "set it to native or kineto, or unset it"
        findings.append(Finding("HOTSPAN_COLLECTOR", forced, advice))
    return findings


def _compiler() -> Finding:
    names = [name for name in (os.environ.get("CXX"), "g++", "c++", "clang++") if name]
    for name in names:
        path = shutil.which(name.split()[0])
        if path is not None:
            return Finding("C++ compiler", path)
    # Of no consequence where hooks came with hotspan.
    return Finding("C++ compiler", f"none (looked for {', '.join(names)})")


def _hooks(torch_folder: Path) -> list[Finding]:
    """Load the hooks, compiling them where there are none: what runs of this torch will get."""
    name = "torch hooks"
    why_not_carried = None
    try:
        why_not_carried = _core.find_torch_hooks(str(torch_folder))[1]
        path, origin = _core.load_torch_hooks(str(torch_folder))
    except _core.CollectError as error:
        reason, _, hint = str(error).partition(" hint: ")
        return [Finding(name, f"none: {reason}", hint or "until then hotspan records through torch.profiler")]
    found = Finding(name, f"{origin}: {path}")
    if why_not_carried is None:
        return [found]
    return [found, Finding("hooks in hotspan", f"not used: {why_not_carried}")]


def _cuda(torch: object) -> Finding:
    cuda = torch.cuda  # type: ignore[attr-defined]
    if not cuda.is_available():
        return Finding("CUDA", "no device: only the CPU is recorded")
    names = ", ".join(cuda.get_device_name(index) for index in range(cuda.device_count()))
    try:
        path, version = _core.cupti_library()
    except _core.CollectError as error:
        return Finding("CUDA", f"{names}: device work is recorded through torch.profiler", str(error))
    return Finding("CUDA", f"{names}: device work is recorded with CUPTI {version} at {path}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Print what was found; the exit code is 1 when something is missing."""
    parser = argparse.ArgumentParser(prog="hotspan doctor", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args(arguments)
    findings = examine()
    if options.json:
        print(json.dumps([asdict(finding) for finding in findings], indent=2))
    else:
        width = max(len(finding.name) for finding in findings)
        for finding in findings:
            print(f"{'!' if finding.advice else ' '} {finding.name:<{width}}  {finding.found}")
            if finding.advice:
                print(f"  {'':<{width}}  hint: {finding.advice}")
    return 1 if any(finding.advice for finding in findings) else 0


if __name__ == "__main__":
    sys.exit(main())
