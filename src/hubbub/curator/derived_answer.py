"""An answer that follows from earlier releases: its sources, its receipt, and its stored form.

Tested in tests/curator/test_reuse.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any

from hubbub.accounting.calls import Charge
from hubbub.accounting.chain import canonical
from hubbub.accounting.store import Snapshot
from hubbub.analyses.base import PreparedAnalysis
from hubbub.answers.derived import derived_note
from hubbub.answers.estimate import FreeAnswer
from hubbub.answers.left_out import LeftOut
from hubbub.core import chunked_json
from hubbub.core.events import Composed
from hubbub.curator import receipt as receipts
from hubbub.curator.earlier import DERIVED, measured_hash
from hubbub.curator.query import PreparedQuery
from hubbub.sql.derived import Derivation, as_arrays, sums
from hubbub.sql.estimates import CellKeys
from hubbub.sql.finish import declared_keys
from hubbub.sql.measured import Described, cells_form
from hubbub.sql.overlaps import Solved
from hubbub.sql.presentation import present

#: The format of `derived` in a receipt.
FORMAT = 1


@dataclass(frozen=True)
class DerivedAnswer:
    """A query that earlier releases determine."""

    planned: PreparedQuery
    described: Described
    derivation: Derivation
    numbers: tuple[int, ...]  #: the charge of each source

    @property
    def releases(self) -> tuple[int, ...]:
        """The charges of the sources that are used."""
        return tuple(self.numbers[place] for place in self.derivation.used)

    @property
    def enough(self) -> bool:
        """Whether it is at least as exact as the answer that the price would buy."""
        return self.derivation.no_worse_than(self.planned.expected)

    def offer(self) -> FreeAnswer:
        """Say what is free."""
        return FreeAnswer(self.releases, self.derivation.expected, self.enough, self.derivation.exact)

    def facts(self, snapshot: Snapshot) -> dict[str, Any]:
        """Give the sources and the exact weights, for the receipt; all but the sums, which are noisy."""
        derivation, used = self.derivation, self.derivation.used
        papers = {place: paper_of(snapshot, self.numbers[place]) for place in used}
        views = sorted({term.view for terms in derivation.terms for term in terms})
        described = self.described
        (groups,) = described.plan.cells
        return {
            "form": FORMAT,
            "exact": derivation.exact,
            "of": described.rows.of,
            "where": sorted(described.rows.where),
            "groups": cells_form(described, groups),
            "wanted": [described.measure(each.measure) for each in derivation.plan.measures],
            "sources": [
                {
                    "charge": self.numbers[place],
                    "hash": papers[place]["ledger"][0]["hash"],
                    "measured": measured_hash(papers[place]),
                }
                for place in used
            ],
            "views": [
                {
                    "source": used.index(derivation.views[view].source),
                    "set": derivation.views[view].part,
                    "cells": derivation.views[view].cells.tolist(),
                }
                for view in views
            ],
            "measures": [
                [[views.index(term.view), term.place, str(term.weight)] for term in terms] for terms in derivation.terms
            ],
            "solved": [None if each is None else self._solved(each) for each in derivation.solved],
        }

    def _solved(self, solved: Solved) -> dict[str, Any]:
        used = self.derivation.used
        rows = [[[used.index(t.source), t.place, t.cell, str(t.weight)] for t in row] for row in solved.rows]
        return {"columns": solved.columns, "rows": rows}

    def key(self, text: str, versions: Mapping[str, str]) -> str:
        """Give the key of the release: the same query from the same sources is the same answer."""
        weights = [
            [[self.numbers[self.derivation.views[t.view].source], t.place, str(t.weight)] for t in terms]
            for terms in self.derivation.terms
        ]
        solved = [
            None
            if each is None
            else [[[self.numbers[t.source], t.place, t.cell, str(t.weight)] for t in row] for row in each.rows]
            for each in self.derivation.solved
        ]
        facts = {"query": text, "weights": weights, "solved": solved, "versions": dict(versions)}
        return f"{DERIVED} {FORMAT} {sha256(canonical(facts).encode()).hexdigest()}"

    def body(self, snapshot: Snapshot, charges: Sequence[Charge], text: str, versions: Mapping[str, str]) -> bytes:
        """Compute the answer from the released sums, and encode it with its receipt."""
        released = {
            place: paper_of(snapshot, self.numbers[place])["measured"]["sums"] for place in self.derivation.used
        }
        exact = sums(self.derivation, released)
        plan = self.derivation.plan
        keys: CellKeys = declared_keys(plan)
        answer = replace(present(plan, keys, as_arrays(exact), [], raw=self.planned.raw), joint=())  # type: ignore[arg-type]
        columns, ratio = receipts.outputs(answer)
        facts = self.facts(snapshot) | {"sums": [[str(value) for value in each] for each in exact]}
        left_out = self.planned.left_out()
        if not self.derivation.exact:
            first = LeftOut.from_receipt(paper_of(snapshot, self.releases[0]))
            left_out = left_out if first is None else replace(first, clamped=left_out.clamped)
        paper = receipts.receipt(
            _free(self.planned, facts),
            query=text,
            charges=[c.entry for c in charges],
            versions=versions,
            left_out=left_out,
        )
        return receipts.encode(columns, ratio, paper, {})


@dataclass(frozen=True, kw_only=True)
class _Receipt(PreparedQuery):
    """The planned query with what its receipt says instead of draws."""

    facts: Mapping[str, Any]

    def receipt(self) -> dict[str, Any]:
        """Give the sources and the weights."""
        return {"derived": dict(self.facts)}


def _free(planned: PreparedQuery, facts: Mapping[str, Any]) -> PreparedAnalysis:
    """Give a planned query the cost of post-processing."""
    values = {name: getattr(planned, name) for name in PreparedQuery.__dataclass_fields__}
    lines = (derived_note(facts), "each sum is a weighted sum of released ones; nothing was drawn")
    nothing = {"epsilon": Fraction(0), "delta": Fraction(0), "event": Composed(()), "derivation": lines}
    return _Receipt(**values | nothing, facts=facts)


def paper_of(snapshot: Snapshot, number: int) -> Mapping[str, Any]:
    """Read the receipt of a source."""
    body = snapshot.body(number)
    if body is None:
        raise AssertionError("a source has a release")
    paper: Mapping[str, Any] = chunked_json.loads(body)["receipt"]
    return paper
