"""Graphs on real friendships (LastFM Asia, where it lies beside the project; else the karate club), and blocks.

Also the owner's own function: the median of real patients' spending by sample and aggregate.
"""

import csv
import math
import os
import tempfile
import time
from pathlib import Path

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from tests.campaigns.frame import Report, run

from hubbub.analyses.graphs.degrees import triangles, truncated
from hubbub.analyses.graphs.edges import Graph, graph
from hubbub.curator.session import Session, open_session
from hubbub.demo import HERE

LASTFM = Path(__file__).parents[2] / "shared" / "data" / "lastfm_asia_edges.csv"
ENDS = ["a", "b"]

Counts = NDArray[np.int64]


def measure(report: Report) -> None:
    name, whole = _edges()
    report.figure("graph", f"{name}: {whole.nodes} nodes, {whole.size} edges")
    with tempfile.TemporaryDirectory() as folder, _opened(Path(folder), whole) as h:
        _seconds(report, h, whole)
        _numbers(report, h)
        counted = _triangles(report, h, whole)
        degrees = _degrees(report, h, whole)
    _blocks(report)
    if place := os.environ.get("HUBBUB_PLOTS"):
        _plot(Path(place), name, whole, counted, degrees)


def _edges() -> tuple[str, Graph]:
    if LASTFM.exists():
        ends = np.loadtxt(LASTFM, delimiter=",", skiprows=1, dtype=np.int64)
        name = "LastFM Asia"
    else:
        ends, name = np.array(nx.karate_club_graph().edges()), "karate club"
    return name, graph(int(ends.max()) + 1, ends[:, 0], ends[:, 1], np.ones(len(ends), dtype=np.int64))


def _opened(folder: Path, whole: Graph) -> Session:
    rows = np.stack([whole.a, whole.b], axis=1)
    np.savetxt(folder / "edges.csv", rows, fmt="%d", delimiter=",", header="a,b", comments="")
    nodes = f"{{type: integer, bounds: [0, {whole.nodes - 1}]}}"
    (folder / "hubbub.yaml").write_text(
        "version: 1\ndatasets:\n  edges:\n    source: edges.csv\n    unit: row\n"
        f"    columns: {{a: {nodes}, b: {nodes}}}\n    budget: {{epsilon: 100000}}\n"
        "analysts: {ana: {edges: {epsilon: 100000}}}\n"
    )
    return open_session(folder / "hubbub.yaml")


def _seconds(report: Report, h: Session, whole: Graph) -> None:
    bound = int(whole.degrees().max())
    start = time.perf_counter()
    h.min_cut("edges", ENDS, epsilon=1)
    h.spanning_tree("edges", ENDS, epsilon=1)
    h.graph_distance("edges", ENDS, property="connected", epsilon=1)
    h.graph_distance("edges", ENDS, property="acyclic", epsilon=1)
    h.degree_histogram("edges", ENDS, most=bound, epsilon=1)
    h.degree_histogram("edges", ENDS, most=50, protects="node", epsilon=1)
    h.triangle_count("edges", ENDS, most=bound, epsilon=1)
    report.target("graph_seven_answers_seconds", time.perf_counter() - start, at_most=30)


def _numbers(report: Report, h: Session) -> None:
    """The minimum cut at ε = 1: its noise is that of a count."""
    seeds = report.scale(ci=10, full=100)
    truth = h.min_cut("edges", ENDS, epsilon=700).rows[0][0]
    found = [_middle(h, "min_cut", {}, f"cut {seed}") for seed in report.progress(range(seeds), "minimum cut")]
    assert isinstance(truth, int)
    report.figure("graph_min_cut", truth)
    report.figure("graph_min_cut_mae", float(np.mean(np.abs(np.array(found) - truth))))


def _middle(h: Session, name: str, arguments: dict[str, object], key: str, epsilon: float = 1.0) -> float:
    release = h.call(name, {"table": "edges", "ends": ENDS, **arguments}, epsilon=str(epsilon), key=key)
    low, high = release.intervals[0][0]
    assert low is not None
    assert high is not None
    return (low + high) / 2


def _triangles(report: Report, h: Session, whole: Graph) -> dict[int, list[float]]:
    """Relative errors of the number of triangles, by the bound on degrees and ε: bias of the cut, and noise."""
    truth, seeds = triangles(whole), report.scale(ci=5, full=30)
    report.figure("triangles", truth)
    found: dict[int, list[float]] = {}
    most = int(whole.degrees().max())
    for bound in sorted({min(most, each) for each in (25, 50, 100, most)}):
        kept = triangles(truncated(whole, bound, "any"))
        report.figure(f"triangles_kept_{bound}", kept)
        for epsilon in (0.1, 1.0):
            values = [
                _middle(h, "triangle_count", {"most": bound}, f"t {bound} {epsilon} {seed}", epsilon)
                for seed in range(seeds)
            ]
            error = math.sqrt(np.mean((np.array(values) - truth) ** 2)) / truth
            report.figure(f"triangles_relative_rmse_{bound}_{epsilon}", error)
            found.setdefault(bound, []).append(error)
    if LASTFM.exists():
        report.target("triangles_best_at_one", min(errors[1] for errors in found.values()), at_most=0.05)
    return found


def _degrees(report: Report, h: Session, whole: Graph) -> dict[str, Counts]:
    """Nodes by degree under edge privacy (bound: the largest degree) and node privacy (bound: 50)."""
    seeds = report.scale(ci=5, full=30)
    shown: dict[str, Counts] = {}
    for protects, bound in (("edge", int(whole.degrees().max())), ("node", 50)):
        truth = np.bincount(np.minimum(whole.degrees(), bound), minlength=bound + 1)
        errors = []
        for seed in report.progress(range(seeds), f"degrees, {protects}"):
            release = h.degree_histogram(
                "edges", ENDS, most=bound, protects=protects, epsilon=1, key=f"{protects} {seed}"
            )
            counts = np.array([row[1] for row in release.rows], dtype=np.int64)
            errors.append(float(np.abs(counts - truth).sum()) / (2 * whole.nodes))
        shown[protects] = counts
        report.figure(f"degrees_tvd_{protects}", float(np.mean(errors)))
    if LASTFM.exists():
        report.target("degrees_tvd_under_edge_privacy", float(report.figures["degrees_tvd_edge"]), at_most=0.02)  # type: ignore[arg-type]
    return shown


def _blocks(report: Report) -> None:
    """The median of a patient's yearly spending, by a function that nothing is known about."""
    with tempfile.TemporaryDirectory() as folder:
        text = (HERE / "hubbub.yaml").read_text().replace("health.csv", str(HERE / "health.csv"))
        text = text.replace("epsilon: 3", "epsilon: 100")
        (Path(folder) / "hubbub.yaml").write_text(text)
        with open_session(Path(folder) / "hubbub.yaml") as h:
            seeds = report.scale(ci=1, full=5)
            with (HERE / "health.csv").open() as file:
                truth = float(np.median([float(row["spending"]) for row in csv.DictReader(file)]))
            found = []
            for seed in report.progress(range(seeds), "sample and aggregate"):
                release = h.sample_and_aggregate(
                    "def f(rows): return np.nanmedian(rows['spending'])",
                    "health",
                    ["spending"],
                    bounds=(0, 1000),
                    blocks=40,
                    seconds="0.25",
                    epsilon=1,
                    key=str(seed),
                )
                value = release.rows[0][0]
                assert isinstance(value, float)
                found.append(value)
    report.figure("median_spending", truth)
    report.figure("median_spending_by_blocks", [float(each) for each in found])
    report.target("median_spending_relative_error", float(np.mean(np.abs(np.array(found) / truth - 1))), at_most=0.25)


def _plot(folder: Path, name: str, whole: Graph, counted: dict[int, list[float]], degrees: dict[str, Counts]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    truth = np.bincount(whole.degrees())
    left.loglog(np.arange(1, len(truth)), truth[1:], ".", color="0.7", label="true")
    for protects, counts in degrees.items():
        left.loglog(np.arange(1, len(counts)), counts[1:], lw=1, label=f"ε = 1, {protects} privacy")
    left.set_title(f"nodes by degree, {name}")
    left.set_xlabel("degree")
    left.set_ylim(bottom=0.5)
    left.legend()
    for place, epsilon in enumerate((0.1, 1.0)):
        errors = [errors[place] for errors in counted.values()]
        right.plot(list(counted), errors, "o-", label=f"ε = {epsilon}")
    right.set_title("relative error of the number of triangles")
    right.set_xlabel("bound on degrees")
    right.set_yscale("log")
    right.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "graphs.png", dpi=110)


if __name__ == "__main__":
    run(measure)
