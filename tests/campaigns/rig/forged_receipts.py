"""Check forged receipts with the receipt checker and against the ledger, and count those that pass."""

import json
import random
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from pathlib import Path
from typing import Literal

from tests.fixtures.receipt_forgeries import Document, forge

from hubbub.accounting import gaussian_filter
from hubbub.accounting.convert import renyi_epsilon
from hubbub.accounting.cost import RENYI_UNIT, privacy_cost
from hubbub.accounting.sqlite import SqliteStore
from hubbub.accounting.store import Snapshot
from hubbub.audit.ledger_check import compare_with_ledger
from hubbub.audit.receipt import check_receipt
from hubbub.core.events import from_facts
from hubbub.core.loss import ORDERS
from hubbub.curator.session import open_session
from hubbub.errors import HubbubError

_YAML = """
version: 1
datasets:
  visits:
    source: ../visits.csv
    unit: {unit}
    relation: {relation}
    columns:
      patient: {{type: integer}}
      region: {{values: [North, South, East]}}
      age: {{type: integer, bounds: [0, 110]}}
      cost: {{type: integer, bounds: [-100, 1000]}}
      word: {{type: text}}
    budget: {{epsilon: 1000, delta: 1e-5}}
analysts: {{ana: {{visits: {{epsilon: 1000}}}}}}
"""
_ASKED = (
    "SELECT COUNT(*) AS n FROM visits",
    "SELECT region, COUNT(*) AS n, SUM(cost) AS s, AVG(age) AS a FROM visits GROUP BY ROLLUP (region)",
    "SELECT MEDIAN(age) AS m, MAX(age) AS x, MODE(region) AS r FROM visits",
    "SELECT word, COUNT(*) AS n FROM visits GROUP BY word",
    "SELECT region FROM visits GROUP BY region ORDER BY COUNT(*) DESC LIMIT 2",
    "CALL tabulate(table => 'visits', columns => ['region'])",
    "CALL decision_tree(table => 'visits', columns => ['age'], target => 'region', depth => 2)",
    "CALL moments(table => 'visits', columns => ['age'])",
    "CALL stream(table => 'visits', name => 'seen', kind => 'density', universe => [0, 49])",
)

Verdict = Literal["refused", "by the ledger alone", "believed", "costs more", "untidy"]


class Receipts:
    """A few ledgers with their releases."""

    def __init__(self, base: Path) -> None:
        words = ("North", "South", "East")
        rows = (f"{i % 50},{words[i % 3]},{i % 90},{i % 900},w{i % 4}" for i in range(1000))
        (base / "visits.csv").write_text("patient,region,age,cost,word\n" + "\n".join(rows) + "\n")
        self.documents: list[tuple[Document, Path]] = []
        for unit in ("row", "{column: patient, groups: 2, rows: 3}"):
            for relation in ("add_remove", "replace"):
                self._ask(base, unit, relation)

    def _ask(self, base: Path, unit: str, relation: str) -> None:
        folder = base / f"{unit[:3]}-{relation}"
        folder.mkdir()
        (folder / "hubbub.yaml").write_text(_YAML.format(unit=unit, relation=relation))
        with open_session(folder / "hubbub.yaml") as session:
            for sql in _ASKED:
                for delta in (0, None) if "word" not in sql and "stream" not in sql else (None,):
                    release = session.query(sql, epsilon="2", delta=delta, fresh=True)
                    document = json.loads(json.dumps(release.document()))
                    if release.epsilon:  # a public number of rows is free, and draws nothing
                        self.documents.append((document, folder / "hubbub-ledger" / "ledger.db"))


def verdict(document: Document, snapshot: Snapshot) -> Verdict:
    """Return who accepts a document: nobody, the receipt checker alone, or also the ledger.

    A receipt that the checker accepts alone must cost no more than it states, according to the accountant.
    """
    try:
        if not check_receipt(document).sound:
            return "refused"
        if not compare_with_ledger(document, snapshot).problems:
            return "believed"
    except Exception:  # noqa: BLE001 (the point is that there is none)
        return "untidy"
    return "by the ledger alone" if _affordable(document["receipt"]) else "costs more"


def _affordable(paper: Document) -> bool:
    """Check the loss with the accountant; it may be 1% larger there, because it uses fewer orders."""
    epsilon, delta = (Fraction(paper["charge"][name]) for name in ("epsilon", "delta"))
    try:
        loss = privacy_cost(from_facts(paper["event"]))
    except (HubbubError, TypeError, ValueError, ArithmeticError):
        return False  # facts that the accountant does not know
    if loss.pure is not None and loss.pure <= epsilon and loss.delta <= delta:
        return True
    rest = delta - loss.delta
    if loss.gaussian is not None:
        share = rest - Fraction(gaussian_filter.failure(loss.gaussian), gaussian_filter.FAILURE_STEPS)
        # noise is calibrated for the Gaussian pair, which allows less noise than the orders do
        if share > 0 and gaussian_filter.variance(loss.gaussian) <= gaussian_filter.limit(epsilon, share):
            return True
    curve = zip(ORDERS, loss.renyi, strict=True)
    return rest > 0 and any(
        renyi_epsilon(order, value * RENYI_UNIT, rest) <= epsilon * Fraction(101, 100) for order, value in curve
    )


def judge(
    receipts: Receipts, numbers: Iterable[int], chance: random.Random
) -> tuple[Counter[Verdict], list[tuple[str, Document]]]:
    """Forge documents; return the verdicts, and the forgeries that should not have passed."""
    stores = {path: SqliteStore(path, read_only=True) for _, path in receipts.documents}
    counts: Counter[Verdict] = Counter()
    passed = []
    try:
        for number in numbers:
            document, path = receipts.documents[number % len(receipts.documents)]
            made, how = forge(document, chance)
            with stores[path].snapshot() as snapshot:
                judged = verdict(made, snapshot)
            counts[judged] += 1
            if judged in ("believed", "costs more", "untidy"):
                passed.append((f"{judged}: {how}", made))
    finally:
        for store in stores.values():
            store.close()
    return counts, passed
