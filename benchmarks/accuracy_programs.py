"""Private programs on real data: letter (clusters, components, a line) and Adult (classes, itemsets), ε as named.

Everything is asked through a curator with a ledger, and judged on the exact data. diffprivlib answers the same at the
same ε, with the bounds that are declared here, where it can.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from secrets import token_hex
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans as Exact
from sklearn.linear_model import LogisticRegression as ExactLogistic
from sklearn.tree import DecisionTreeClassifier as ExactTree
from tests.campaigns.frame import Report, run

import hubbub
from hubbub.curator.session import Session

DATA = Path(__file__).parents[2] / "shared" / "data"
PEER = Path(__file__).parents[1] / ".peers" / "diffprivlib" / "bin" / "python"
LETTER = [f"f{j}" for j in range(16)]
LINE, SLOPES = "f1", ["f0", "f2", "f3", "f4"]
CLASSES = ["age", "education-num", "marital-status", "occupation", "relationship", "sex", "capital-gain"]
NUMBERS = ["age", "education-num", "sex", "capital-gain", "hours-per-week"]
PLANE = ["age", "education-num"]
ITEMS = ["marital-status", "relationship", "race", "sex", "income>50K"]

Floats = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]


def measure(report: Report) -> None:
    if not (DATA / "letter.arff").exists():
        report.say("the data lies beside the project on our own machines only: nothing is measured")
        return
    with _opened() as (session, letter, adult):
        peer = _peer(report, letter, adult, report.scale(ci=2, full=10))
        shown: dict[str, Any] = {}
        _clusters(report, session, letter, peer, shown)
        _components(report, session, letter, peer, shown)
        _line(report, session, letter, peer, shown)
        _told_apart(report, session, adult, peer, shown)
        _baskets(report, session, adult, shown)
    if "HUBBUB_PLOTS" in os.environ:
        _plot(Path(os.environ["HUBBUB_PLOTS"]) / "programs.png", shown)


@contextmanager
def _opened() -> Iterator[tuple[Session, Floats, Columns]]:
    lines = [line for line in (DATA / "letter.arff").read_text().splitlines() if line and line[0] not in "%@"]
    letter = np.array([line.split(",")[:16] for line in lines], dtype=float)
    names, *rows = (DATA / "adult.csv").read_text().splitlines()
    table = np.array([row.split(",") for row in rows if row], dtype=np.int64)
    adult: Columns = {name: table[:, j] for j, name in enumerate(names.split(","))}
    with tempfile.TemporaryDirectory() as folder:
        with duckdb.connect() as connection:
            for name, columns in (("letter", dict(zip(LETTER, letter.T.copy(), strict=True))), ("adult", adult)):
                connection.register("made", columns)
                connection.execute(f"COPY (SELECT * FROM made) TO '{folder}/{name}.parquet'")
                connection.unregister("made")
        budget = "    unit: row\n    budget: {epsilon: 100000, delta: 1e-6}\n"
        texts = ["version: 1", "datasets:", "  letter:", "    source: letter.parquet", budget + "    columns:"]
        texts += [f"      {name}: {{bounds: [0, 15]}}" for name in LETTER]
        texts += ["  adult:", "    source: adult.parquet", budget + "    columns:"]
        for name, column in adult.items():
            most = int(column.max())
            few = most <= 16 and name not in NUMBERS[:2]
            said = f"values: {list(range(most + 1))}" if few else f"bounds: [0, {most}]"
            texts.append(f'      "{name}": {{{said}}}')
        both = "{letter: {epsilon: 100000, delta: 1e-6}, adult: {epsilon: 100000, delta: 1e-6}}"
        texts += ["analysts:", f"  ana: {both}"]
        Path(folder, "hubbub.yaml").write_text("\n".join(texts))
        with hubbub.open(Path(folder, "hubbub.yaml")) as session:
            yield session, letter, adult


def _clusters(report: Report, session: Session, letter: Floats, peer: Mapping[str, Any], shown: dict[str, Any]) -> None:
    seeds = report.scale(ci=2, full=10)
    for k, most in ((8, 54.0), (64, 46.0)):
        found = []
        for _ in report.progress(range(seeds), f"k-means, k={k}"):
            release = session.kmeans("letter", LETTER, k, epsilon=1, delta="1e-6", key=token_hex(8))
            found.append(-hubbub.model(release).score(letter))
        report.target(f"kmeans_{k}", float(np.mean(found)), at_most=most)
        report.figure(f"kmeans_{k}_worst", max(found))
        classic = [
            -hubbub.model(
                session.kmeans("letter", LETTER, k, rounds=5, method="classic", epsilon=1, delta=0, key=token_hex(8))
            ).score(letter)
            for _ in range(seeds)
        ]
        report.figure(f"kmeans_{k}_classic_5_rounds", float(np.mean(classic)))
        report.figure(f"kmeans_{k}_diffprivlib", peer.get(f"kmeans_{k}"))
        report.figure(
            f"kmeans_{k}_not_private", float(Exact(k, n_init=2, random_state=0).fit(letter).inertia_) / 20_000
        )
    prices = (0.1, 0.3, 1, 3)
    shown["clusters"] = (
        prices,
        [
            -hubbub.model(session.kmeans("letter", LETTER, 8, epsilon=e, delta="1e-6", key=token_hex(8))).score(letter)
            for e in prices
        ],
        [
            -hubbub.model(
                session.kmeans("letter", LETTER, 8, rounds=5, method="classic", epsilon=e, delta=0, key=token_hex(8))
            ).score(letter)
            for e in prices
        ],
        report.figures["kmeans_8_not_private"],
    )


def _components(
    report: Report, session: Session, letter: Floats, peer: Mapping[str, Any], shown: dict[str, Any]
) -> None:
    """Say how much of the variance four components keep, of what the best four do."""
    covariance = np.cov(letter.T)
    best = np.sort(np.linalg.eigvalsh(covariance))[::-1]
    found = []
    for _ in range(report.scale(ci=3, full=20)):
        axes = hubbub.model(session.pca("letter", LETTER, components=4, epsilon=1, key=token_hex(8))).components
        found.append(float(np.trace(axes @ covariance @ axes.T) / best[:4].sum()))
    report.target("pca_4_of_best", float(np.mean(found)), at_least=0.98)
    report.figure("pca_4_of_best_diffprivlib", peer.get("pca"))
    whole = hubbub.model(session.pca("letter", LETTER, epsilon=1, key=token_hex(8)))
    shown["components"] = best, whole.explained_variance


def _line(report: Report, session: Session, letter: Floats, peer: Mapping[str, Any], shown: dict[str, Any]) -> None:
    places = [LETTER.index(name) for name in SLOPES]
    rows, target = letter[:, places], letter[:, LETTER.index(LINE)]
    found = []
    for _ in range(report.scale(ci=3, full=20)):
        release = session.linear_regression("letter", SLOPES, LINE, epsilon=1, key=token_hex(8))
        found.append(hubbub.model(release).score(rows, target))
    design = np.column_stack([np.ones(len(rows)), rows])
    exact = np.linalg.lstsq(design, target, rcond=None)[0]
    best = 1 - float(np.var(target - design @ exact) / np.var(target))
    report.target("linear_r2", float(np.mean(found)), at_least=best - 0.02)
    report.figure("linear_r2_not_private", best)
    report.figure("linear_r2_diffprivlib", peer.get("linear"))
    shown["line"] = exact[1:], release.outputs[1]


def _told_apart(
    report: Report, session: Session, adult: Columns, peer: Mapping[str, Any], shown: dict[str, Any]
) -> None:
    rich = adult["income>50K"]
    numbers = np.stack([adult[name] for name in NUMBERS], axis=1).astype(float)
    plane = np.stack([adult[name] for name in PLANE], axis=1).astype(float)
    larger = float(max(rich.mean(), 1 - rich.mean()))

    def logistic(e: float) -> float:
        release = session.logistic_regression("adult", NUMBERS, "income>50K", epsilon=e, delta="1e-6", key=token_hex(8))
        return float(np.mean(hubbub.model(release).predict(numbers) == rich))

    def tree(e: float) -> float:
        release = session.decision_tree("adult", CLASSES, "income>50K", depth=3, epsilon=e, key=token_hex(8))
        return float(np.mean(hubbub.model(release).predict(adult) == rich))

    def half(e: float) -> float:
        release = session.hyperplane("adult", PLANE, "income>50K", epsilon=e, key=token_hex(8))
        return float(np.mean(hubbub.model(release).predict(plane) == rich))

    seeds = report.scale(ci=2, full=10)
    exact = ExactLogistic(max_iter=1000).fit(numbers / numbers.max(axis=0), rich)
    reached = {
        "logistic": (logistic, float(exact.score(numbers / numbers.max(axis=0), rich)) - 0.01),
        "tree": (tree, larger + 0.04),
        "hyperplane": (half, larger + 0.005),
    }
    report.figure("logistic_not_private", float(exact.score(numbers / numbers.max(axis=0), rich)))
    both = np.stack([adult[name] for name in CLASSES], axis=1)
    report.figure("tree_not_private", float(ExactTree(max_depth=5).fit(both, rich).score(both, rich)))
    report.figure("larger_class", larger)
    prices = (0.1, 0.3, 1, 3)
    shown["classes"] = prices, {}, larger
    for name, (accuracy, least) in reached.items():
        found = [accuracy(1) for _ in report.progress(range(seeds), name)]
        report.target(f"{name}_accuracy", float(np.mean(found)), at_least=least)
        report.figure(f"{name}_accuracy_diffprivlib", peer.get(name))
        shown["classes"][1][name] = [accuracy(e) for e in prices]


def _baskets(report: Report, session: Session, adult: Columns, shown: dict[str, Any]) -> None:
    """Compare noisy supports with exact ones, for all sets that are found."""
    truth, noisy = [], []
    for _ in range(report.scale(ci=2, full=10)):
        release = session.frequent_itemsets("adult", ITEMS, support="0.2", epsilon=1, delta=0, key=token_hex(8))
        found = hubbub.model(release)
        for items, count in found.counts.items():
            held = np.ones(len(adult["sex"]), dtype=bool)
            for item in items:
                name, _, value = item.rpartition(" = ")
                held &= adult[name] == int(value)
            truth.append(float(held.mean()))
            noisy.append(count / found.rows)
    report.target("itemsets_support_rmse", float(np.sqrt(np.mean((np.array(truth) - noisy) ** 2))), at_most=0.01)
    every = [(name, value) for name in ITEMS for value in range(int(adult[name].max()) + 1)]
    singles = [(adult[name] == value) for name, value in every]
    pairs = sum(bool((one & other).mean() >= 0.2) for one, other in combinations(singles, 2))
    report.figure("itemsets_pairs_there", pairs)
    report.figure("itemsets_pairs_found", sum(len(each) == 2 for each in found.counts))
    shown["baskets"] = truth, noisy


def _peer(report: Report, letter: Floats, adult: Columns, seeds: int) -> dict[str, Any]:
    """Let diffprivlib answer the same questions at ε = 1, in a process of its own environment."""
    if not PEER.exists():
        report.say("diffprivlib is not here: run make peers")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        made: dict[str, Any] = {name.replace(">", ""): each for name, each in adult.items()}
        np.savez(f"{folder}/data.npz", letter=letter, **made)
        given = json.dumps(
            {
                "seeds": seeds,
                "path": f"{folder}/data.npz",
                "numbers": NUMBERS,
                "classes": CLASSES,
                "line": LETTER.index(LINE),
                "slopes": [LETTER.index(name) for name in SLOPES],
            }
        )
        report.say("diffprivlib answers")
        done = subprocess.run(
            [str(PEER), "-c", THEIRS], input=given, capture_output=True, text=True, check=False, timeout=1800
        )
    if done.returncode:
        report.say(done.stderr[-800:])
        return {}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


#: What the peer is asked: the same ε, and the same bounds.
THEIRS = """
import json, sys, warnings; warnings.simplefilter('ignore')
import numpy as np
from diffprivlib import models
given = json.load(sys.stdin); data = np.load(given['path']); seeds = given['seeds']
letter = data['letter']; low, high = np.zeros(16), np.full(16, 15.0)
rich = data['income50K']; out = {}
def mean(values): return float(np.mean(values))
for k in (8, 64):
    out[f'kmeans_{k}'] = mean([
        models.KMeans(k, epsilon=1, bounds=(low, high)).fit(letter).transform(letter).min(axis=1).__pow__(2).mean()
        for _ in range(seeds)])
covariance = np.cov(letter.T); best = np.sort(np.linalg.eigvalsh(covariance))[::-1][:4].sum()
out['pca'] = mean([
    np.trace(axes @ covariance @ axes.T) / best for axes in (
        models.PCA(4, epsilon=1, data_norm=60, bounds=(low, high)).fit(letter).components_ for _ in range(seeds))])
x, y = letter[:, given['slopes']], letter[:, given['line']]
out['linear'] = float(np.median([
    models.LinearRegression(epsilon=1, bounds_X=(np.zeros(4), np.full(4, 15.0)), bounds_y=(0, 15)).fit(x, y).score(x, y)
    for _ in range(seeds)]))
n = np.stack([data[name] for name in given['numbers']], axis=1).astype(float); n = n / n.max(axis=0)
out['logistic'] = mean([
    models.LogisticRegression(epsilon=1, data_norm=5 ** 0.5, max_iter=1000).fit(n, rich).score(n, rich)
    for _ in range(seeds)])
c = np.stack([data[name] for name in given['classes']], axis=1).astype(float)
out['tree'] = mean([
    models.DecisionTreeClassifier(max_depth=5, epsilon=1, bounds=(np.zeros(c.shape[1]), c.max(axis=0)),
        classes=[0, 1]).fit(c, rich).score(c, rich) for _ in range(seeds)])
print(json.dumps(out))
"""


def _plot(path: Path, shown: Mapping[str, Any]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(14, 7.5), layout="constrained")
    (first, second, third), (fourth, fifth, last) = figure.subplots(2, 3)
    prices, ours, classic, exact = shown["clusters"]
    first.semilogx(prices, ours, "o-", label="start from moments (δ = 10⁻⁶)")
    first.semilogx(prices, classic, "s--", label="classic, 5 rounds")
    first.axhline(exact, color="grey", label="not private")
    first.set(title="k-means, letter, k = 8", xlabel="ε", ylabel="mean squared distance")
    best, found = shown["components"]
    second.plot(range(1, 17), best, "-", color="grey", label="exact")
    second.plot(range(1, 17), found, "o", label="ε = 1")
    second.set(title="principal components, letter", xlabel="component", ylabel="variance")
    truth, output = shown["line"]
    values = np.array(output.values[1:])
    errors = np.array([high - value for high, value in zip(output.high[1:], values, strict=True)])
    third.errorbar(values, range(len(values)), xerr=errors, fmt="o", capsize=3, label="ε = 1, 95%")
    third.plot(truth, range(len(truth)), "x", color="grey", label="exact")
    third.set(title=f"linear regression of {LINE}, letter", xlabel="coefficient", yticks=range(4), yticklabels=SLOPES)
    prices, lines, larger = shown["classes"]
    for name, marks in zip(lines, ("o-", "s-", "^-"), strict=True):
        fourth.semilogx(prices, lines[name], marks, label=name)
    fourth.axhline(larger, color="grey", label="the larger class")
    fourth.set(title="who earns more, Adult", xlabel="ε", ylabel="rows on the right side")
    truth, noisy = shown["baskets"]
    fifth.plot([0, 1], [0, 1], color="grey")
    fifth.plot(truth, noisy, ".", label="sets found at ε = 1")
    fifth.set(title="frequent itemsets, Adult", xlabel="exact support", ylabel="noisy support")
    axes: Sequence[Any] = (first, second, third, fourth, fifth)
    for each in axes:
        each.legend()
    last.axis("off")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    run(measure)
