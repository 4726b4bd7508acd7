"""Each campaign runs once at its small scale; the large figures are in docs/campaigns.md."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CAMPAIGNS = sorted(path.stem for path in HERE.glob("*.py") if path.stem not in ("frame", "test_campaigns"))


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_campaign_meets_its_targets_at_small_scale(name: str, request: pytest.FixtureRequest) -> None:
    shared = {"HUBBUB_SPARK": request.getfixturevalue("spark_address")} if name == "spark" else {}
    run = subprocess.run(
        [sys.executable, "-m", f"tests.campaigns.{name}"],
        cwd=HERE.parents[1],
        env={**os.environ, **shared, "HUBBUB_CAMPAIGN": "ci"},
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )
    assert run.returncode == 0, run.stderr[-4000:]
    figures = json.loads(run.stdout.splitlines()[-1])
    assert figures["missed"] == []
    assert figures["campaign"] == "ci"


def test_a_missed_target_fails_the_run() -> None:
    script = "from tests.campaigns.frame import run; run(lambda r: r.target('x', float('nan'), at_most=1))"
    result = subprocess.run(
        [sys.executable, "-c", script], cwd=HERE.parents[1], capture_output=True, text=True, check=False
    )
    assert result.returncode == 1
    assert json.loads(result.stdout.splitlines()[-1])["missed"] == ["x"]
