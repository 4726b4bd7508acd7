"""An audit of the whole product on made-up data, in bounded time: what a nightly job runs and signs.

The tables have the schema of hubbub.yaml and rows that nobody has; queries are made from the declared columns. Nothing
private is read, and nothing is charged: whatever has to be charged is charged to a ledger that is thrown away.
"""
# ruff: noqa: S608 - questions are made of quoted names alone

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hubbub.accounting.filters import Budget
from hubbub.accounting.ledger import examine
from hubbub.accounting.policy import Cap, Policy
from hubbub.audit.randomness import repeats
from hubbub.audit.receipt import check
from hubbub.audit.replan import planned
from hubbub.audit.replay import replay
from hubbub.audit.simulated_rows import MadeUp
from hubbub.config import Config
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.curator.opening import anchor_of, open_curator, store_of, tables_of
from hubbub.curator.question import Question
from hubbub.curator.session import Session
from hubbub.engines.base import Place, identifier
from hubbub.errors import BudgetError, HubbubError, LedgerError
from hubbub.mechanisms.enumeration import keeps
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.noise.source import system

#: A comparison of samples with a law alarms by mistake this often.
ALARM = 1e-12
_DRAWS = 20_000
_PRICE = "0.25"


@dataclass
class Part:
    """One part of the audit: what was looked at, how often, and what does not hold."""

    name: str
    what: str
    cases: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


#: Looks at something once: gives None, or what is wrong.
Look = Callable[[random.Random], str | None]


def audit(config: Config, *, seconds: float, say: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """Audit for so long at most (each look is short, and every part looks once at least); give the facts to sign."""
    began, chance = time.monotonic(), random.SystemRandom()
    parts = []
    with TemporaryDirectory(prefix="hubbub-audit-") as folder:
        plans = _parts(config, Path(folder))
        for place, (name, what, look) in enumerate(plans):
            say(f"{name}: {what}")
            left = seconds - (time.monotonic() - began)
            parts.append(_looked(name, what, look, chance, left / (len(plans) - place)))
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "declarations": config.hash,
        "policy": config.policy.hash.hex(),
        "seconds": round(time.monotonic() - began, 1),
        "sound": not any(part.problems for part in parts),
        "parts": [
            {"name": p.name, "what": p.what, "cases": p.cases, "seconds": round(p.seconds, 1), "problems": p.problems}
            for p in parts
        ],
    }


def _looked(name: str, what: str, look: Look, chance: random.Random, seconds: float) -> Part:
    part, began = Part(name, what), time.monotonic()
    while not part.cases or (time.monotonic() - began < seconds and not part.problems):
        try:
            problem = look(chance)
        except StopIteration:
            break
        except Exception as error:  # noqa: BLE001 - an audit that breaks has found something
            problem = f"breaks: {type(error).__name__}"
        part.cases += 1
        if problem is not None:
            part.problems.append(problem)
    part.seconds = time.monotonic() - began
    return part


def _parts(config: Config, folder: Path) -> list[tuple[str, str, Look]]:
    tables = tables_of(config)
    texts = list(questions(tables))
    return [
        ("ledger", "the ledger of this installation verifies against its anchor", _once(lambda _: _ledger(config))),
        ("randomness", "no word comes twice: in a stream, in threads, after a fork", lambda _: repeats()),
        ("laws", "mechanisms lose no more than they state, by exact enumeration", _laws),
        ("samplers", "draws have the laws that are stated", _samplers),
        ("neighbors", "plans cover made-up neighbors of the declared tables", _neighbors(config, tables, texts)),
        ("path", "questions over made-up rows: receipts, replies from the ledger, a cap", _path(config, folder, texts)),
    ]


def _once(look: Look) -> Look:
    done: list[bool] = []

    def first(chance: random.Random) -> str | None:
        if done:
            raise StopIteration
        done.append(True)
        return look(chance)

    return first


def questions(tables: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """Make questions of every kind that the declared columns allow: (table, SQL)."""
    for table in tables.values():
        if table.unit is None:
            continue
        name = identifier(table.name)
        shown = [column for column in table.columns if not column.hidden and column.name != table.unit.column]
        numbers = [identifier(c.name) for c in shown if c.kind.numeric and c.bounds is not None][:2]
        keys = [identifier(c.name) for c in shown if c.values and len(c.values) <= 1000][:2]
        yield table.name, f"SELECT COUNT(*) AS n FROM {name}"
        for number in numbers:
            yield table.name, f"SELECT SUM({number}) AS s, AVG({number}) AS a, MEDIAN({number}) AS m FROM {name}"
        for key in keys:
            yield table.name, f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}"
            yield table.name, f"SELECT {key} FROM {name} GROUP BY {key} ORDER BY COUNT(*) DESC LIMIT 1"
            for number in numbers[:1]:
                yield table.name, f"SELECT {key}, SUM({number} * 2) AS s, MAX({number}) AS x FROM {name} GROUP BY {key}"
        if table.unit.column is not None:
            yield table.name, f"SELECT COUNT(DISTINCT {identifier(table.unit.column)}) AS n FROM {name}"
        for column in [c for c in shown if c.values is None and c.bounds is None][:1]:
            yield table.name, f"SELECT COUNT(DISTINCT {identifier(column.name)}) AS n FROM {name}"


def _ledger(config: Config) -> str | None:
    try:
        store = store_of(config, read_only=True)
    except LedgerError:
        return None  # nothing was ever charged here
    try:
        found = examine(store, anchor_of(config))
    finally:
        store.close()
    return None if found.sound else "the ledger does not verify: hubbub verify ledger says where"


def _laws(chance: random.Random) -> str | None:
    """Take a mechanism at random, and neighbors as far apart as they may be."""
    epsilon, moved = Fraction(chance.randint(5, 40), 10), chance.randint(1, 4)
    kind = chance.choice(("laplace", "gaussian", "exponential", "threshold"))
    relation = chance.choice(list(Relation))
    if kind == "laplace":
        noise = Laplace.from_epsilon(sensitivity=moved, epsilon=epsilon)
        sound = (
            keeps(noise.loss, noise.law(0, (-30, 30)), noise.law(moved, (-30, 30))) and noise.loss.epsilon <= epsilon
        )
    elif kind == "gaussian":
        wide = Gaussian.from_rho(sensitivity_squared=moved**2, rho=epsilon)
        sound = keeps(wide.loss, wide.law(0, (-20, 20)), wide.law(moved, (-20, 20))) and wide.loss.rho <= epsilon
    elif kind == "exponential":
        scores = [chance.randint(0, 9) for _ in range(5)]
        other = [score + chance.choice((-moved, 0, moved)) for score in scores]
        pick = Exponential.from_epsilon(
            candidates=5, sensitivity=moved, monotone=False, relation=relation, epsilon=epsilon
        )
        sound = keeps(pick.loss, pick.law(scores), pick.law(other)) and pick.loss.epsilon <= epsilon
    else:
        rule = PartitionSelection.from_epsilon(
            keys=2, contribution=1, relation=relation, epsilon=epsilon, delta="0.001"
        )
        most = rule.threshold + 8
        # the group of one unit that is there, and is not
        sound = keeps(rule.loss, rule.law((5, 0), most), rule.law((5, 1), most)) and rule.delta <= Fraction(1, 1000)
    return None if sound else f"{kind} at {float(epsilon)} loses more than it states"


def _samplers(chance: random.Random) -> str | None:
    """Compare the share of draws at or below a few values with the law (Hoeffding's bound)."""
    scale = Fraction(chance.randint(2, 300), 10)
    kind = chance.choice(("laplace", "gaussian"))
    noise = (
        Laplace(sensitivity=1, scale=scale) if kind == "laplace" else Gaussian(sensitivity_squared=1, variance=scale)
    )
    drawn = noise.sample(np.zeros(_DRAWS, dtype=np.int64), system())
    slack = (np.log(2 / ALARM) / (2 * _DRAWS)) ** 0.5
    for at in (-int(scale) - 1, -1, 0, int(scale)):
        stated = 1 - float(noise.noise.tail(at + 1).high)
        if abs(float((drawn <= at).mean()) - stated) > slack:
            return f"{kind} noise of {float(scale)} is not drawn by its law"
    return None


def _neighbors(config: Config, tables: Mapping[str, Table], texts: list[tuple[str, str]]) -> Look:
    def look(chance: random.Random) -> str | None:
        _, text = chance.choice(texts)
        asked = Question(text, epsilon=1, delta=chance.choice(("0", "1e-6")))
        try:
            plan = planned(asked, tables, salt=str(chance.random()), hashing=config.hashing)
        except HubbubError:
            return None  # what cannot be asked is no risk
        found = replay(plan, tables, worlds=1, chance=chance)
        return f"{text}: {found.problems[0]}" if found.problems else None

    return look


def _path(config: Config, folder: Path, texts: list[tuple[str, str]]) -> Look:
    """Ask through a curator of its own, over made-up rows, with a ledger that is thrown away."""
    made = _copied(config, folder)

    def look(chance: random.Random) -> str | None:
        name, text = chance.choice(texts)
        curator = open_curator(made)
        session = Session(curator, "auditor")
        try:
            key = str(chance.random())
            try:
                first = session.query(text, epsilon=_PRICE, key=key)
            except BudgetError:
                return _spent(session, name)
            except HubbubError as refusal:
                return None if refusal.code.startswith("HB5") else f"{text}: {refusal.code}"
            found = check(first.document())
            if not found.sound:
                return f"{text}: {found.problems[0]}"
            if session.query(text, epsilon=_PRICE, key=key).document() != first.document():
                return f"{text}: the same key gave another answer"
            return None if curator.ledger.verify().sound else "a ledger does not verify after a question"
        finally:
            session.close()

    return look


def _spent(session: Session, name: str) -> str | None:
    """Where a cap refuses: it is spent to less than one more price."""
    overview = next(each for each in session.budget() if each.dataset == name)
    return None if overview.largest < Fraction(_PRICE) else "a cap refuses what it has room for"


def _copied(config: Config, folder: Path) -> Config:
    """Give the same declarations over made-up rows, with a ledger in the folder and one analyst."""
    datasets = {}
    private = {name: each.table for name, each in config.datasets.items() if not each.table.public}
    with MadeUp(private.values(), units=40, chance=random.SystemRandom()) as made:
        for name, table in private.items():
            path = folder / f"{sha256(name.encode()).hexdigest()[:16]}.parquet"
            made.write(table, path)
            datasets[name] = replace(config.datasets[name], place=Place("parquet", path), version=None)
    public = {name: each for name, each in config.datasets.items() if each.table.public}
    budget = Budget(Fraction(2), Fraction(1, 10**6))
    policy = Policy(
        {name: (Cap("dataset", name, name, budget),) for name in private},
        {"auditor": {name: Cap("analyst", "auditor", name, budget) for name in private}},
        {},
    )
    return replace(
        config,
        path=folder / "hubbub.yaml",
        datasets=datasets | public,
        policy=policy,
        places=replace(config.places, database=None, anchor="anchor/ledger.anchor"),
    )
