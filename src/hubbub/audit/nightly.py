"""Audit hubbub itself on simulated data within a time limit: the nightly job of `hubbub audit self`.

The tables have the schema of hubbub.yaml and simulated rows; the queries use the declared columns. The audit reads no
private data and charges only a temporary ledger.
"""
# ruff: noqa: S608 - queries contain quoted names only

import random
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from hubbub.accounting.cost import privacy_cost
from hubbub.accounting.filters import Budget
from hubbub.accounting.ledger import examine
from hubbub.accounting.policy import Cap, Policy
from hubbub.audit import black_box
from hubbub.audit.randomness import check_keystream
from hubbub.audit.receipt import check_receipt
from hubbub.audit.replan import plan_again
from hubbub.audit.replay import replay
from hubbub.audit.simulated_rows import SimulatedData
from hubbub.config import Config
from hubbub.core.events import stored_name
from hubbub.core.schema import Table
from hubbub.core.unit import Relation
from hubbub.curator.opening import anchor_of, open_curator, store_of, tables_of
from hubbub.curator.question import Question
from hubbub.curator.session import Session
from hubbub.engines.base import DataSource, identifier
from hubbub.errors import BudgetError, HubbubError, LedgerError
from hubbub.mechanisms.enumeration import satisfies
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.noise.source import system

#: Probability that comparing samples with their distribution raises a false alarm.
ALARM = 1e-12
_DRAWS = 20_000
_EPSILON = "0.25"


@dataclass
class AuditPart:
    """One part of the audit: its claim, the number of cases tried, and the problems."""

    name: str
    what: str
    cases: int = 0
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)


#: Receives the share of the time that is used, and the part that runs now.
Progress = Callable[[float, str], None]
#: Tries one case: returns None, or the problem.
Check = Callable[[random.Random], str | None]


def audit(config: Config, *, seconds: float, say: Progress = lambda *_: None) -> dict[str, Any]:
    """Audit for at most about this long, with at least one case per part; return the facts to sign."""
    began, chance = time.monotonic(), random.SystemRandom()
    parts = []
    with TemporaryDirectory(prefix="hubbub-audit-") as folder:
        checks = _parts(config, Path(folder))
        for number, (name, claim, check) in enumerate(checks):
            left = seconds - (time.monotonic() - began)
            share = partial(_share, said=f"{name}: {claim}", number=number, parts=len(checks), say=say)
            parts.append(_run_part(name, claim, check, chance, left / (len(checks) - number), share))
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


def _share(done: float, *, said: str, number: int, parts: int, say: Progress) -> None:
    say((number + min(1.0, done)) / parts, said)


def _run_part(
    name: str, claim: str, check: Check, chance: random.Random, seconds: float, share: Callable[[float], None]
) -> AuditPart:
    part, began = AuditPart(name, claim), time.monotonic()
    while not part.cases or (time.monotonic() - began < seconds and not part.problems):
        share((time.monotonic() - began) / seconds if seconds > 0 else 1.0)
        try:
            problem = check(chance)
        except StopIteration:
            break
        except Exception as error:  # noqa: BLE001 - an audit that crashes has found a problem
            problem = f"The check crashed: {type(error).__name__}."
        part.cases += 1
        if problem is not None:
            part.problems.append(problem)
    part.seconds = time.monotonic() - began
    return part


def _parts(config: Config, folder: Path) -> list[tuple[str, str, Check]]:
    tables = tables_of(config)
    texts = list(sample_queries(tables))
    return [
        ("ledger", "the ledger of this installation verifies against its anchor", _once(lambda _: _ledger(config))),
        (
            "randomness",
            "random words do not repeat: within a stream, across threads, after a fork",
            lambda _: check_keystream(),
        ),
        ("mechanisms", "mechanisms lose no more than they state, by exact enumeration", _mechanisms),
        ("samplers", "samples follow their stated distributions", _samplers),
        ("outputs", "outputs on neighbors do not refute the stated loss, judged from outside", _outputs),
        ("neighbors", "plans cover simulated neighbors of the declared tables", _neighbors(config, tables, texts)),
        (
            "path",
            "queries on simulated rows: receipts, replays from the ledger, a budget cap",
            _path(config, folder, texts),
        ),
    ]


def _once(check: Check) -> Check:
    """Let a check run only once."""
    done: list[bool] = []

    def first(chance: random.Random) -> str | None:
        if done:
            raise StopIteration
        done.append(True)
        return check(chance)

    return first


def sample_queries(tables: Mapping[str, Table]) -> Iterator[tuple[str, str]]:
    """Yield (table, SQL) for every kind of query that the declared columns allow."""
    for table in tables.values():
        if table.unit is None:
            continue
        name = identifier(table.name)
        owners = {unit.column for unit in table.owners}
        shown = [column for column in table.columns if not column.hidden and column.name not in owners]
        numbers = [identifier(c.name) for c in shown if c.kind.numeric and c.bounds is not None][:2]
        keys = [identifier(c.name) for c in shown if c.values and len(c.values) <= 1000][:2]
        yield table.name, f"SELECT COUNT(*) AS n FROM {name}"
        if table.others:
            yield from ((table.name, f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}") for key in keys)
            continue
        for number in numbers:
            yield table.name, f"SELECT SUM({number}) AS s, AVG({number}) AS a, MEDIAN({number}) AS m FROM {name}"
        for key in keys:
            yield table.name, f"SELECT {key}, COUNT(*) AS n FROM {name} GROUP BY {key}"
            yield table.name, f"SELECT {key} FROM {name} GROUP BY {key} ORDER BY COUNT(*) DESC LIMIT 1"
            for number in numbers[:1]:
                yield table.name, f"SELECT {key}, SUM({number} * 2) AS s, MAX({number}) AS x FROM {name} GROUP BY {key}"
        if table.privacy_id is not None:
            yield table.name, f"SELECT COUNT(DISTINCT {identifier(table.privacy_id)}) AS n FROM {name}"
        for column in [c for c in shown if c.values is None and c.bounds is None][:1]:
            yield table.name, f"SELECT COUNT(DISTINCT {identifier(column.name)}) AS n FROM {name}"


def _ledger(config: Config) -> str | None:
    try:
        store = store_of(config, read_only=True)
    except LedgerError:
        return None  # there is no ledger yet
    try:
        verification = examine(store, anchor_of(config))
    finally:
        store.close()
    return None if verification.sound else "The ledger does not verify. Run: hubbub verify ledger"


def _mechanisms(chance: random.Random) -> str | None:
    """Enumerate a random mechanism on neighbors at its sensitivity."""
    epsilon, moved = Fraction(chance.randint(5, 40), 10), chance.randint(1, 4)
    kind = chance.choice(("laplace", "gaussian", "exponential", "threshold"))
    relation = chance.choice(list(Relation))
    if kind == "laplace":
        noise = Laplace.from_epsilon(sensitivity=moved, epsilon=epsilon)
        sound = (
            satisfies(noise.loss, noise.distribution(0, (-30, 30)), noise.distribution(moved, (-30, 30)))
            and noise.loss.epsilon <= epsilon
        )
    elif kind == "gaussian":
        wide = Gaussian.from_rho(sensitivity_squared=moved**2, rho=epsilon)
        sound = (
            satisfies(wide.loss, wide.distribution(0, (-20, 20)), wide.distribution(moved, (-20, 20)))
            and wide.loss.rho <= epsilon
        )
    elif kind == "exponential":
        scores = [chance.randint(0, 9) for _ in range(5)]
        other = [score + chance.choice((-moved, 0, moved)) for score in scores]
        pick = Exponential.from_epsilon(
            candidates=5, sensitivity=moved, monotone=False, relation=relation, epsilon=epsilon
        )
        sound = (
            satisfies(pick.loss, pick.distribution(scores), pick.distribution(other)) and pick.loss.epsilon <= epsilon
        )
    else:
        rule = PartitionSelection.from_epsilon(
            keys=2, contribution=1, relation=relation, epsilon=epsilon, delta="0.001"
        )
        most = rule.threshold + 8
        # the group of a single unit that is added or removed
        sound = satisfies(
            rule.loss, rule.distribution((5, 0), most), rule.distribution((5, 1), most)
        ) and rule.delta <= Fraction(1, 1000)
    return None if sound else f"The {kind} mechanism at {float(epsilon)} loses more than it states."


def _samplers(chance: random.Random) -> str | None:
    """Compare the share of samples at or below a few values with the distribution (Hoeffding's bound)."""
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
            return f"Samples of {kind} noise of scale {float(scale)} do not follow their distribution."
    return None


def _outputs(chance: random.Random) -> str | None:
    """Test the loss of a mechanism from its outputs on two neighbors alone; see `black_box`."""
    epsilon, moved = Fraction(chance.randint(5, 20), 10), chance.randint(1, 4)
    noise: Laplace | Gaussian = (
        Laplace.from_epsilon(sensitivity=moved, epsilon=epsilon)
        if chance.random() < 0.5
        else Gaussian.from_rho(sensitivity_squared=moved**2, rho=epsilon)
    )
    one, other = (noise.sample(np.full(_DRAWS, value, dtype=np.int64), system()) for value in (0, moved))
    result = black_box.audit(
        one, other, promise=privacy_cost(noise.event), alarm=ALARM, generator=np.random.default_rng()
    )
    if not result.excess:
        return None
    bound = result.excess[0]
    kind = stored_name(noise.event)
    return f"Outputs of {kind} noise prove {bound.measure} ≥ {bound.least:.3f}; {bound.promised:.3f} is stated."


def _neighbors(config: Config, tables: Mapping[str, Table], texts: list[tuple[str, str]]) -> Check:
    def check(chance: random.Random) -> str | None:
        _, text = chance.choice(texts)
        asked = Question(text, epsilon=1, delta=chance.choice(("0", "1e-6")))
        try:
            plan = plan_again(asked, tables, salt=str(chance.random()), hashing=config.hashing)
        except HubbubError:
            return None  # a query that is refused is no risk
        result = replay(plan, tables, worlds=1, chance=chance)
        return f"{text}: {result.problems[0]}" if result.problems else None

    return check


def _path(config: Config, folder: Path, texts: list[tuple[str, str]]) -> Check:
    """Query a separate curator on simulated rows, with a temporary ledger."""
    simulated = _simulated_config(config, folder)

    def check(chance: random.Random) -> str | None:
        name, text = chance.choice(texts)
        curator = open_curator(simulated)
        session = Session(curator, "auditor")
        try:
            key = str(chance.random())
            try:
                first = session.query(text, epsilon=_EPSILON, key=key)
            except BudgetError:
                return _check_refusal(session, name)
            except HubbubError as refusal:
                return None if refusal.code.startswith("HB5") else f"{text}: {refusal.code}"
            verdict = check_receipt(first.document())
            if not verdict.sound:
                return f"{text}: {verdict.problems[0]}"
            if session.query(text, epsilon=_EPSILON, key=key).document() != first.document():
                return f"{text}: The same key returned another answer."
            return None if curator.ledger.verify().sound else "The ledger does not verify after a query."
        finally:
            session.close()

    return check


def _check_refusal(session: Session, name: str) -> str | None:
    """A budget cap may refuse only if less than the cost of the query remains."""
    overview = next(budget for budget in session.budget() if budget.dataset == name)
    return None if overview.largest < Fraction(_EPSILON) else "A budget cap refuses a query that is within the budget."


def _simulated_config(config: Config, folder: Path) -> Config:
    """Return the same declarations with simulated rows, a ledger in the folder, and one analyst."""
    datasets = {}
    private = {name: dataset.table for name, dataset in config.datasets.items() if not dataset.table.public}
    with SimulatedData(private.values(), units=40, chance=random.SystemRandom()) as data:
        for name, table in private.items():
            path = folder / f"{sha256(name.encode()).hexdigest()[:16]}.parquet"
            data.write(table, path)
            datasets[name] = replace(config.datasets[name], place=DataSource("parquet", path), version=None)
    public = {name: dataset for name, dataset in config.datasets.items() if dataset.table.public}
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
