"""Among files of other users: links are not followed, libraries not loaded, and a bad place is refused early."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conftest import complete
from hotspan._core import run_cli

OTHER = 65534
as_root = pytest.mark.skipif(os.getuid() != 0, reason="needs root, to act as another user")


def as_other_user(action: Callable[[], object]) -> None:
    """Do something as another user, in a child."""
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(OTHER)
            os.setuid(OTHER)
            action()
            os._exit(0)
        except BaseException:
            os._exit(1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A folder where everybody may make files, as in ``/tmp``."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o1777)
        yield folder


@pytest.fixture
def small_trace(tmp_path: Path) -> Path:
    """A trace of one operator."""
    path = tmp_path / "trace.json"
    path.write_text(json.dumps({"traceEvents": [complete("aten::add", 0, 5)]}))
    return path


@as_root
@pytest.mark.parametrize(
    ("command", "output", "guess"),
    [
        (["export", "TRACE", "--to", "chrome", "-o"], "out.json", ".out.json.{pid}.tmp"),
        (["report", "TRACE", "--html"], "page.html", "page.{pid}.tmp"),
    ],
    ids=["export", "html"],
)
def test_a_link_of_another_user_is_not_followed(
    shared_folder: Path, small_trace: Path, command: list[str], output: str, guess: str
) -> None:
    victim = small_trace.with_name("victim")
    victim.write_text("precious")
    link = shared_folder / guess.format(pid=os.getpid())
    as_other_user(lambda: link.symlink_to(victim))
    words = [str(small_trace) if word == "TRACE" else word for word in command]
    assert run_cli(["hotspan", *words, str(shared_folder / output)]) == 0
    assert victim.read_text() == "precious"
    assert (shared_folder / output).stat().st_size > 0
    assert sorted(path.name for path in shared_folder.iterdir()) == sorted([output, link.name])


def test_outputs_have_the_permissions_of_the_umask(tmp_path: Path, small_trace: Path) -> None:
    for umask, expected in ((0o022, 0o644), (0o077, 0o600)):
        before = os.umask(umask)
        try:
            assert (
                run_cli(
                    ["hotspan", "export", str(small_trace), "--to", "chrome", "-o", str(tmp_path / "x.json")]
                )
                == 0
            )
        finally:
            os.umask(before)
        assert (tmp_path / "x.json").stat().st_mode & 0o777 == expected


PLANTED = r"""
#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void planted(void) {
    FILE *file = fopen(getenv("MARKER"), "w");
    if (file) fclose(file);
}
"""
# It is refused for what it lacks, but only after it was loaded. Nothing else is there to try.
LOADS = "import sys; from hotspan import _core; _core.load_torch_hooks(sys.argv[1])"


@as_root
def test_a_library_of_another_user_is_not_loaded(shared_folder: Path, tmp_path: Path) -> None:
    """Not even when the environment names it: the launcher's choice may have been replaced since."""
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("needs a C compiler")
    import torch

    source = tmp_path / "planted.c"
    source.write_text(PLANTED)
    library = shared_folder / "hooks.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    marker = tmp_path / "marker"
    folder = Path(torch.__file__).parent
    version, size = (folder / "version.py").stat(), (folder / "lib" / "libtorch_cpu.so").stat().st_size
    stamp = f"{version.st_mtime_ns // 10**9}.{version.st_mtime_ns % 10**9} {size}"
    told = json.dumps({"torch": str(folder), "stamp": stamp, "library": str(library)})
    environment = {**os.environ, "HOTSPAN_HOOKS": told, "MARKER": str(marker)}
    environment |= {"HOTSPAN_CACHE_DIR": "/dev/null"}

    def loads() -> bool:
        marker.unlink(missing_ok=True)
        subprocess.run(
            [sys.executable, "-c", LOADS, folder],
            env=environment,
            check=False,
            capture_output=True,
            timeout=120,
        )
        return marker.exists()

    # The folder is root's, but everybody could have put the library there.
    assert not loads()
    shared_folder.chmod(0o755)
    assert loads()
    os.chown(library, OTHER, OTHER)
    assert not loads()


PROGRAM = "import os, sys; print(os.fsencode(sys.argv[0]), [os.fsencode(word) for word in sys.argv[1:]], os.getcwdb())"


def test_paths_that_are_no_text_can_be_run(tmp_path: Path) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    Path(os.fsdecode(folder)).mkdir()
    script = folder + b"/tr\xffain.py"
    Path(os.fsdecode(script)).write_text(PROGRAM)
    plain = subprocess.run([sys.executable, script, b"\xfe"], cwd=folder, capture_output=True, check=True)
    output = folder + b"/o\xfd.hotspan"
    cases: list[tuple[list[str | bytes], bytes | None]] = [(["-o", output], output), ([], None)]
    for options, recording in cases:
        command: list[str | bytes] = [sys.executable, "-m", "hotspan", "run", *options, script, b"\xfe"]
        run = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=60)
        assert (run.returncode, run.stdout) == (0, plain.stdout), run.stderr
        assert b"no Python process was recorded" not in run.stderr, run.stderr
        assert b"not recorded" not in run.stderr, run.stderr
        names = [path.name for path in Path(os.fsdecode(folder)).iterdir()]
        found = recording or next(name for name in names if "ain.hotspan" in name)
        command = [sys.executable, "-m", "hotspan", "info", found]
        info = subprocess.run(command, cwd=folder, capture_output=True, check=False, timeout=60)
        assert info.returncode == 0, info.stderr
    # Nothing but what belongs there is left.
    assert len(names) == 3, names


@pytest.fixture
def full_folder(tmp_path: Path) -> Iterator[Path]:
    """A file system without room."""
    folder = tmp_path / "full"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", folder], capture_output=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip("cannot mount a small file system")
    try:
        (folder / "taken").write_bytes(b"x" * 56 * 1024)
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def refused(words: list[str]) -> str:
    """What a command says that must not start its program."""
    command = [sys.executable, "-m", "hotspan", *words]
    run = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert run.returncode == 2, run.stderr
    assert "started" not in run.stdout + run.stderr
    assert "hint: " in run.stderr, run.stderr
    return run.stderr


COMMANDS = [
    ["run", "-o", "PLACE", "-c", "print('started')"],
    ["run", "--flamegraph", "PLACE", "-o", "/dev/null", "-c", "print('started')"],
    ["record", "-o", "PLACE", "--", sys.executable, "-c", "print('started')"],
    ["record", "--memory", "-o", "PLACE", "--", sys.executable, "-c", "print('started')"],
]
IDS = ["run", "flamegraph", "record", "memory"]


@pytest.mark.parametrize("command", COMMANDS, ids=IDS)
def test_a_place_that_cannot_hold_the_recording_is_refused_early(command: list[str], tmp_path: Path) -> None:
    def at(place: Path) -> list[str]:
        return [str(place) if word == "PLACE" else word for word in command]

    assert "it is a folder" in refused(at(tmp_path))
    assert "No such file" in refused(at(tmp_path / "missing" / "x.hotspan"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS, ids=IDS)
def test_a_full_place_is_refused_early(command: list[str], full_folder: Path) -> None:
    words = [str(full_folder / "x.hotspan") if word == "PLACE" else word for word in command]
    assert "No space left" in refused(words)
    assert [path.name for path in full_folder.iterdir()] == ["taken"]


@as_root
def test_a_place_of_others_is_refused_early(shared_folder: Path) -> None:
    said = shared_folder / "said"
    said.touch()
    said.chmod(0o666)
    shared_folder.chmod(0o755)

    def run() -> None:
        os.dup2(os.open(said, os.O_WRONLY), 2)
        words = ["run", "-o", str(shared_folder / "x.hotspan"), "-c", "print('started')"]
        assert run_cli(["hotspan", *words]) == 2

    as_other_user(run)
    assert "Permission denied" in said.read_text()
    assert "hint: " in said.read_text()


def test_only_the_owner_writes_to_the_folder_of_a_run(tmp_path: Path) -> None:
    code = (
        "import os, json; print(oct(os.stat(json.loads(os.environ['HOTSPAN_RUN'])['spool']).st_mode & 0o777))"
    )
    run = subprocess.run(
        [sys.executable, "-m", "hotspan", "run", "-o", tmp_path / "x.hotspan", "-c", code],
        capture_output=True, text=True, check=True, timeout=60, umask=0,
    )  # fmt: skip
    assert run.stdout == "0o755\n"
