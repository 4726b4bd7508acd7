"""Randomness of runs: all runs of a charge draw the same noise."""

import os
import platform
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib import metadata

import numpy as np

from hubbub.accounting.calls import Charge
from hubbub.accounting.chain import Entry, canonical
from hubbub.analyses.base import PreparedAnalysis
from hubbub.curator.seeds import Seeds
from hubbub.errors import SpentError
from hubbub.noise.source import RandomSource, ReplaySource, SeededSource

#: Seconds that a retry waits for the seed of a charge that another thread or process has just made.
PATIENCE = 1.0
_PAUSE = 0.02


@dataclass(frozen=True, slots=True)
class Draw:
    """The random source of a run, and whether an earlier run of the charge used it."""

    source: RandomSource
    retried: bool


def no_draw() -> Draw:
    """Give the draw of a run that samples nothing, such as the purchase of a stream."""
    return Draw(ReplaySource(()), retried=False)


class Draws:
    """Gives each run its random source. `sources` makes a source of a seed; tests pass their own."""

    def __init__(self, seeds: Seeds, sources: Callable[[bytes], RandomSource] = SeededSource) -> None:
        self.seeds = seeds
        self.sources = sources

    def begin(self, charges: Sequence[Charge], run_hash: bytes, released: Callable[[], bool]) -> Draw | None:
        """Give a run its source; None if a release was recorded meanwhile. Reject a charge that is spent.

        Theorem (A charge draws once). All runs of a charge, at whatever time and in whatever process, draw the same
        words, for the same question on the same data; so whatever can be seen of all of them together (statements,
        progress, time, the release) is a function of the data and of one set of draws, and costs what was charged.
        Proof    The ledger calls a charge new to exactly one caller, and only that one makes a seed: there is at most
                 one seed of a charge. Every other run finds that seed or is refused. The words are a function of the
                 seed and of the calls that ask for them; a run asks in one thread, in an order that follows from the
                 question and from canonical keys. A retry whose question, declarations or data's versions differ from
                 those of the first run is refused, and the seed is erased.
        Assumes  nobody but this user reads the folder of seeds; versions tell states of the data apart. Failures and
                 time tell what docs/known-limits.md says.
        Charges  nothing by itself.
        Tested   tests/curator/test_draws.py::test_a_retry_repeats_the_words_of_the_first_run
                 tests/curator/test_draws.py::test_a_seed_is_made_by_the_call_that_made_the_charge_alone
                 tests/curator/test_draws.py::test_a_retry_on_changed_data_is_refused_and_the_charge_is_spent
        """
        first = charges[0].entry
        if not any(charge.replayed for charge in charges):
            return Draw(self.sources(self.seeds.make(first, run_hash).secret), retried=False)
        deadline = time.monotonic() + PATIENCE
        while (seed := self.seeds.find(first)) is None:
            if released():
                return None
            if time.monotonic() > deadline:
                raise SpentError.lost()
            time.sleep(_PAUSE)
        if seed.run_hash != run_hash:
            raise self.spoil(first)
        return Draw(self.sources(seed.secret), retried=True)

    def spoil(self, charge: Entry) -> SpentError:
        """Erase the seed of a charge whose data has changed, and return the error to raise.

        The same noise on other data would reveal the difference.
        """
        self.seeds.erase(charge)
        return SpentError.changed()


def run_hash(planned: PreparedAnalysis, text: str, versions: Mapping[str, str], rendering: Sequence[str]) -> bytes:
    """Hash everything that turns randomness into an answer: query, declarations, data, program and machine.

    `rendering` is what decides which rows of a unit are kept: salt, hash and dialect. The SQL of an analysis is not
    known in advance, so its statements do not show them.
    """
    facts = [
        text,
        canonical(planned.event_facts),
        list(rendering),
        str(planned.epsilon),
        str(planned.delta),
        dict(versions),
        planned.table_facts,
        "None" if planned.limits is None else f"Limits(groups={planned.limits.groups}, rows={planned.limits.rows})",
        list(planned.statements),
        _machine(),
    ]
    return sha256(canonical(facts).encode()).digest()


@cache
def _machine() -> list[str]:
    """Give what floating-point arithmetic after the noise may depend on; it chooses the next query of an analysis."""
    try:
        version = metadata.version("hubbub")
    except metadata.PackageNotFoundError:
        version = ""
    threads = [os.environ.get(f"{name}_NUM_THREADS", "") for name in ("OMP", "OPENBLAS", "MKL")]
    return [version, np.__version__, platform.python_version(), platform.machine(), str(os.cpu_count()), *threads]
