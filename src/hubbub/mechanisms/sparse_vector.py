"""The sparse vector technique: many comparisons with a threshold, charged only for those above it."""

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
from hubbub.errors import MechanismError
from hubbub.mechanisms.additive import check_size
from hubbub.mechanisms.selection import check_flag
from hubbub.mechanisms.sensitivity import check_relation
from hubbub.noise.geometric import discrete_laplace
from hubbub.noise.source import RandomSource

Transcript = tuple[bool, ...]  #: the answers in order, ending with the last hit or the last query

_MAX = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVector:
    """Compare integer queries with a noisy threshold until `hits` of them exceed it.

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
        check_flag(self.monotone)
        object.__setattr__(self, "threshold_scale", numbers.scale(self.threshold_scale, "threshold_scale"))
        object.__setattr__(self, "query_scale", numbers.scale(self.query_scale, "query_scale"))
        numbers.integer(self.hits, "hits", 1, _MAX)
        numbers.integer(self.queries, "queries", self.hits, _MAX)

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
        one_way = check_flag(monotone) and check_relation(relation) is Relation.ADD_REMOVE
        sensitivity, total = numbers.sensitivity(sensitivity), numbers.epsilon(epsilon)
        steps = numbers.integer(hits, "hits", 1, _MAX) * (1 if one_way else 2)
        share = Fraction(max(1, round(1000 / (1 + steps ** (2 / 3)))), 1000)
        return cls(
            sensitivity=sensitivity,
            monotone=one_way,
            threshold_scale=sensitivity / (total * share),
            query_scale=steps * sensitivity / (total * (1 - share)),
            hits=hits,
            queries=queries,
        )

    @property
    def event(self) -> events.SparseVectorEvent:
        """The event that the ledger records."""
        return events.SparseVectorEvent(
            self.sensitivity, self.monotone, self.threshold_scale, self.query_scale, self.hits
        )

    @property
    def loss(self) -> Pure:
        """The loss of the whole transcript, reached in the limit of many queries just below."""
        above = self.hits * self.sensitivity * (1 if self.monotone else 2)
        return Pure(self.sensitivity / self.threshold_scale + above / self.query_scale)

    def start(self, *, threshold: int, source: RandomSource) -> "AboveThreshold":
        """Sample the noise of the threshold and start; the caller has already charged the event."""
        return AboveThreshold(self, threshold, source)

    def sample(self, value: Sequence[int], source: RandomSource) -> Transcript:
        """Compare a fixed sequence of queries with 0, up to the last allowed hit."""
        running = self.start(threshold=0, source=source)
        answers = []
        for query in value:
            answers.append(running.compare(query))
            if running.halted:
                break
        return tuple(answers)

    def distribution(self, value: Sequence[int]) -> FiniteDistribution[Transcript]:
        """List the transcripts of a fixed sequence of queries compared with 0, summed over the threshold noise."""
        if len(value) > self.queries:
            raise MechanismError("HB612", f"There are more than {self.queries} queries.", "Pass fewer queries.")
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
        """Return a w: with probability at least `level`, only queries within w of the threshold are misjudged."""
        one_noise = 1 - (1 - numbers.confidence(level)) / 2
        threshold = half_width(DiscreteLaplace(self.threshold_scale), one_noise)
        return Fraction(threshold + half_width(DiscreteLaplace(self.query_scale), one_noise, self.queries))


class AboveThreshold:
    """One run of the sparse vector technique, which compares queries, counts hits, and stops once it has halted.

    It belongs to the process that started it and cannot be copied: a copy would have its own hits under the same noise.
    """

    def __init__(self, parameters: SparseVector, threshold: int, source: RandomSource) -> None:
        self._parameters = parameters
        self._source = source
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._hits = self._queries = 0
        self._bar = threshold + int(discrete_laplace(scale=parameters.threshold_scale, count=1, source=source)[0])

    @property
    def halted(self) -> bool:
        """Whether all hits or all queries are used up; it depends only on the answers."""
        return self._hits >= self._parameters.hits or self._queries >= self._parameters.queries

    def compare(self, query: int) -> bool:
        """Return whether a noisy query reaches the noisy threshold."""
        with self._lock:
            if self.halted or self._process != os.getpid():
                raise MechanismError(
                    "HB611", "The sparse vector technique has halted.", "Start and charge another run."
                )
            self._queries += 1  # first: failed sampling must not be retried under the same threshold
            noise = int(discrete_laplace(scale=self._parameters.query_scale, count=1, source=self._source)[0])
            above = int(query) + noise >= self._bar
            self._hits += above
            return above

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        """Reject pickling and copying."""
        raise TypeError("a run of the sparse vector technique cannot be copied or pickled")
