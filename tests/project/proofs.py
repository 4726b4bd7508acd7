"""Write proofs/Thresholds.v: the thresholds of the samplers, as statements that Coq checks by interval arithmetic.

`make proofs` writes the file, lets Coq check all of proofs/, and records in proofs/checked.json what it has checked.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from hubbub.noise.gaussian import _buckets
from hubbub.noise.geometric import _digits

FOLDER = Path(__file__).parents[2] / "proofs"
RECORD = FOLDER / "checked.json"

#: In the order in which Coq reads them.
FILES = ("Comparison.v", "Geometric.v", "Gaussian.v", "Thresholds.v")

SCALES = tuple(
    Fraction(text) for text in ("1/1000", "1/2", "1", "7/3", "10", "1000", "123457/100", "1048576", "1000000000")
)
VARIANCES = tuple(Fraction(text) for text in ("1/4", "1", "10/3"))

_HEADER = """\
(* The integers that decide the first word of a sample: floor(2^64 p) for the probabilities p of Geometric.v, and
   for the shares of the buckets of Gaussian.v where a bucket is one integer. Written by `make proofs` from what the
   samplers use; each line is checked by interval arithmetic. The rest of the sum over all integers is a variable, as
   large as the geometric series that bounds it. *)

Require Import Reals.
From Interval Require Import Tactic.
Open Scope R_scope.
"""


def thresholds() -> str:
    """Write the statements about every scale and variance of the lists above."""
    parts = [_HEADER]
    for number, scale in enumerate(SCALES):
        parts.append(f"(** scale {scale} *)")
        digits = _digits(scale)
        at = [int(word) for word in digits.at[:, 0]]
        for place, word in enumerate(at):
            if place == digits.low:
                name, real = "above", f"exp (- ({_real((1 << place) / scale)}))"
            else:
                exponent = (1 << place) / scale if place < digits.low else 1 / scale
                name = f"digit_{place}" if place < digits.low else "sign"
                real = f"/ (1 + exp ({_real(exponent)}))"
            parts.append(
                f"Goal {word} <= 2 ^ 64 * ({real}) < {word} + 1. Proof. {_PROOF} Qed. (* scale {number}, {name} *)"
            )
        parts.append("")
    for number, variance in enumerate(VARIANCES):
        parts += _gaussian(number, variance)
    return "\n".join(parts).rstrip() + "\n"


_PROOF = "split; interval with (i_prec 200)."


def _gaussian(number: int, variance: Fraction) -> list[str]:
    """Write the shares of the buckets 0, -1, 1, -2, 2, …: bucket 2h holds h, and bucket 2h + 1 holds -1 - h."""
    buckets = _buckets(variance)
    assert buckets.width == 0
    rate, at = buckets.half_precision, [int(word) for word in buckets.at]
    last = len(at) // 2 + 4
    while last * last * rate < 70:
        last += 1
    weights = [f"exp (- ({_real(x * x * rate)}))" for h in range(last) for x in (h, h + 1)]
    sums = ["w0", *(f"s{place - 1} + w{place}" for place in range(1, len(weights)))]
    tail = f"2 * exp (- ({_real(last * last * rate)})) / (1 - exp (- ({_real((2 * last + 1) * rate)})))"
    opened = ", ".join(
        [*(f"s{place}" for place in reversed(range(len(sums)))), *(f"w{j}" for j in range(len(weights)))]
    )
    return [
        f"(** variance {variance} *)",
        f"Module Variance_{number}.",
        *(f"Definition w{place} := {weight}." for place, weight in enumerate(weights)),
        *(f"Definition s{place} := {text}." for place, text in enumerate(sums)),
        f"Ltac share := intros rest [A B]; assert (rest <= / 2 ^ 95) by (eapply Rle_trans; [exact B | interval with "
        f"(i_prec 100)]); clear B; unfold {opened}; split; interval with (i_prec 200).",
        f"Definition rests (rest : R) := 0 <= rest <= {tail}.",
        *(
            f"Goal forall rest, rests rest -> {word} <= 2 ^ 64 * (s{place} / (s{len(sums) - 1} + rest)) < {word} + 1. "
            "Proof. share. Qed."
            for place, word in enumerate(at)
        ),
        f"End Variance_{number}.",
        "",
    ]


def _real(number: Fraction) -> str:
    return f"{number.numerator}" if number.denominator == 1 else f"{number.numerator} / {number.denominator}"


def digests() -> dict[str, str]:
    """Hash the files that Coq checks."""
    return {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in FILES}


def check(folder: Path, names: Sequence[str] = FILES) -> None:
    """Let Coq check copies of the files in a folder."""
    coq = shutil.which("coqc")
    assert coq, "coqc is missing: apt-get install coq libcoq-interval"
    for name in names:
        shutil.copy(FOLDER / name, folder / name)
        subprocess.run([coq, "-q", "-w", "-all", name], cwd=folder, check=True)


if __name__ == "__main__":
    (FOLDER / "Thresholds.v").write_text(thresholds(), encoding="utf-8")
    with tempfile.TemporaryDirectory() as place:
        check(Path(place))
    version = subprocess.run(["coqc", "--print-version"], capture_output=True, text=True, check=True).stdout.split()[0]
    RECORD.write_text(json.dumps({"coq": version, "files": digests()}, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f"Coq {version} has checked {len(FILES)} files.\n")
