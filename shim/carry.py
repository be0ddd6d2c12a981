"""Makes the hooks that the wheel carries: one library for each release of torch, compiled against its headers.

A step of a release (``make hooks``). Of each of torch's wheels only headers and a small library are fetched, by ranges
of bytes; torch's main library, half a gigabyte, is stood in for by an empty one of the same name.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
import zipfile
from pathlib import Path

from ranged_file import RangedFile

from hotspan import _core

#: The releases of the last two years.
RELEASES = (
    *("2.6.0", "2.7.0", "2.7.1", "2.8.0", "2.9.0", "2.9.1", "2.10.0", "2.11.0", "2.12.0", "2.12.1"),
    *("2.13.0", "2.14.0", "2.14.1", "2.15.0"),
)
#: These were built with either kind of strings, for CUDA 12.4 and for 12.6.
WITH_BOTH_STRINGS = ("2.6.0",)
INDEX = "https://pypi.org/simple/torch/"
COMPILERS = {"x86_64": "x86_64-linux-gnu-g++", "aarch64": "aarch64-linux-gnu-g++"}


def wheel_of(release: str, processor: str) -> str:
    """Return where PyPI has a wheel of torch; the headers are the same in all of them."""
    with urllib.request.urlopen(INDEX, timeout=60) as answer:
        links = re.findall(r'href="([^"]+/torch-([0-9.]+)-[^"/]+\.whl)[^"]*"', answer.read().decode())
    for link, version in links:
        if version == release and "manylinux" in link and link.endswith(f"_{processor}.whl"):
            return str(link)
    raise LookupError(f"there is no wheel of torch {release} for {processor}")


def fetch(url: str, folder: Path) -> Path:
    """Fetch what compiling needs of a wheel; returns the folder of torch."""
    with zipfile.ZipFile(RangedFile(url)) as wheel:
        wanted = [
            entry
            for entry in wheel.infolist()
            if (entry.filename.startswith("torch/include/") and "/external/" not in entry.filename)
            or entry.filename in ("torch/version.py", "torch/lib/libc10.so")
        ]
        wheel.fp.expect((entry.header_offset, entry.compress_size) for entry in wanted)  # type: ignore[union-attr]
        for entry in wanted:
            wheel.extract(entry, folder)
    return folder / "torch"


def stand_in(torch: Path, compiler: str) -> None:
    """Make an empty library of the name of torch's main one."""
    library = torch / "lib" / "libtorch_cpu.so"
    command = [compiler, "-shared", "-nostdlib", "-Wl,-soname,libtorch_cpu.so", "-x", "c", os.devnull]
    subprocess.run([*command, "-o", str(library)], check=True)


def carry(torch: Path, folder: Path, release: str) -> list[Path]:
    """Compile the hooks for one torch, in every kind it was built in."""
    made = [Path(_core.carry_torch_hooks(str(torch), str(folder)))]
    if release in WITH_BOTH_STRINGS and folder.name == "x86_64":
        made += [Path(_core.carry_torch_hooks(str(torch), str(folder), new)) for new in (True, False)]
    return sorted(set(made))


def compiler_for(processor: str) -> str | None:
    """Return the compiler that makes code for a processor, if it is there."""
    usual = "g++" if processor == platform.machine() else COMPILERS[processor]
    chosen = os.environ.get("CXX_" + processor, usual)
    return chosen if shutil.which(chosen) else None


def main() -> int:
    """Make all that can be made; the exit code is 1 when one could not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, required=True, help="a folder; a processor's are below it")
    parser.add_argument("--processor", action="append", choices=sorted(COMPILERS), help="default: both")
    parser.add_argument("releases", nargs="*", default=RELEASES, help="default: those of two years")
    options = parser.parse_args()
    failed = 0
    for processor in options.processor or sorted(COMPILERS, reverse=True):
        compiler = compiler_for(processor)
        if compiler is None:
            print(f"{processor}: no compiler; install {COMPILERS[processor]}", file=sys.stderr)
            failed += 1
            continue
        os.environ["CXX"] = compiler
        folder = options.output / processor
        folder.mkdir(parents=True, exist_ok=True)
        for release in options.releases:
            began = time.monotonic()
            with tempfile.TemporaryDirectory(prefix="hotspan-torch-") as scratch:
                try:
                    torch = fetch(wheel_of(release, processor), Path(scratch))
                    stand_in(torch, compiler)
                    made = carry(torch, folder, release)
                except (OSError, LookupError, _core.CollectError, subprocess.CalledProcessError) as error:
                    print(f"torch {release} for {processor}: {error}", file=sys.stderr)
                    failed += 1
                    continue
            names = ", ".join(path.name for path in made)
            print(f"{names}: {time.monotonic() - began:.0f} s", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
