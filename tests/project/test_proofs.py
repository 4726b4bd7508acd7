"""Coq has checked the laws of the samplers: in these files, and with the thresholds that are in use."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.project import proofs

NEEDS_COQ = pytest.mark.skipif(shutil.which("coqc") is None, reason="`make proofs` installs Coq and checks all files")

PLANTED = """Require Import Reals.
From Interval Require Import Tactic.
Open Scope R_scope.
Goal {word} <= 2 ^ 64 * (/ (1 + exp (1 / 10))) < {word} + 1. Proof. split; interval with (i_prec 200). Qed.
"""


def test_coq_has_checked_these_files() -> None:
    assert json.loads(proofs.RECORD.read_text())["files"] == proofs.digests(), "run `make proofs`"


def test_the_thresholds_in_use_are_those_that_were_checked() -> None:
    assert (proofs.FOLDER / "Thresholds.v").read_text() == proofs.thresholds(), "run `make proofs`"


def test_nothing_is_assumed_that_is_not_said() -> None:
    """Hypotheses of sections are the ranges of parameters; nothing is admitted or declared to be true."""
    stated = []
    for name in proofs.FILES:
        text = (proofs.FOLDER / name).read_text()
        assert not [word for word in ("Admitted", "admit", "Axiom", "Parameter", "Conjecture") if word in text]
        stated += [line for line in text.splitlines() if line.startswith("Hypothesis")]
    assert stated == [
        "Hypothesis positive : 0 < q.",
        "Hypothesis below_one : q < 1.",
        "Hypothesis wide : 0 < width.",
        "Hypothesis all_buckets : 0 < total.",
    ]


@NEEDS_COQ
def test_coq_checks_the_laws(tmp_path: Path) -> None:
    """The thresholds take half a minute of processor time, and are checked by `make proofs`."""
    proofs.check(tmp_path, [name for name in proofs.FILES if name != "Thresholds.v"])


@NEEDS_COQ
def test_coq_rejects_a_threshold_that_is_one_too_large(tmp_path: Path) -> None:
    (tmp_path / "Planted.v").write_text(PLANTED.format(word=8762587358261559784))
    subprocess.run(["coqc", "-q", "Planted.v"], cwd=tmp_path, check=True)
    (tmp_path / "Planted.v").write_text(PLANTED.format(word=8762587358261559785))
    assert subprocess.run(["coqc", "-q", "Planted.v"], cwd=tmp_path, check=False, capture_output=True).returncode == 1
