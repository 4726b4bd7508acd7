"""All that is tried: analyses, queries, streams, own functions; by name."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import Any
from unittest.mock import patch

import numpy as np
from tests.contract import analyses, own, queries
from tests.contract.search import Climbed, Subject, climb

from hubbub.analyses.synthetic import learning, mwem
from hubbub.analyses.synthetic.estimation import NoisyMarginal
from hubbub.analyses.synthetic.model import Model, independent
from hubbub.sql import finish
from hubbub.sql.presentation import Answer

#: Pairs of neighbors for one subject at most, and pairs that are tried after all was reached.
STEPS, EXTRA = 60, 2
FULL_STEPS, FULL_EXTRA = 1000, 100


@dataclass(frozen=True)
class Tried:
    """A subject, whose it is, and which share of each noise is reached."""

    name: str
    subject: Subject
    reach: dict[int, Fraction]

    def climbed(self, *, full: bool = False) -> Climbed:
        """Search for its worst neighbors."""
        with _quick():
            return climb(
                self.subject, self.reach, steps=FULL_STEPS if full else STEPS, extra=FULL_EXTRA if full else EXTRA
            )

    def complaints(self) -> Iterator[str]:
        """Say what is wrong with it: neighbors too far apart, or less noise reached than there should be."""
        found = self.climbed()
        yield from found.problems
        for slot in [] if found.problems else found.short(self.reach):
            yield f"{self.subject.name}: of noise {slot} only {float(found.best[slot][0]):.3f} is used"


def every(*, full: bool = False) -> Iterator[Tried]:
    """Give all of them."""
    for case in analyses.CASES:
        yield from (Tried(case.name, each, _exact(reach)) for each, reach in case.subjects(full=full))
    yield from (Tried(f"sql: {text}", each, _exact(reach)) for text, each, reach in queries.subjects(full=full))
    yield from (Tried("stream", each, _exact(reach)) for _, each, reach in own.streams())
    yield from (Tried("above_threshold", each, _exact(reach)) for _, each, reach in own.sessions(full=full))
    yield from (Tried("batch", each, _exact(reach)) for each, reach in own.batches(full=full))
    yield from (Tried("running totals", each, _exact(reach)) for _, each, reach in own.totals(full=full))
    yield from (Tried("release", each, _exact(reach)) for _, each, reach in own.releases())
    yield from (Tried("sample_and_aggregate", each, _exact(reach)) for _, each, reach in own.aggregates(full=full))


def _exact(reach: analyses.Reach) -> dict[int, Fraction]:
    return {place: Fraction(share) for place, share in reach.items()}


def _independent(sizes: Sequence[int], measured: Sequence[NoisyMarginal], total: float, **_: Any) -> Model:
    """Believe in no pair: in the place of a model that takes its time to fit."""
    del total
    return independent(
        list(sizes),
        [
            np.maximum(each.noisy, 0.0) + 1e-9
            for each in sorted(measured, key=lambda each: each.columns)
            if len(each.columns) == 1
        ],
    )


def _nothing(*_: Any, **__: Any) -> Answer:
    """Answer nothing, in the place of estimates and intervals."""
    return Answer((), (), (), (), np.zeros((0, 0)), ())


@contextmanager
def _quick() -> Iterator[None]:
    """Fit models badly, and compute no answer: what is told from noisy numbers is free, so it may be anything."""
    with (
        patch.object(mwem, "PASSES", 2),
        patch.object(learning, "fit", _independent),
        patch.object(finish, "present", _nothing),
    ):
        yield
