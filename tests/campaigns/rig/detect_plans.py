"""Detectors of errors between a query and its answer.

On correct code a check that samples raises a false alarm with probability below 1e-9 per comparison.
"""

import json
import logging
import os
import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

import duckdb
import numpy as np
from tests.analyses.conftest import EXAMPLES, IN_ADVANCE, settle
from tests.analyses.test_base import BY_CELL, parts
from tests.campaigns import error_oracle
from tests.campaigns.neighbors import DuckDBTarget, Tally, fuzz
from tests.campaigns.rig.hostile_sql import CONTEXTS, EXPRESSIONS, WHOLE
from tests.mechanisms.test_contract import p_value

from hubbub.analyses.base import PreparedAnalysis
from hubbub.analyses.synthetic import model, mwem
from hubbub.audit.grey_box import WATCHED
from hubbub.audit.receipt import check_receipt
from hubbub.audit.replan import plan_again
from hubbub.audit.replay import replay
from hubbub.config import load
from hubbub.core.events import Event, ThresholdEvent, WeightedThresholdEvent, from_facts
from hubbub.core.schema import Bounds, Column, Kind, PrivacyUnit, Table
from hubbub.core.unit import Relation
from hubbub.curator.question import Question
from hubbub.curator.session import Session, open_session
from hubbub.noise.source import system
from hubbub.sql.finish import exact_results, finish
from hubbub.sql.noise import LinearNoise, NoNoise
from hubbub.sql.plan import Plan

ALARM = 1e-9
COLUMNS = (
    Column("patient", Kind.INTEGER),
    Column("region", Kind.TEXT, values=("North", "South", "East")),
    Column("age", Kind.INTEGER, bounds=Bounds(Fraction(0), Fraction(20))),
    Column("x", Kind.REAL, bounds=Bounds(Fraction(-100), Fraction(50))),
    Column("word", Kind.TEXT),
)
TEXTS = (
    "SELECT region, COUNT(*) AS n, SUM(x) AS s, AVG(age) AS a FROM visits GROUP BY region",
    "SELECT SUM(x * 2 + age) AS s, SUM(ABS(x) * 3) AS d FROM visits",
    "SELECT COUNT(DISTINCT word) AS w, SUM(x) AS s, VAR_SAMP(x) AS v FROM visits",
    "SELECT word, COUNT(*) AS n FROM visits GROUP BY word",
    "SELECT region, MEDIAN(age) AS m, MODE(region) AS r, MAX(age) AS x FROM visits GROUP BY region",
    "SELECT region FROM visits GROUP BY region ORDER BY COUNT(*) DESC LIMIT 2",
    "SELECT region, COUNT(*) AS n FROM visits GROUP BY ROLLUP (region)",
)
OF_UNITS = "SELECT region, COUNT(DISTINCT patient) AS n FROM visits GROUP BY region"
#: All analyses that query an engine; a stream or a session is only charged by its call.
REPLAYED = tuple(name for name in EXAMPLES if name not in IN_ADVANCE)
#: Quick analyses, one for each kind of mechanism and composition.
CALLS = ("decision_tree", "kmeans", "moments", "mwem", "tabulate", "spanning_tree")


def tables() -> Iterator[dict[str, Table]]:
    """Yield tables with the same columns, for every unit and relation."""
    for unit in (PrivacyUnit(None), PrivacyUnit("patient", groups=2, rows=2)):
        for relation in Relation:
            yield {"visits": Table("visits", COLUMNS, unit, relation)}


def neighbors() -> list[str]:
    """Random tables and queries: neighbors stay within the stated sensitivity, and the row order changes nothing."""
    rng = random.Random(42)
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE TABLE areas (area VARCHAR, zone VARCHAR)")
        connection.execute("INSERT INTO areas VALUES ('North', 'a'), ('Ça', 'b'), ('🙂', 'a'), (NULL, 'b')")
        ground = DuckDBTarget(connection)
        return _heard(lambda: (found for _ in range(3) for found in fuzz(rng, ground, Tally(), crowd=0)))


def replays() -> list[str]:
    """Every kind of query and analysis on simulated neighbors under both relations."""
    return _heard(_replayed)


def _replayed() -> Iterator[str]:
    for known in tables():
        texts = TEXTS if known["visits"].unit == PrivacyUnit(None) else (*TEXTS, OF_UNITS)
        for text in texts:
            made = plan_again(Question(text, epsilon=1, delta="1e-6"), known, salt="s", hashing="engine")
            yield from _on_neighbors(made, known)
    known = _town_tables()
    for number, name in enumerate(REPLAYED):
        # at small scale every analysis runs under one of the relations, at full scale under both
        relations = tuple(Relation) if os.environ.get("HUBBUB_CAMPAIGN") == "full" else (tuple(Relation)[number % 2],)
        for relation in relations:
            of_town = {title: replace(each, relation=relation) for title, each in known.items()}
            made = plan_again(Question(EXAMPLES[name], epsilon=1, delta="1e-6"), of_town, salt="s", hashing="engine")
            with patch.object(mwem, "PASSES", 2), patch.object(model, "LAST_STEPS", 2):
                yield from _on_neighbors(made, of_town)


def _on_neighbors(made: PreparedAnalysis, known: dict[str, Table]) -> list[str]:
    """Replay one plan; a failure of the engine counts as a complaint."""
    try:
        return replay(made, known, worlds=1, chance=random.Random(5)).problems
    except duckdb.Error as error:
        return [f"the engine fails on made-up rows: {type(error).__name__}"]


def _town_tables() -> dict[str, Table]:
    with TemporaryDirectory(prefix="hubbub-town-") as folder:
        return {name: each.table for name, each in load(settle(Path(folder)) / "hubbub.yaml").datasets.items()}


def receipts() -> list[str]:
    """Check every receipt, and compare it with the declarations and the estimate."""
    return _heard(_received)


def _received() -> Iterator[str]:
    for known in tables():
        table = known["visits"]
        with _clinic(table) as session:
            for text in (*TEXTS, *([] if table.unit == PrivacyUnit(None) else [OF_UNITS])):
                for delta in ("0", "1e-6"):
                    if "word," in text and delta == "0":
                        continue
                    paper = session.query(text, epsilon=1, delta=delta, key=f"{text} {delta}").document()
                    found = check_receipt(paper)
                    yield from found.problems
                    receipt = paper["receipt"]
                    if receipt["relation"] != table.relation.value or Fraction(receipt["charge"]["epsilon"]) > 1:
                        yield f"{text}: the receipt says something else than was declared"


@contextmanager
def _clinic(table: Table) -> Iterator[Session]:
    """Open a session on a small clinic with this unit and relation."""
    unit = "row" if table.unit is None or table.unit.column is None else "{column: patient, groups: 2, rows: 2}"
    with TemporaryDirectory(prefix="hubbub-clinic-") as folder:
        place = Path(folder)
        with duckdb.connect() as made:
            made.execute(
                "COPY (SELECT i % 40 AS patient, ['North', 'South', 'East'][1 + i % 3] AS region, i % 21 AS age,"
                f" i % 150 - 100.0 AS x, 'w' || i % 4 AS word FROM range(300) t(i)) TO '{place}/visits.parquet'"
            )
        (place / "hubbub.yaml").write_text(
            "version: 1\ndatasets:\n  visits:\n    source: visits.parquet\n"
            f"    unit: {unit}\n    relation: {table.relation.value}\n"
            "    columns: {patient: {}, region: {values: [North, South, East]}, age: {bounds: [0, 20]},"
            " x: {bounds: [-100, 50]}, word: {}}\n    budget: {epsilon: 1000, delta: 1e-3}\n"
            "analysts: {ana: {visits: {epsilon: 1000, delta: 1e-3}}}\n"
        )
        with open_session(place / "hubbub.yaml") as session:
            yield session


def draws() -> list[str]:
    """Count the draws: exactly the charged ones."""
    drawn: Counter[Event] = Counter()
    # selections in several groups are drawn together
    kept = {
        (kind, name): getattr(kind, name)
        for kind in WATCHED
        for name in ("sample", "sample_each")
        if hasattr(kind, name)
    }

    def watched(sample: Callable[..., Any]) -> Callable[..., Any]:
        def draw(self: Any, value: Any, source: Any) -> Any:
            drawn[self.event] += 1
            return sample(self, value, source)

        return draw

    try:
        for (kind, name), sample in kept.items():
            setattr(kind, name, watched(sample))
        return _heard(lambda: _drawn(drawn))
    finally:
        for (kind, name), sample in kept.items():
            setattr(kind, name, sample)


def _drawn(drawn: Counter[Event]) -> Iterator[str]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="hubbub-town-")))
        session = stack.enter_context(open_session(settle(folder) / "hubbub.yaml"))
        for name in CALLS:
            drawn.clear()
            release = session.query(EXAMPLES[name], epsilon=1, fresh=True)
            charged = parts(from_facts(json.loads(json.dumps(release.receipt["event"]))))
            same = drawn.keys() == charged.keys() if name in BY_CELL else drawn == charged
            if not same:
                yield f"{name}: draws something else than was charged"
    for known in tables():
        with _clinic(known["visits"]) as session:
            for text in TEXTS[:5]:
                drawn.clear()
                release = session.query(text, epsilon=1, fresh=True)
                charged = parts(from_facts(json.loads(json.dumps(release.receipt["event"]))))
                # a selection is made in every cell, and charged for the cells that one unit reaches
                pairs = (
                    (e.noise if isinstance(e, ThresholdEvent | WeightedThresholdEvent) else e, n)
                    for e, n in charged.items()
                )
                noises: Counter[Event] = Counter(dict(pairs))
                fewer = any(drawn[each] < 1 for each in noises)
                sums = {e: n for e, n in drawn.items() if not hasattr(e, "rate")}
                if fewer or drawn.keys() - noises.keys() or any(n > noises[e] for e, n in sums.items()):
                    yield f"{text}: draws something else than was charged"


def released() -> list[str]:
    """Run one plan many times: the noise in each cell has the charged distribution and is independent."""
    return _heard(_finished)


def _finished(times: int = 800) -> Iterator[str]:
    known = {"visits": Table("visits", COLUMNS, PrivacyUnit(None), Relation.ADD_REMOVE)}
    made = _planned("SELECT region, COUNT(*) AS n FROM visits GROUP BY region", 1, known, None)
    found = {each.name: {"cell": np.array([0, 2]), "m0": np.array([40, 7])} for each in made.statements}
    truth, noise = np.array([40, 0, 7]), made.measures[0].mechanism
    answers = [finish(made, found, system(), raw=True) for _ in range(times)]
    if any(each.values[0].tolist() != ["North", "South", "East"] for each in answers):
        yield "rows are missing or in another order"
        return
    assert not isinstance(noise, NoNoise | LinearNoise)
    added = np.array([each.values[1] - truth for each in answers]).astype(np.int64)
    distribution: Any = {y: float(low + high) / 2 for y, (low, high) in noise.distribution(0).mass.items()}
    for cell in range(3):
        seen: Any = added[:, cell].tolist()
        if not set(seen) <= distribution.keys() or not p_value(seen, distribution) > ALARM:
            yield f"cell {cell}: what is added has not the distribution that was charged"
    alike = float((added[:, 0] == added[:, 2]).mean())
    chance = sum(p * p for p in distribution.values())
    if abs(alike - chance) > 7 * (chance * (1 - chance) / times) ** 0.5:
        yield "two cells share their noise"
    widths = np.array([each.high[1][0] - each.values[1][0] for each in answers])
    if not np.allclose(widths, widths[0], atol=1e-6):
        yield "an interval tells how far the noise was"
    yield from _together(known, times)
    yield from _picked(known, times)
    yield from _slipped(times)


def _together(known: dict[str, Table], times: int) -> Iterator[str]:
    """Check that the noise of two aggregates is independent."""
    made = _planned("SELECT COUNT(*) AS n, SUM(age) AS s FROM visits", 1, known)
    rows = {"cell": np.array([0]), **{f"m{i}": np.array([100]) for i in range(len(made.measures))}}
    found = dict.fromkeys((each.name for each in made.statements), rows)
    answers = np.array([[v[0] for v in finish(made, found, system(), raw=True).values] for _ in range(times)])
    if not abs(np.corrcoef(answers.astype(float).T)[0, 1]) < 8 / times**0.5:
        yield "two aggregates share their noise"


def _planned(text: str, epsilon: int, known: dict[str, Table], delta: str | None = "0") -> Plan:
    made = plan_again(Question(text, epsilon=epsilon, delta=delta), known, salt="s", hashing="engine").plan
    if made is None:
        raise TypeError
    return made


def _picked(known: dict[str, Table], times: int) -> Iterator[str]:
    """Check that a median of two rows has its stated distribution, also on an empty table."""
    made = _planned("SELECT MEDIAN(age) AS m FROM visits", 4, known)
    found = {
        each.name: {"cell": np.array([0, 0]), "bucket": np.array([2, 17]), "m0": np.array([1, 1])}
        for each in made.statements
    }
    chosen = made.choices[0]
    scores = chosen.score.scores(exact_results(made, found)[1][0])[0]
    # the first coin to show heads in random order, by q_i·∫₀¹ ∏_{j≠i} (1 − q_j·u) du; only the candidate is compared
    coins = np.exp(float(chosen.mechanism.rate) * (scores - scores.max()))
    nodes, weights = np.polynomial.legendre.leggauss(1 + len(coins) // 2)
    logs = np.log1p(-np.outer(np.minimum(coins, 1 - 1e-12), (nodes + 1) / 2))
    chances = coins * (np.exp(logs.sum(axis=0) - logs) @ (weights / 2))
    count = made.histograms[0].count
    distribution: Any = dict(enumerate(chances.reshape(-1, count).sum(axis=0).tolist()))
    shown = {value: place for place, value in enumerate(made.histograms[0].shown().tolist())}
    seen: Any = [shown[float(finish(made, found, system(), raw=True).values[0][0])] for _ in range(times)]
    if not p_value(seen, distribution) > ALARM:
        yield "a median is chosen by another distribution than was charged"


def _slipped(times: int) -> Iterator[str]:
    """Check that the group of one unit is released with probability at most δ."""
    known = {"visits": Table("visits", COLUMNS, PrivacyUnit("patient"), Relation.ADD_REMOVE)}
    made = _planned("SELECT word, COUNT(*) AS n FROM visits GROUP BY word", 2, known, delta="0.4")
    found = {
        each.name: {
            "k0": np.array(["alone"], dtype=object),
            **{f"m{i}": np.array([1]) for i in range(len(each.targets))},
        }
        for each in made.statements
    }
    shown = sum(len(finish(made, found, system(), raw=True).values[0]) for _ in range(times))
    most = 0.2  # half of δ is for the keys
    if shown / times > most + 7 * (most * (1 - most) / times) ** 0.5:
        yield "the key of one unit shows more often than δ says"


def oracle() -> list[str]:
    """Hostile queries on two clinics that differ in one patient: only the noisy numbers differ."""
    listener = error_oracle.LogListener()
    root = logging.getLogger()
    level = root.level
    root.addHandler(listener)
    root.setLevel(logging.DEBUG)
    try:
        return _heard(lambda: _told_apart(listener))
    finally:
        root.removeHandler(listener)
        root.setLevel(level)


#: Queries in which casts fail, numbers overflow and keys are few.
SHARP = (
    "SELECT COUNT(*) AS n FROM {t} WHERE TRY_CAST(word AS DATE) IS NOT NULL AND word LIKE '2%'",
    "SELECT SUM(x) AS s, AVG(i) AS a, MAX(i) AS m FROM {t}",
    "SELECT key, COUNT(*) AS n FROM {t} GROUP BY key",
    "SELECT k % 7 AS r, COUNT(*) AS n FROM {t} GROUP BY k % 7",
    "SELECT SUM(1 / x) AS s FROM {t}",
    "SELECT word, COUNT(*) AS n FROM {t} GROUP BY word",
    "SELECT COUNT(*) AS n FROM {t} WHERE 1000 / i > 2",
    "SELECT SUM(CAST(word AS INTEGER)) FROM {t}",
)


def _told_apart(listener: error_oracle.LogListener) -> Iterator[str]:
    rng = random.Random(3)
    hostile = [context.format(t=rng.choice("tc"), e=expression) for context in CONTEXTS for expression in EXPRESSIONS]
    texts = [
        *rng.sample(list(WHOLE), 10),
        *(text.format(t=t) for text in SHARP for t in "tc"),
        *rng.sample(hostile, 20),
    ]
    texts = [text for text in texts if "{" not in text]
    # without the part that is in PostgreSQL
    yaml = error_oracle.YAML.split("  p:\n")[0] + "analysts:\n  eve: {t: {epsilon: 1000000}, c: {epsilon: 1000000}}\n"
    with TemporaryDirectory(prefix="hubbub-oracle-") as folder, ExitStack() as stack:
        sessions = []
        for name, patient in (("with", True), ("without", False)):
            place = Path(folder) / name
            place.mkdir()
            with duckdb.connect() as made:
                error_oracle.fill(made, patient=patient)
                made.execute(f"COPY t TO '{place}/t.parquet'")
                made.execute(f"COPY t TO '{place}/c.csv' (HEADER)")
            (place / "hubbub.yaml").write_text(yaml)
            sessions.append(stack.enter_context(open_session(place / "hubbub.yaml")))
        for number, text in enumerate(texts):
            logged = []
            heard = []
            for session in sessions:
                listener.lines.clear()
                heard.append(error_oracle.ask(session, text, str(number)))
                logged.append(listener.lines[:])
            first, second = heard
            if first != second or logged[0] != logged[1]:
                yield f"told apart: {text}"
            if "crashed" in (first.what, second.what) or "failed" in (first.what, second.what):
                yield f"failed: {text}"
            said = first.words + second.words + " ".join(line for lines in logged for line in lines)
            if any(canary in said for canary in error_oracle.CANARIES if canary not in text):
                yield f"a value was heard: {text}"


def _heard(complaints: Callable[[], Iterator[str]]) -> list[str]:
    """Return the first complaint."""
    return list(islice(complaints(), 1))


CHECKS: dict[str, Callable[[], list[str]]] = {
    "neighbors": neighbors,
    "replay": replays,
    "receipt": receipts,
    "draws": draws,
    "released": released,
    "oracle": oracle,
}
