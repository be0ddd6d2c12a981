"""The peers' own tests pass with hotspan in the peer's place; what differs is listed, with the reason.

``make test-peers`` runs them alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from environments import VERSIONS, environment
from peers.suites import SUITES, Suite


@pytest.mark.parametrize("version", VERSIONS["peers"])
@pytest.mark.parametrize("suite", SUITES, ids=[suite.name for suite in SUITES])
def test_the_tests_of_a_peer_pass(suite: Suite, version: str, tmp_path: Path) -> None:
    python = environment("peers", version)
    if not python.exists():
        pytest.skip(f"the environment for Python {version} is not here: make real")
    outcomes = suite.run(python, tmp_path)
    expected = suite.expected()
    failed = {name: why for name, why in outcomes.items() if why}
    print(f"{suite.name}: {len(outcomes) - len(failed)} of {len(outcomes)} pass")
    surprising = {name: why for name, why in failed.items() if name not in expected}
    assert surprising == {}, "these fail and are not in the list of differences"
    mended = [name for name in expected if outcomes.get(name) == ""]
    assert mended == [], "these pass and are still in the list of differences"
    assert [name for name in expected if name not in outcomes] == [], "these are listed and no tests"
