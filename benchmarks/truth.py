"""Are answers true of the unbounded data? Random questions about real data whose contribution bounds are `auto`.

Every stated 95% interval is compared with the exact answer over all rows that have an owner. Counts and sums are also
compared with the best fixed contribution bounds, which are chosen in hindsight by someone who knows the exact answer.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.truth
"""

import random
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from statistics import mean, median

import duckdb
from benchmarks.real_data import hindsight, tpch
from benchmarks.real_data.engine import remembered
from benchmarks.real_data.questions import SHAPES, Maker, Question
from benchmarks.real_data.tables import PUMS, Dataset, known, write
from tests.campaigns.frame import Report, run

import hubbub
from hubbub.curator.session import Session

EPSILONS = (Fraction(1, 10), Fraction(1), Fraction(10))
#: Exact answers are computed in floating point, too.
ROUNDING = 1e-9


@dataclass(frozen=True)
class Outcome:
    """The answers to one question at one ε: which stated intervals held, and the error beside the best fixed bound."""

    dataset: str
    shape: str
    epsilon: Fraction
    held: float | None  #: share of the stated intervals that hold the exact answer; None where none was stated
    stated: float  #: share of the values whose interval has two ends
    ratio: float | None  #: median error divided by that of the best fixed bounds


def ask(
    session: Session, exact: hindsight.Exact, question: Question, epsilon: Fraction, times: int, rows: int | None = None
) -> Outcome:
    """Ask a question several times, each time with fresh noise; `rows` is a fixed bound instead of auto."""
    held, stated, errors = [], [], []
    for time in range(times):
        key = f"{question.sql} {epsilon} {rows} {time}"
        release = session.query(question.sql, epsilon=epsilon, rows=rows, groups=rows, key=key)
        off = []
        for row, interval in zip(release.rows, release.intervals, strict=True):
            truth = exact.of(row[: question.keys])
            if truth is None:
                continue
            (low, high), value = interval[-1], row[-1]
            stated.append(low is not None and high is not None)
            if low is not None and high is not None:
                slack = ROUNDING * max(1.0, abs(truth))
                held.append(low - slack <= truth <= high + slack)
            off.append(abs(float(str(value)) - truth) if value is not None else 0.0)
        errors.append(mean(off))
    best = exact.best_error(epsilon) if question.comparable and rows is None else None
    # noise is an integer, so the best error can be 0: errors below 1 count as 1
    ratio = None if best is None else max(1.0, median(errors)) / max(1.0, best)
    return Outcome(exact.dataset.name, question.shape, epsilon, mean(held) if held else None, mean(stated), ratio)


def measure(report: Report, dataset: Dataset, folder: Path) -> list[Outcome]:
    """Ask random questions of every shape about one dataset."""
    write(dataset, folder)
    maker = Maker(dataset, random.Random(f"truth {dataset.name}"))
    count, times = report.scale(ci=1, full=2), report.scale(ci=3, full=10)
    questions = [maker.question(shape) for shape in SHAPES for _ in range(count)]
    outcomes = []
    with hubbub.open(folder / "hubbub.yaml") as session, duckdb.connect() as connection, remembered():
        for question in report.progress(questions, dataset.name):
            exact = hindsight.Exact(dataset, folder, connection, question)
            outcomes += [ask(session, exact, question, epsilon, times) for epsilon in EPSILONS]
        every = maker.question("count")
        planted = ask(session, hindsight.Exact(dataset, folder, connection, every), every, EPSILONS[1], times, rows=1)
        report.target(f"planted: coverage of {dataset.name} at one row per unit", planted.held or 0.0, at_most=0.5)
    return outcomes


def body(report: Report) -> None:
    """Measure every dataset, and state coverage and errors."""
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as name:
        for missing, text in ((not PUMS.exists(), f"{PUMS} is not here"), (not tpch.is_here(), tpch.MISSING)):
            if missing:
                report.say(text)
        for dataset in known(Path(name)):
            folder = Path(name, f"{dataset.name} declared")
            folder.mkdir()
            outcomes += measure(report, dataset, folder)
    report.figure("questions", len(outcomes))
    report.figure("stated", mean(each.stated for each in outcomes))
    by: dict[str, Callable[[Outcome], str]] = {
        "dataset": lambda each: each.dataset,
        "epsilon": lambda each: str(float(each.epsilon)),
        "shape": lambda each: each.shape,
    }
    for label, key in by.items():
        kinds = dict.fromkeys(map(key, outcomes))
        parts = {kind: [each for each in outcomes if key(each) == kind] for kind in kinds}
        report.figure(f"coverage by {label}", {kind: coverage(part) for kind, part in parts.items()})
        report.figure(f"stated by {label}", {kind: mean(each.stated for each in part) for kind, part in parts.items()})
        report.figure(f"ratio by {label}", {kind: typical(part) for kind, part in parts.items()})
    ratios = sorted(each.ratio for each in outcomes if each.ratio is not None)
    report.figure("ratio, ninth decile", ratios[len(ratios) * 9 // 10])
    report.figure("ratio, largest", ratios[-1])
    report.figure("ratios above 4", sum(ratio > 4 for ratio in ratios) / len(ratios))
    report.target("coverage", coverage(outcomes) or 0.0, at_least=0.95)
    report.target("median error / best fixed bound in hindsight", median(ratios), at_most=4)


def coverage(outcomes: Iterable[Outcome]) -> float | None:
    """Return the mean share of stated intervals that held, each question weighing the same."""
    shares = [each.held for each in outcomes if each.held is not None]
    return mean(shares) if shares else None


def typical(outcomes: Iterable[Outcome]) -> float | None:
    """Return the median ratio of those questions that have one."""
    ratios = [each.ratio for each in outcomes if each.ratio is not None]
    return median(ratios) if ratios else None


if __name__ == "__main__":
    run(body)
