"""How near synthetic rows are to real ones: pairs of columns of two public datasets, asked for as an analyst would.

HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.accuracy_synthetic
"""

import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray
from tests.campaigns.frame import Report, run

import hubbub
from hubbub.analyses.synthetic.utility import Synthetic, distances, k_marginal

DATA = Path(__file__).parents[2] / "shared" / "data"
EPSILON, DELTA = 1, "1e-9"
#: The ten features, and the age in bins of five years.
FEATURES = ("AGEP", "RAC1P", "MSP", "SEX", "HOUSING_TYPE", "OWN_RENT", "DVET", "DEYE", "EDU", "PINCP_DECILE")
ORDERED = ("age", "fnlwgt", "education_num", "capital_gain", "capital_loss", "hours_per_week")

Codes = NDArray[np.int64]


@dataclass(frozen=True)
class Case:
    """A dataset: its file, what an owner would declare, what is asked for, and rows as codes."""

    name: str
    frame: Any
    declared: dict[str, str]
    columns: list[Any]
    sizes: list[int]
    codes: Callable[[Any], Codes]


def national() -> Case:
    """Take the ten demographic features of the national excerpt."""
    import pandas as pd

    frame = pd.read_csv(DATA / "national2019.csv", dtype=str)[list(FEATURES)]
    values = {name: sorted(frame[name].unique()) for name in FEATURES[1:]}

    def codes(rows: Any) -> Codes:
        others = [np.searchsorted(values[name], rows[name].astype(str)) for name in values]
        return np.stack([rows["AGEP"].astype(int).to_numpy() // 5, *others], axis=1)

    declared = {"AGEP": "{type: integer, bounds: [0, 99]}"}
    declared |= {name: f"{{type: text, values: {json.dumps(list(each))}}}" for name, each in values.items()}
    columns = [{"column": "AGEP", "bins": 20}, *values]
    return Case("national2019", frame, declared, columns, [20, *map(len, values.values())], codes)


def adult() -> Case:
    """Take all fourteen columns of Adult, as they are coded."""
    import pandas as pd

    sizes = json.loads((DATA / "adult-domain.json").read_text())
    names = [name.replace("-", "_").removesuffix(">50K") for name in sizes]
    frame = pd.read_csv(DATA / "adult.csv").set_axis(names, axis=1)
    declared = {
        name: f"{{type: integer, bounds: [0, {size - 1}]}}"
        if name in ORDERED
        else f"{{type: integer, values: {list(range(size))}}}"
        for name, size in zip(names, sizes.values(), strict=True)
    }
    return Case(
        "adult", frame, declared, names, list(sizes.values()), lambda rows: rows[names].to_numpy(dtype=np.int64)
    )


def measure(report: Report) -> None:
    """Measure both datasets, several times each, beside what knows the data but no privacy."""
    for make in (national, adult):
        if not DATA.is_dir():
            report.say(f"{make.__name__}: the data is not here")
            continue
        _measure(report, make())


def _measure(report: Report, case: Case) -> None:
    true = case.codes(case.frame)
    some = np.random.default_rng(1)
    shuffled = np.stack([some.permutation(column) for column in true.T], axis=1)
    again = true[some.integers(0, len(true), len(true))]
    for name, rows in (("independent_product_without_noise", shuffled), ("bootstrap_without_privacy", again)):
        _figures(report, f"{case.name}_{name}", distances(true, rows, case.sizes))
    found, seconds, cpu, said = [], [], [], []
    last = None
    for seed in report.progress(range(report.scale(ci=1, full=3)), case.name):
        started, used = time.perf_counter(), time.process_time()
        last = _asked(case, {})
        seconds.append(time.perf_counter() - started)
        cpu.append(time.process_time() - used)
        found.append(distances(true, case.codes(last.to_pandas()), case.sizes))
        said.append(float(np.mean([each.pairs for each in Synthetic.of(last).utility if each.pairs is not None])))
        report.say(f"{case.name} {seed}: {np.mean(list(found[-1].values())):.4f}, {seconds[-1]:.0f} s")
    if report.full:
        tree = _asked(case, {"pairs": len(case.sizes) - 1, "rounds": 1})
        _figures(report, f"{case.name}_tree_only", distances(true, case.codes(tree.to_pandas()), case.sizes))
    exact = [float(np.mean(list(each.values()))) for each in found]
    report.figure(f"{case.name}_tvd_each", [round(each, 5) for each in exact])
    report.figure(f"{case.name}_tvd_as_the_private_report_says", [round(each, 5) for each in said])
    report.figure(f"{case.name}_cpu_seconds", [round(each, 1) for each in cpu])
    report.target(f"{case.name}_seconds", max(seconds), at_most=600)
    if case.name == "adult":
        report.target("adult_mean_tvd", float(np.mean(exact)), at_most=0.060)
    else:
        report.target("national2019_k_marginal", float(np.mean([k_marginal(each) for each in found])), at_least=970)
    if (folder := os.environ.get("HUBBUB_PLOTS")) and last is not None and case.name == "adult":
        Synthetic.of(last).plot().savefig(Path(folder) / "synthetic.png", dpi=90)


def _figures(report: Report, name: str, distance: dict[tuple[int, int], float]) -> None:
    report.figure(f"{name}_tvd", round(float(np.mean(list(distance.values()))), 5))
    report.figure(f"{name}_k_marginal", round(k_marginal(distance), 1))


def _asked(case: Case, how: dict[str, Any]) -> hubbub.Release:
    """Ask through a curator of its own: the same question again would be answered from its ledger."""
    with TemporaryDirectory() as folder:
        place = Path(folder)
        case.frame.to_csv(place / "rows.csv", index=False)
        columns = "".join(f"      {name}: {each}\n" for name, each in case.declared.items())
        budget = f"{{epsilon: {EPSILON}, delta: {DELTA}}}"
        (place / "hubbub.yaml").write_text(
            f"version: 1\ndatasets:\n  rows:\n    source: rows.csv\n    unit: row\n    columns:\n{columns}"
            f"    budget: {budget}\nanalysts:\n  ana: {{rows: {budget}}}\n"
        )
        with hubbub.open(place / "hubbub.yaml", analyst="ana") as h:
            return h.synthetic("rows", case.columns, epsilon=EPSILON, delta=DELTA, **how)


if __name__ == "__main__":
    run(measure)
