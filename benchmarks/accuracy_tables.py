"""Published tables on real data: ranges of incomes, contingency tables and places of the ACS excerpt, ε as named.

Errors are of what is published (whole numbers, none negative) against the exact counts, root mean squares over seeds.
"""

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
from numpy.typing import NDArray
from tests.campaigns.frame import Report, run

import hubbub
from hubbub.analyses.tables.strategies import best, dense, groups, identity, tree
from hubbub.curator.session import Session

ACS = Path(__file__).parents[2] / "shared" / "data" / "national2019.csv"
PEER = Path(__file__).parents[1] / ".peers" / "diffprivlib" / "bin" / "python"
ROOT_TWO = "1.41421356237309504880"
BINS, STEP = 256, 500
COLUMNS = ("SEX", "RAC1P", "EDU", "MSP")

Numbers = NDArray[np.float64]


def measure(report: Report) -> None:
    report.target("ranges_256_rmse", best(256, "ranges", "laplace").rmse("ranges", "laplace"), at_most=5.9)
    report.figure("ranges_256_rmse_identity", identity(256).rmse("ranges", "laplace"))
    report.target("prefixes_1024_factor", best(1024, "prefixes", "gaussian").worst("prefixes", "gaussian"), at_most=3.3)
    report.figure("prefixes_1024_factor_tree", float(np.sqrt(10 * tree(1024).columns[1])))
    if not ACS.exists():
        report.say(f"{ACS} is not here: the figures on real data are left out")
        return
    with _acs() as (session, rows):
        _incomes(report, session, rows)
        orders = _tables(report, session, rows)
        _places(report, session, rows)
    if folder := os.environ.get("HUBBUB_PLOTS"):
        _plot(Path(folder), orders)


@contextmanager
def _acs() -> Iterator[tuple[Session, dict[str, NDArray[Any]]]]:
    with tempfile.TemporaryDirectory() as folder, duckdb.connect() as connection:
        picked = f"SELECT PUMA, {', '.join(COLUMNS)}, TRY_CAST(PINCP AS DOUBLE) AS PINCP"
        connection.execute(f"CREATE TABLE raw AS FROM read_csv('{ACS}', all_varchar = true)")
        connection.execute(f"CREATE TABLE acs AS {picked} FROM raw")
        connection.execute(f"COPY acs TO '{folder}/acs.parquet'")
        found = connection.execute("SELECT * FROM acs").fetchnumpy()
        rows = {name: np.asarray(values) for name, values in found.items() if name != "PINCP"}
        rows["PINCP"] = np.ma.filled(np.ma.asarray(found["PINCP"]), np.nan)
        values = {name: json.dumps(sorted(set(rows[name].tolist()))) for name in ("PUMA", *COLUMNS)}
        declared = "\n".join(f"      {name}: {{values: {listed}}}" for name, listed in values.items())
        text = f"""version: 1
datasets:
  acs:
    source: acs.parquet
    unit: row
    columns:
{declared}
      PINCP: {{bounds: [0, {BINS * STEP}]}}
    budget: {{epsilon: 100000, delta: 1e-6}}
analysts:
  ana: {{acs: {{epsilon: 100000, delta: 1e-6}}}}
"""
        Path(folder, "hubbub.yaml").write_text(text)
        with hubbub.open(Path(folder, "hubbub.yaml")) as session:
            yield session, rows


def _over_ranges(errors: Numbers) -> float:
    """Give the root mean squared error over all ranges, from the errors of the bins."""
    totals = np.concatenate([[0.0], np.cumsum(errors)])
    gaps = totals[None, :] - totals[:, None]
    return float(np.sqrt((gaps[np.triu_indices(len(totals), 1)] ** 2).mean()))


def _rms(values: list[float]) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _incomes(report: Report, session: Session, rows: dict[str, NDArray[Any]]) -> None:
    seeds = report.scale(ci=20, full=100)
    there = np.clip(rows["PINCP"][~np.isnan(rows["PINCP"])], 0, BINS * STEP)
    exact = np.bincount(np.minimum(there // STEP, BINS - 1).astype(int), minlength=BINS)
    for name in ("groups", "identity"):
        raw, published = [], []
        for seed in report.progress(range(seeds), f"ranges of incomes, {name}"):
            release = session.ranges(
                "acs",
                {"column": "PINCP", "bins": BINS},
                strategy=name,
                noise="laplace",
                epsilon=ROOT_TWO,
                key=f"{name} {seed}",
            )
            raw.append(_over_ranges(np.array(release.model["estimates"]) - exact))
            published.append(_over_ranges(np.array(release.model["counts"]) - exact))
        report.figure(f"incomes_ranges_rmse_{name}", _rms(raw))
        report.figure(f"incomes_ranges_rmse_{name}_published", _rms(published))
    report.figure("incomes_ranges_rmse_diffprivlib", _peer(report, there, exact, seeds))


def _peer(report: Report, values: Numbers, exact: NDArray[Any], seeds: int) -> float | None:
    """Let diffprivlib's histogram answer the same, at the same ε."""
    if not PEER.exists():
        report.say("diffprivlib is not here: run make peers")
        return None
    code = (
        "import json, sys, warnings; warnings.simplefilter('ignore')\n"
        "from diffprivlib.tools import histogram\n"
        "given = json.load(sys.stdin)\n"
        "print(json.dumps([[float(x) for x in histogram(given['values'], epsilon=2 ** 0.5, bins=given['bins'],"
        " range=(0, given['high']))[0]] for _ in range(given['seeds'])]))"
    )
    given = {"values": values.tolist(), "bins": BINS, "high": BINS * STEP, "seeds": seeds}
    done = subprocess.run(
        [str(PEER), "-c", code], input=json.dumps(given), capture_output=True, text=True, check=True, timeout=600
    )
    return _rms([_over_ranges(np.array(each) - exact) for each in json.loads(done.stdout.splitlines()[-1])])


def _joint(rows: dict[str, NDArray[Any]], names: tuple[str, ...]) -> Numbers:
    codes = [np.unique(rows[name].astype(str), return_inverse=True) for name in names]
    table = np.zeros([len(labels) for labels, _ in codes])
    np.add.at(table, tuple(code for _, code in codes), 1)
    return table


def _tables(report: Report, session: Session, rows: dict[str, NDArray[Any]]) -> dict[str, list[float]]:
    """Measure a table of four columns: shared over all its marginals, or all of the budget on the table alone."""
    seeds = report.scale(ci=5, full=20)
    exact = _joint(rows, COLUMNS)
    subsets = [each for size in (0, 1, 2, 4) for each in combinations(range(4), size)]
    orders: dict[str, list[float]] = {}
    for name, wanted in (("shared", None), ("alone", [list(COLUMNS)])):
        squares: dict[int, list[float]] = {0: [], 1: [], 2: [], 4: []}
        for seed in report.progress(range(seeds), f"contingency tables, {name}"):
            release = session.tabulate("acs", list(COLUMNS), marginals=wanted, epsilon=1, delta=0, key=f"{name} {seed}")
            cells = np.array(release.model["cells"]).reshape(release.model["shape"])
            for each in subsets:
                away = tuple(i for i in range(4) if i not in each)
                squares[len(each)].append(float(((cells - exact).sum(axis=away) ** 2).mean()))
        orders[name] = [float(np.sqrt(np.mean(squares[size]))) for size in (0, 1, 2, 4)]
        report.figure(f"tables_rmse_{name}", dict(zip(("total", "1-way", "2-way", "4-way"), orders[name], strict=True)))
    report.target("tables_2way_gain", orders["alone"][2] / orders["shared"][2], at_least=1.15)
    return orders


def _places(report: Report, session: Session, rows: dict[str, NDArray[Any]]) -> None:
    """States and their areas, by sex: counts that add up, beside areas alone that are added up."""
    seeds = report.scale(ci=5, full=40)
    exact = _joint(rows, ("PUMA", "SEX"))
    areas = np.unique(rows["PUMA"].astype(str))
    states = np.unique([area[:2] for area in areas], return_inverse=True)[1]
    upper = np.zeros((states.max() + 1, 2))
    np.add.at(upper, states, exact)
    found: dict[str, list[float]] = {"total": [], "state": [], "area": []}
    for seed in report.progress(range(seeds), "places"):
        release = session.geography(
            "acs", "PUMA", [2], columns=["SEX"], levels=["state", "area"], epsilon=1, delta=0, key=f"places {seed}"
        )
        total, state, area = (np.array(level["counts"]) for level in release.model["levels"])
        summed = np.zeros_like(state)
        np.add.at(summed, states, area)
        if not (summed == state).all() or not (state.sum(axis=0) == total[0]).all() or (area < 0).any():
            report.missed.append("places_add_up")
        for name, errors in (("total", total - exact.sum(axis=0)), ("state", state - upper), ("area", area - exact)):
            found[name].append(float((errors**2).mean()))
    for name, squares in found.items():
        report.figure(f"places_rmse_{name}", float(np.sqrt(np.mean(squares))))


def _plot(folder: Path, orders: dict[str, list[float]]) -> None:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for found, noise, label in (
        (identity(256), "laplace", "bin by bin (Laplace)"),
        (groups(256, "ranges"), "laplace", "overlapping groups (Laplace)"),
        (dense(256, "ranges"), "gaussian", "dense (Gaussian, ρ = ½)"),
    ):
        totals = np.zeros((257, 257))
        totals[1:, 1:] = np.cumsum(np.cumsum(found.covariance, axis=0), axis=1)
        own = np.diag(totals)
        variances = own[:, None] + own[None, :] - 2 * totals
        norm = found.columns[0] if noise == "laplace" else np.sqrt(found.columns[1])
        lengths = np.arange(1, 257)
        error = [norm * np.sqrt(np.diagonal(variances, offset=int(length)).mean()) for length in lengths]
        left.plot(lengths, error, label=label)
    left.set(xlabel="bins in the range", ylabel="root mean squared error (ε = √2)", title="All ranges of 256 bins")
    left.legend()
    places = np.arange(4)
    for shift, (name, label) in (
        (-0.2, ("alone", "the whole table alone")),
        (0.2, ("shared", "shared over marginals")),
    ):
        right.bar(places + shift, orders[name], width=0.4, label=label)
    right.set_xticks(places, ["total", "one column", "two columns", "all four"])
    right.set(ylabel="root mean squared error (ε = 1)", title="SEX × RAC1P × EDU × MSP, 27,253 people", yscale="log")
    right.legend()
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / "tables.png", dpi=110)


if __name__ == "__main__":
    run(measure)
