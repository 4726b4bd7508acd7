"""Neighboring datasets for queries through the public API, and these queries.

Every table has a unit with values at its bounds, in the maximum number of groups, with more rows than the bounds allow.
It exists on one side only (add/remove), or is another one on the other side (replace), so sums change by their
sensitivity.
"""

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from tests.analyses.conftest import EXAMPLES
from tests.analyses.conftest import YAML as TOWN
from tests.campaigns.rig.draws import NO_LOSS, PairLoss, TapedDraw, charged_loss, difference, pair_loss, tape_draws
from tests.campaigns.rig.seeded_source import SeededSource

import hubbub
from hubbub.accounting.cost import PrivacyCost, privacy_cost
from hubbub.answers.options import Options
from hubbub.answers.release import Release
from hubbub.core.events import Event, from_facts
from hubbub.curator.session import Session

RELATIONS = ("add_remove", "replace")

_YAML = """
version: 1
datasets:
  people:
    source: people.csv
    unit: row
    relation: RELATION
    columns: &columns
      k: {values: [a, b, c]}
      b: {type: boolean}
      x: {type: real, bounds: [-4, 4], step: 0.5}
      y: {type: integer, bounds: [0, 6]}
      w: {type: text}
    budget: {epsilon: 1000000, delta: 0.4}
  visits:
    source: visits.csv
    unit: {column: u, groups: 2, rows: 2}
    relation: RELATION
    columns: {u: {type: integer}, <<: *columns}
    budget: {epsilon: 1000000, delta: 0.4}
  wide:
    source: wide.csv
    unit: {column: u, groups: 16, rows: 1}
    relation: RELATION
    columns: {u: {type: integer}, k: {type: integer, values: [0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]},
      x: {type: real, bounds: [-4, 4], step: 0.5}, y: {type: integer, bounds: [0, 6]}}
    budget: {epsilon: 1000000, delta: 0.4}
analysts:
  ana: {people: {epsilon: 1000000, delta: 0.4}, visits: {epsilon: 1000000, delta: 0.4},
    wide: {epsilon: 1000000, delta: 0.4}}
"""

#: One query for each aggregate, kind of group and kind of noise; {t} is the table.
ASKED = (
    "SELECT count(*) FROM {t}",
    "SELECT count(*) FROM {t} WHERE b",
    "SELECT count(x) FROM {t} WHERE y > 3",
    "SELECT count(*) FILTER (WHERE b) FROM {t}",
    "SELECT count(DISTINCT y) FROM {t} WHERE b",
    "SELECT count(DISTINCT k) FROM {t}",
    "SELECT sum(x) FROM {t}",
    "SELECT sum(y) FROM {t} WHERE b",
    "SELECT sum(x) FILTER (WHERE b), count(*) FROM {t}",
    "SELECT avg(x) FROM {t}",
    "SELECT avg(y) FROM {t} WHERE b",
    "SELECT var_pop(x) FROM {t}",
    "SELECT var_samp(y) FROM {t} WHERE b",
    "SELECT stddev_pop(x) FROM {t}",
    "SELECT stddev_samp(y) FROM {t}",
    "SELECT covar_pop(x, y) FROM {t}",
    "SELECT covar_samp(x, y) FROM {t} WHERE b",
    "SELECT corr(x, y) FROM {t}",
    "SELECT regr_slope(x, y) FROM {t}",
    "SELECT regr_intercept(y, x) FROM {t}",
    "SELECT regr_r2(y, x) FROM {t}",
    "SELECT median(y) FROM {t}",
    "SELECT quantile_cont(y, 0.9) FROM {t}",
    "SELECT min(y) FROM {t}",
    "SELECT max(y) FROM {t}",
    "SELECT mode(k) FROM {t}",
    "SELECT k, count(*) FROM {t} GROUP BY k",
    "SELECT b, sum(x) FROM {t} GROUP BY b",
    "SELECT k, avg(x) FROM {t} GROUP BY k",
    "SELECT k, b, count(*) FROM {t} GROUP BY ROLLUP (k, b)",
    "SELECT sum(x) / (1 + count(*)) FROM {t}",
    "SELECT k FROM {t} GROUP BY k ORDER BY count(*) DESC LIMIT 1",
)
#: Counts of units, many cells (Gaussian noise), and discovered groups.
UNITS = ("SELECT count(DISTINCT u) FROM visits", "SELECT k, count(DISTINCT u) FROM visits GROUP BY k")
WIDE = (
    "SELECT k, count(*) FROM wide GROUP BY k",
    "SELECT k, sum(x) FROM wide GROUP BY k",
    "SELECT k, avg(y) FROM wide GROUP BY k",
    "SELECT k, count(*), sum(x), sum(y) FROM wide GROUP BY k",
    "SELECT k, var_pop(x) FROM wide GROUP BY k",
    "SELECT k, count(DISTINCT u) FROM wide GROUP BY k",
    "SELECT k, median(y) FROM wide GROUP BY k",
)
FOUND = (
    "SELECT w, count(*) FROM {t} GROUP BY w",
    "SELECT w, k, sum(x) FROM {t} GROUP BY w, k",
    "SELECT w, avg(y), count(*) FROM {t} GROUP BY w",
)


@dataclass(frozen=True)
class CampaignQuery:
    """A query on a pair of neighbors."""

    town: str
    relation: str
    text: str
    options: Options

    @property
    def name(self) -> str:
        said = ", ".join(f"{name}={value}" for name, value in self.options.items())
        return f"{self.relation}: {self.text} ({said})"


def campaign_queries(*, dear: bool) -> Iterator[CampaignQuery]:
    """Yield all queries; without `dear`, each once at an ε where few samples suffice."""
    for relation in RELATIONS:
        yield from (each for each in _in_sql(relation) if dear or each.options.get("epsilon") != _CHEAP)
        # a stream samples after its call; synthetic rows take seconds
        calls = [call for name, call in EXAMPLES.items() if name not in ("stream", *(() if dear else ("synthetic",)))]
        for call in calls:
            yield CampaignQuery("town", relation, call, {"epsilon": 3})
            if dear:
                yield CampaignQuery("town", relation, call, {"epsilon": 1, "delta": 0})
    if not dear:
        yield CampaignQuery("town", "add_remove", EXAMPLES["synthetic"], {"epsilon": 3})


_CHEAP = Fraction(1, 2)


def _in_sql(relation: str) -> Iterator[CampaignQuery]:
    for table in ("people", "visits"):
        for text in ASKED:
            yield CampaignQuery("pure", relation, text.format(t=table), {"epsilon": 3})
            yield CampaignQuery(
                "small", relation, text.format(t=table), {"epsilon": _CHEAP, "delta": Fraction(1, 10**5)}
            )
        for text in FOUND:
            yield CampaignQuery("small", relation, text.format(t=table), {"epsilon": 2, "delta": Fraction(1, 10**4)})
    for text in UNITS:
        yield CampaignQuery("pure", relation, text, {"epsilon": 3})
        yield CampaignQuery("pure", relation, text, {"epsilon": 1, "groups": 1, "rows": 1})
    for text in WIDE:
        yield CampaignQuery("small", relation, text, {"epsilon": 3, "delta": Fraction(1, 10**5)})
        yield CampaignQuery("small", relation, text, {"epsilon": _CHEAP, "delta": Fraction(1, 10**5)})


@dataclass(frozen=True)
class Pair:
    """The runs of one query on two neighboring datasets: the draws, the stated cost, and the loss of this pair."""

    question: CampaignQuery
    draws: tuple[tuple[TapedDraw, TapedDraw], ...]
    event: Event
    promise: PrivacyCost
    loss: PairLoss
    releases: tuple[Release, Release]

    @property
    def moved(self) -> int:
        """The number of coordinates that changed."""
        return sum(int(np.count_nonzero(difference(one, other))) for one, other in self.draws)

    @property
    def worst(self) -> bool:
        """Whether the loss of this pair attains the charge, in closed form."""
        charge = charged_loss(self.event)
        if charge.pure is not None and self.loss.pure is not None:
            return self.loss.pure >= Fraction(99, 100) * charge.pure
        return self.loss.rho >= Fraction(99, 100) * charge.rho


class NeighboringSessions:
    """Pairs of sessions on neighboring data, opened on first use."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._open: dict[tuple[str, str], tuple[Session, Session]] = {}

    def sessions(self, town: str, relation: str) -> tuple[Session, Session]:
        """Return the two sessions."""
        if (town, relation) not in self._open:
            made = []
            for side in (0, 1):
                folder = self._folder / f"{town}-{relation}-{side}"
                folder.mkdir()
                (_town if town == "town" else _small)(folder, relation, side)
                if town == "pure":  # computing the remaining budget with a δ would take most of the time
                    text = (folder / "hubbub.yaml").read_text()
                    (folder / "hubbub.yaml").write_text(text.replace(", delta: 0.4", ""))
                session = self._stack.enter_context(hubbub.open(folder / "hubbub.yaml", analyst="ana"))
                session._curator._salt = "the same on both"  # the salt belongs to the ledger, not to the data
                made.append(session)
            self._open[town, relation] = made[0], made[1]
        return self._open[town, relation]

    def ask(self, question: CampaignQuery, *, key: str = "audit", seed: int = 1) -> Pair:
        """Query both neighbors through the public path, with the outcomes of the first dictated to the second."""
        tapes: list[list[TapedDraw]] = []
        releases = []
        for session in self.sessions(question.town, question.relation):
            source = SeededSource(seed)
            session._curator._draws.sources = lambda _, source=source: source  # type: ignore[misc]
            with tape_draws(source, tapes[0] if tapes else None) as tape:
                releases.append(
                    session.query(
                        question.text, key=f"{key} {sha256(question.name.encode()).hexdigest()}", **question.options
                    )
                )
            tapes.append(tape)
        event = from_facts(dict(releases[0].receipt["event"]))
        draws = tuple(zip(*tapes, strict=True))
        total = NO_LOSS
        for one, other in draws:
            total += pair_loss(one, other)
        return Pair(question, draws, event, privacy_cost(event), total, (releases[0], releases[1]))

    def close(self) -> None:
        """Close all sessions."""
        self._stack.close()


@contextmanager
def neighboring_sessions() -> Iterator[NeighboringSessions]:
    """Create data, ledgers and sessions in a temporary folder, in memory if possible."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(prefix="hubbub-audit-", dir=memory if memory.is_dir() else None) as folder:
        made = NeighboringSessions(Path(folder))
        try:
            yield made
        finally:
            made.close()


def _rows(folder: Path, name: str, header: str, rows: Sequence[Sequence[Any]]) -> None:
    (folder / name).write_text("\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n")


def _small(folder: Path, relation: str, side: int) -> None:
    some = np.random.default_rng(5)
    (folder / "hubbub.yaml").write_text(_YAML.replace("RELATION", relation))

    def row() -> list[Any]:
        return [
            some.choice(list("abc")),
            some.choice(["true", "false"]),
            some.integers(-8, 9) / 2,
            some.integers(0, 7),
            some.choice(["red", "green", "blue"]),
        ]

    people = [row() for _ in range(60)]
    visits = [[u, *row()] for u in range(40) for _ in range(some.integers(1, 4))]
    wide = [[u, k, some.integers(-8, 9) / 2, some.integers(0, 7)] for u in range(20) for k in range(16)]
    there: list[list[Any]] = [["a", "true", 4, 6, "odd"]]
    gone: list[list[Any]] = [["b", "false", -4, 0, "even"]]
    own = {0: gone if relation == "replace" else [], 1: there}[side]
    _rows(folder, "people.csv", "k,b,x,y,w", people + own)
    many = [[1000, *each] for each in own for _ in range(5)]
    many += [[1000, "c" if each[0] == "a" else "b", *each[1:]] for each in own for _ in range(5)]
    _rows(folder, "visits.csv", "u,k,b,x,y,w", visits + many)
    spread = [[1000, k, each[2], each[3]] for each in own for k in range(16) for _ in range(3)]
    _rows(folder, "wide.csv", "u,k,x,y", wide + spread)


def _town(folder: Path, relation: str, side: int) -> None:
    """Write a smaller copy of the data of the analyses, with an extra person, patient and edge on one side."""
    some = np.random.default_rng(7)
    text = TOWN.replace("epsilon: 100,", "epsilon: 1000000,").replace("delta: 1e-5", "delta: 1e-4")
    (folder / "hubbub.yaml").write_text(text.replace("    columns:", f"    relation: {relation}\n    columns:"))
    regions, towns_ = ["North", "South", "East", "West"], ["N1", "N2", "S1", "S2"]
    people = []
    for _ in range(120):
        x, y = np.clip(some.normal(some.choice([-0.5, 0.5]), 0.2, 2), -1, 1).round(4)
        people.append(
            [
                x,
                y,
                some.integers(0, 100) / 10,
                some.integers(0, 100),
                "yes" if x + y > 0 else "no",
                some.choice(regions),
                some.choice(towns_),
            ]
        )
    visits = [
        [some.integers(0, 40), some.integers(-10, 11) / 10, some.choice(regions), some.choice(list("abcd"))]
        for _ in range(120)
    ]
    edges = [
        list(pair)
        for pair in sorted({(min(a, b), max(a, b)) for a, b in some.integers(0, 12, (40, 2)).tolist() if a != b})
    ]
    edges = [[*pair, some.integers(0, 11) / 10] for pair in edges if pair != [0, 1]]
    there = side == 1
    if there:
        people.append([1, 1, 10, 99, "no", "North", "N1"])
        visits += [[149, 1, region, item] for region in regions for item in "abcd"]
        edges.append([0, 1, 1])
    elif relation == "replace":
        people.append([-1, -1, 0, 0, "yes", "West", "S2"])
        visits += [[149, -1, "South", "b"]] * 9
        edges.append([12, 13, 0])
    _rows(folder, "people.csv", "x,y,z,age,sick,region,town", people)
    _rows(folder, "visits.csv", "patient,x,region,item", visits)
    _rows(folder, "edges.csv", "a,b,weight", edges)
