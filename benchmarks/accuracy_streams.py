"""Streams and surveys: measured errors beside theory, on drawn data and on real purchases and real patients."""

import csv
import importlib.util
import math
import os
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tests.campaigns.frame import Report, run

from hubbub.analyses.streams.density import Density
from hubbub.analyses.streams.terms import Terms
from hubbub.demo import HERE
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.noise.source import system
from hubbub.surveys.estimate import estimate_joint, estimate_question
from hubbub.surveys.survey import Survey, SurveyQuestion

Doubles = NDArray[np.float64]


def measure(report: Report) -> None:
    _density(report)
    paths = _counters(report)
    told = _purchases(report)
    _patients(report)
    if folder := os.environ.get("HUBBUB_PLOTS"):
        _plot(Path(folder), paths, told)


def _density(report: Report) -> None:
    """A universe of 100,000 of which 30 % arrive: the printed coin with the corrected noise, and our own."""
    some, source = np.random.default_rng(1), system()
    runs = report.scale(ci=600, full=1000)
    for name, table, most in (
        ("printed", Density.printed(size=100_000, epsilon=1), 0.0070),
        ("ours", Density.from_epsilon(size=100_000, epsilon=2, outputs=1), 0.0042),
    ):
        found = []
        for _ in report.progress(range(runs), f"density, {name}"):
            present = np.flatnonzero(some.random(100_000) < 0.3)
            found.append(table.estimate(table.noisy_count(table.take(table.start(source), present, source), source)))
        report.target(f"density_deviation_{name}", float(np.std(found)), at_most=most)
        report.figure(f"density_theory_{name}", math.hypot(table.deviation(Fraction(3, 10)), math.sqrt(0.21e-5)))


def _counters(report: Report) -> dict[str, Doubles]:
    """Root mean squared error over all times at ε = 1 (δ = 10⁻⁶ for Gaussian noise), several seeds, beside theory."""
    length = 1 << report.scale(ci=14, full=20)
    seeds = report.scale(ci=8, full=6)
    delta = Fraction(1, 10**6)
    some = np.random.default_rng(2)
    kinds = {
        "tree_laplace": Terms(name="s", kind="count", epsilon=Fraction(1), horizon=length),
        "tree_gaussian": Terms(name="s", kind="count", epsilon=Fraction(1), delta=delta, horizon=length),
        "tree_private_state": Terms(
            name="s", kind="count", epsilon=Fraction(1), delta=delta, horizon=length, private_state=True
        ),
        "root": Terms(name="s", kind="count", epsilon=Fraction(1), delta=delta, horizon=length, method="root"),
    }
    paths: dict[str, Doubles] = {}
    root_mean: dict[str, float] = {}
    times = np.unique(np.linspace(1, length, 200).astype(int))
    for name, terms in kinds.items():
        counter, squares = terms.counter, []
        for _ in report.progress(range(seeds), f"counts, {name}, T = {length}"):
            values = some.integers(0, 2, (length, 1))
            state = counter.take(counter.start(system()), values, system())
            errors = counter.estimates(state)[:, 0] - np.cumsum(values[:, 0])
            squares.append(float((errors**2).mean()))
        paths[name] = errors
        theory = math.sqrt(np.mean([counter.deviation(0, int(time)) ** 2 for time in times]))
        root_mean[name] = math.sqrt(np.mean(squares))
        report.figure(f"count_rmse_{name}", root_mean[name])
        report.figure(f"count_theory_{name}", theory)
        report.target(f"count_ratio_{name}", root_mean[name] / theory, at_least=0.7, at_most=1.3)
    report.figure("count_length", length)
    report.target("count_root_gain_over_tree", root_mean["tree_gaussian"] / root_mean["root"], at_least=1.8)
    return paths


def _purchases(report: Report) -> tuple[list[int], Doubles, Doubles]:
    """Real purchases in the order of their days: which part of all customers has come back for a second purchase."""
    place = importlib.util.find_spec("lifetimes")
    assert place is not None
    assert place.origin is not None
    text = Path(place.origin).parent / "datasets" / "CDNOW_master.txt"
    rows = np.loadtxt(text, usecols=(0, 1), skiprows=1, dtype=np.int64)
    rows = rows[np.argsort(rows[:, 1], kind="stable")]
    _, first = np.unique(rows[:, 0], return_index=True)
    again = np.ones(len(rows), dtype=np.bool_)
    again[first] = False
    customers, size = rows[again, 0] - 1, int(rows[:, 0].max())
    cuts = np.linspace(0, len(customers), 11).astype(int)[1:]
    table = Density.from_epsilon(size=size, epsilon=2, outputs=len(cuts))
    truth = np.array([len(np.unique(customers[:cut])) / size for cut in cuts])
    seeds = report.scale(ci=5, full=40)
    found = np.zeros((seeds, len(cuts)))
    for seed in range(seeds):
        bits, before = table.start(system()), 0
        for place_, cut in enumerate(cuts):
            bits, before = table.take(bits, customers[before:cut], system()), int(cut)
            found[seed, place_] = table.estimate(table.noisy_count(bits, system()))
    report.target("purchases_density_rmse", float(np.sqrt(((found - truth) ** 2).mean())), at_most=0.02)
    report.figure("purchases_customers", size)
    return cuts.tolist(), truth, found[0]


def _patients(report: Report) -> None:
    """A survey of the demo's real patients: health and sex through a randomizer, and their joint table."""
    with (HERE / "health.csv").open() as file:
        last = {row["person"]: row for row in csv.DictReader(file)}
    words = ("excellent", "good", "fair", "poor")
    people = list(last.values())
    health = np.array([words.index(row["health"]) for row in people], dtype=np.int64)
    female = np.array([int(row["female"]) for row in people], dtype=np.int64)
    asked = Survey(
        "patients",
        (
            SurveyQuestion(name="health", text="", answers=words, epsilon=Fraction(2)),
            SurveyQuestion(name="female", text="", answers=("no", "yes"), epsilon=Fraction("1.0986")),
        ),
    )
    truth, table = np.bincount(health, minlength=4), np.bincount(health * 2 + female, minlength=8)
    runs = report.scale(ci=40, full=400)
    errors, held, cells = [], 0, 0
    for _ in report.progress(range(runs), "survey"):
        sent = []
        for question, answers in zip(asked.questions, (health, female), strict=True):
            mechanism = question.mechanism
            assert not isinstance(mechanism, BitFlips)
            sent.append(mechanism.sample(answers, system()).tolist())
        responses = [{"health": a, "female": b} for a, b in zip(*sent, strict=True)]
        errors.append(estimate_question(asked, "health", responses).count - truth)
        found = estimate_joint(asked, ("health", "female"), responses)
        held += int(((found.low <= table) & (table <= found.high)).sum())
        cells += 8
    report.figure("survey_people", len(people))
    report.figure("survey_rmse_people", float(np.sqrt(np.mean(np.square(errors)))))
    report.target("survey_joint_coverage", held / cells, at_least=0.92)
    report.figure("survey_price", float(asked.epsilon))


def _plot(folder: Path, paths: dict[str, Doubles], told: tuple[list[int], Doubles, Doubles]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for name, label in (("tree_gaussian", "binary tree"), ("root", "square root")):
        left.plot(paths[name][:: max(1, len(paths[name]) // 2000)], lw=0.7, label=label)
    left.set_title(f"error of a running count, T = {len(paths['root']):,}, ε = 1, δ = 10⁻⁶")
    left.set_xticks([])
    left.set_xlabel("time")
    left.legend()
    cuts, truth, found = told
    right.plot(cuts, truth, label="true")
    right.plot(cuts, found, "o", label="from private bits, ε = 2 in all")
    right.set_title("customers who came back, CDNOW")
    right.set_xlabel("purchases so far")
    right.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "streams.png", dpi=110)


if __name__ == "__main__":
    run(measure)
