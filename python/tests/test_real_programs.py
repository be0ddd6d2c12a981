"""Programs of the libraries people use, each run without hotspan and with it: nothing may differ but the recording.

``make test-real`` runs them alone. Their libraries are in environments of their own (see ``environments.py``).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from environments import VERSIONS, environment
from recorded_program import RECORDING, SCRIPT, RecordedProgram, without_numbers

pytest.importorskip("torch")

#: Programs whose main process does the work, and what advice may say of them: each finding here is true of it.
PROGRAMS: dict[str, set[str]] = {
    "transformers_trainer": set(),
    "transformers_generate": set(),
    "datasets_map": set(),
    "peft_lora": set(),
    "trl_sft": set(),
    "lightning_fit": set(),
    "timm_workers": set(),
    "diffusers_sample": set(),
    "yolo_train": set(),
}


@pytest.fixture(scope="module", params=VERSIONS["real"])
def python(request: pytest.FixtureRequest) -> Path:
    """Each Python that the libraries are installed for."""
    path = environment("real", request.param)
    if not path.exists():
        pytest.skip(f"the libraries are not installed for Python {request.param}: run `make test-real`")
    return path


@pytest.fixture(scope="module", params=PROGRAMS)
def program(
    request: pytest.FixtureRequest, python: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, RecordedProgram]:
    """A program that ran both ways."""
    name: str = request.param
    folder = tmp_path_factory.mktemp(name)
    return name, RecordedProgram(python, folder, ["python", f"{SCRIPT}/{name}.py"], is_counted=True)


def check_same(program: RecordedProgram) -> None:
    """Nothing of a program differs but the recording."""
    plain, recorded = program.seen
    assert recorded.code == plain.code, recorded.errors
    # Some print how long they took; what they found out comes last.
    assert without_numbers(recorded.output) == without_numbers(plain.output)
    assert recorded.output.splitlines()[-1:] == plain.output.splitlines()[-1:]
    # What the program says comes first, the report after it.
    assert without_numbers(recorded.errors).startswith(without_numbers(plain.errors).rstrip())
    assert recorded.files == plain.files | {RECORDING}
    assert program.left_running() == []


def check_advice(program: RecordedProgram, true: set[str]) -> None:
    """Advice says nothing beyond what is true."""
    found = {finding.rule: str(finding) for finding in program.trace.advise()}
    assert found.keys() <= true, found


def test_a_program_is_the_same(program: tuple[str, RecordedProgram]) -> None:
    check_same(program[1])


def test_every_operator_is_recorded(program: tuple[str, RecordedProgram]) -> None:
    _, ran = program
    assert ran.seen
    assert ran.counted.total() > 50
    assert ran.operators(ran.main_process) == ran.counted


def test_advice_is_true(program: tuple[str, RecordedProgram]) -> None:
    name, ran = program
    assert ran.seen
    check_advice(ran, PROGRAMS[name])


def test_processes_of_scikit_learn(python: Path, tmp_path: Path) -> None:
    ran = RecordedProgram(python, tmp_path, ["python", f"{SCRIPT}/sklearn_loky.py"])
    check_same(ran)
    check_advice(ran, set())
    assert len(ran.processes) >= 3  # the program and two workers


def test_workers_of_ray(python: Path, tmp_path: Path) -> None:
    ran = RecordedProgram(python, tmp_path, ["python", f"{SCRIPT}/ray_tasks.py"])
    check_same(ran)
    check_advice(ran, set())
    operators = ran.operators()
    assert operators["aten::mm"] == 4
    assert operators["aten::add_"] == 4


def test_workers_of_dask(python: Path, tmp_path: Path) -> None:
    ran = RecordedProgram(python, tmp_path, ["python", f"{SCRIPT}/dask_cluster.py"])
    check_same(ran)
    check_advice(ran, set())
    assert ran.operators()["aten::mul"] == 10


@pytest.mark.parametrize(
    ("launcher", "count"),
    [
        (["torchrun", "--standalone", "--nproc-per-node=2", f"{SCRIPT}/ddp_train.py"], 2),
        (["accelerate", "launch", "--cpu", "--num_processes=1", f"{SCRIPT}/accelerate_train.py"], 1),
    ],
    ids=["torchrun", "accelerate"],
)
def test_processes_of_a_launcher(python: Path, tmp_path: Path, launcher: list[str], count: int) -> None:
    ran = RecordedProgram(python, tmp_path, launcher, is_counted=True)
    check_same(ran)
    check_advice(ran, set())
    assert ran.counted.total() > 100
    started = {str(process["process"]) for process in ran.processes} - {ran.main_process}
    assert len(started) == count
    assert ran.operators(*started) == ran.counted


def test_a_notebook(python: Path, tmp_path: Path) -> None:
    command = ["jupyter", "nbconvert", "--to", "notebook", "--execute", "--output-dir", "."]
    ran = RecordedProgram(python, tmp_path, [*command, f"{SCRIPT}/notebook.ipynb"])
    check_same(ran)
    check_advice(ran, set())
    assert ran.operators()["aten::mm"] == 50
    assert ran.operators()["aten::relu"] == 50


def test_pytest(python: Path, tmp_path: Path) -> None:
    command = ["pytest", "-q", "-p", "no:cacheprovider", "--no-header", f"{SCRIPT}/checked_model.py"]
    ran = RecordedProgram(python, tmp_path, command)
    plain, recorded = ran.seen
    assert (plain.code, recorded.code) == (1, 1)
    assert without_numbers(plain.output) == without_numbers(recorded.output)
    assert ran.operators()["aten::linear"] == 3
