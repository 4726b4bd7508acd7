"""The sparse vector technique: any number of comparisons with a threshold, paid by those that come out above."""

import os
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NoReturn

from hubbub.core import events, numbers
from hubbub.core.distributions import DiscreteLaplace, half_width
from hubbub.core.finite import FiniteDistribution
from hubbub.core.interval import ZERO, Interval
from hubbub.core.loss import Pure
from hubbub.core.unit import Relation
from hubbub.errors import MechanismError, ParameterError
from hubbub.mechanisms.additive import check_size
from hubbub.noise.geometric import discrete_laplace
from hubbub.noise.source import RandomSource

Transcript = tuple[bool, ...]  #: the answers in order, ending with the last hit or the last query

_MOST = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """Compare integer queries with a noisy threshold until so many of them were above it.

    Theorem (Sparse vector). Let every query move by at most D between neighbors. With threshold noise of scale s
    drawn once and query noise of scale r drawn for each query, halting after c hits, the whole transcript is (D/s +
    2cD/r)-private, and (D/s + cD/r)-private where all queries move one way, however many queries are below (Lyu, Su
    and Li 2017, Theorems 2 and 5: the noise of a query must grow with c).
    Proof    Pr[transcript] = Σ_z Pr[ρ=z]·Π_below Pr[q_i + ν < z]·Π_above Pr[q_i + ν ≥ z]. For a neighbor compare the
             term of z with that of z + D. The first factor loses at most e^(D/s); a query below stays as likely, as
             q′_i ≤ q_i + D; each of the c above loses at most e^(2D/r), as z + D − q′_i ≤ z − q_i + 2D. Where all
             queries rise it is z − q_i + D; where all fall, compare z with z: the first factor loses nothing, queries
             below stay as likely, those above lose e^(D/r). All on integers, z and D whole, so sums shift exactly.
    Assumes  integer queries, chosen in any way by the answers so far; D for the relation; noise sampled exactly.
    Charges  once, before the first query: Pure(D/s + 2cD/r), or with cD/r.
    Error    `error`: all answers are right but for queries so near to the threshold.
    Tested   tests/mechanisms/test_contract.py::test_enumerated_loss_is_the_stated_one
             tests/mechanisms/test_sparse_vector.py::test_noise_that_does_not_grow_with_the_hits_breaks_the_promise
             tests/mechanisms/test_sparse_vector.py::test_halted_object_refuses_also_under_many_threads
    """

    sensitivity: int
    monotone: bool
    threshold_scale: Fraction
    query_scale: Fraction
    hits: int
    queries: int

    def __post_init__(self) -> None:
        numbers.sensitivity(self.sensitivity)
        if not isinstance(self.monotone, bool):
            raise ParameterError("HB101", "monotone is not a bool.", "Give True or False.")
        object.__setattr__(self, "threshold_scale", numbers.scale(self.threshold_scale, "threshold_scale"))
        object.__setattr__(self, "query_scale", numbers.scale(self.query_scale, "query_scale"))
        numbers.integer(self.hits, "hits", 1, _MOST)
        numbers.integer(self.queries, "queries", self.hits, _MOST)

    @classmethod
    def from_epsilon(
        cls,
        *,
        sensitivity: int,
        monotone: bool,
        relation: Relation,
        hits: int,
        queries: int,
        epsilon: numbers.Number,
    ) -> "SparseVector":
        """Split ε between threshold and queries as 1 : (2c)^⅔, or 1 : c^⅔ where queries move one way.

        That ratio is the best for accuracy (Lyu, Su and Li 2017, section 4.2); any other would be as private, so it
        is rounded to thousandths.
        """
        if not isinstance(relation, Relation):
            raise ParameterError("HB154", "this is not a relation between neighbors.", "Give a Relation.")
        if not isinstance(monotone, bool):
            raise ParameterError("HB101", "monotone is not a bool.", "Give True or False.")
        one_way = monotone and relation is Relation.ADD_REMOVE
        moved, whole = numbers.sensitivity(sensitivity), numbers.epsilon(epsilon)
        steps = numbers.integer(hits, "hits", 1, _MOST) * (1 if one_way else 2)
        share = Fraction(max(1, round(1000 / (1 + steps ** (2 / 3)))), 1000)
        return cls(
            sensitivity=moved,
            monotone=one_way,
            threshold_scale=moved / (whole * share),
            query_scale=steps * moved / (whole * (1 - share)),
            hits=hits,
            queries=queries,
        )

    @property
    def event(self) -> events.SparseVectorEvent:
        """The facts that the ledger keeps."""
        return events.SparseVectorEvent(
            self.sensitivity, self.monotone, self.threshold_scale, self.query_scale, self.hits
        )

    @property
    def loss(self) -> Pure:
        """The loss of the whole transcript, reached in the limit of many queries just below."""
        above = self.hits * self.sensitivity * (1 if self.monotone else 2)
        return Pure(self.sensitivity / self.threshold_scale + above / self.query_scale)

    def start(self, *, threshold: int, source: RandomSource) -> "AboveThreshold":
        """Draw the threshold's noise and begin; whoever calls this has charged the event before."""
        return AboveThreshold(self, threshold, source)

    def sample(self, value: Sequence[int], source: RandomSource) -> Transcript:
        """Compare a fixed row of queries with 0, to the last hit that is allowed."""
        running = self.start(threshold=0, source=source)
        answers = []
        for query in value:
            answers.append(running.ask(query))
            if running.halted:
                break
        return tuple(answers)

    def distribution(self, value: Sequence[int]) -> FiniteDistribution[Transcript]:
        """Write out the transcripts of a fixed row of queries compared with 0, summed over the threshold's noise."""
        if len(value) > self.queries:
            raise MechanismError("HB612", f"at most {self.queries} queries are answered.", "Give fewer.")
        noise, distribution = DiscreteLaplace(self.threshold_scale), DiscreteLaplace(self.query_scale)
        reach = noise.guess(1e-45)
        check_size(2 * reach * len(value))
        at_least = lru_cache(maxsize=None)(distribution.tail)
        chances: dict[Transcript, Interval] = {}
        for z in range(-reach, reach + 1):
            # Pr[q + ν ≥ z], and Pr[q + ν < z] by symmetry
            above = [at_least(z - query) for query in value]
            below = [at_least(query - z + 1) for query in value]
            for transcript, chance in self._paths(above, below, noise.mass(z)):
                chances[transcript] = chances.get(transcript, ZERO) + chance
        beyond = noise.tail(reach + 1) + noise.tail(reach + 1)
        return FiniteDistribution(
            {t: Interval(chance.low, (chance + beyond).high).enclosure for t, chance in chances.items()}
        )

    def _paths(
        self, above: list[Interval], below: list[Interval], chance: Interval
    ) -> Iterator[tuple[Transcript, Interval]]:
        """Follow every transcript, given the threshold's noise."""
        open_paths: list[tuple[Transcript, Interval]] = [((), chance)]
        for up, down in zip(above, below, strict=True):
            following = []
            for transcript, so_far in open_paths:
                following.append(((*transcript, False), so_far * down))
                hit = ((*transcript, True), so_far * up)
                if sum(hit[0]) == self.hits:
                    yield hit
                else:
                    following.append(hit)
            open_paths = following
        yield from open_paths

    def error(self, level: Fraction) -> Fraction:
        """Give a w: with probability at least `level` only queries within w of the threshold are answered wrongly."""
        each = 1 - (1 - numbers.confidence(level)) / 2
        threshold = half_width(DiscreteLaplace(self.threshold_scale), each)
        return Fraction(threshold + half_width(DiscreteLaplace(self.query_scale), each, self.queries))


class AboveThreshold:
    """One run of a sparse vector: answers queries, counts hits, and refuses for ever once it halted.

    It belongs to the process that started it and cannot be copied: a copy would have hits of its own under the same
    noise.
    """

    def __init__(self, facts: SparseVector, threshold: int, source: RandomSource) -> None:
        self._facts = facts
        self._source = source
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._hits = self._asked = 0
        self._bar = threshold + int(discrete_laplace(scale=facts.threshold_scale, count=1, source=source)[0])

    @property
    def halted(self) -> bool:
        """Whether all hits are used, or all queries asked; it depends on the answers alone."""
        return self._hits >= self._facts.hits or self._asked >= self._facts.queries

    def ask(self, query: int) -> bool:
        """Say whether a noisy query reaches the noisy threshold."""
        with self._lock:
            if self.halted or self._process != os.getpid():
                raise MechanismError("HB611", "this sparse vector has halted.", "Start another, which is charged anew.")
            self._asked += 1  # first: a draw that fails must not be tried again under the same threshold
            noise = int(discrete_laplace(scale=self._facts.query_scale, count=1, source=self._source)[0])
            above = int(query) + noise >= self._bar
            self._hits += above
            return above

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Refuse to be pickled or copied."""
        raise TypeError("a running sparse vector cannot be copied or pickled")
