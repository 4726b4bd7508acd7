"""Say what the statements of a plan take, and refuse before the charge what cannot finish on this machine.

Both follow from the number of rows that the owner declares, and from the limits of the engine.
"""

from hubbub.analyses.base import PreparedAnalysis
from hubbub.curator.queries import PreparedQueries
from hubbub.engines.base import EngineLimits
from hubbub.errors import QueryError
from hubbub.sql.unit_parts import Work

#: Said where there is nothing to predict from.
UNKNOWN = "not predicted: only for queries on files, by a number of rows that the data owner declares (size)"
#: A prediction of time may be so many times too long.
_CAUTION = 10


def check(work: Work, limits: EngineLimits) -> None:
    """Raise an error if a plan takes more memory and disk, or surely more time, than the engine has.

    It would fail after its charge.
    """
    there = limits.local_memory + limits.spill_at_most
    if work.memory > there:
        raise QueryError(
            "HB599",
            f"This query would take {work.memory:,} MB for the {work.rows:,} rows that the data owner declares; memory "
            f"and disk of the engine have {there:,} MB.",
            "Ask the data owner to raise memory or disk of the engine in hubbub.yaml, or group by fewer keys.",
        )
    seconds = _seconds(work, limits)
    if seconds > _CAUTION * limits.seconds:
        raise QueryError(
            "HB599",
            f"This query would take about {seconds:,.0f} s for the {work.rows:,} rows that the data owner declares; "
            f"the engine stops after {limits.seconds:,} s.",
            "Ask the data owner to raise seconds or threads of the engine in hubbub.yaml, or group by fewer keys.",
        )


def describe(planned: PreparedAnalysis, limits: EngineLimits) -> str:
    """Say what an analysis is expected to take."""
    plan = [] if planned.plan is None else [planned.plan]
    plans = [part.plan for part in planned.parts] if isinstance(planned, PreparedQueries) else plan
    works = [plan.work for plan in plans if plan.work is not None]
    if not works or len(works) < len(plans):
        return UNKNOWN
    rows, memory = max(work.rows for work in works), max(work.memory for work in works)
    seconds, parts = sum(_seconds(work, limits) for work in works), max(work.parts for work in works)
    split = f" in {parts} parts, one after the other" if parts > 1 else ""
    return f"about {memory:,} MB of memory and {_brief(seconds)} s{split}, by the {rows:,} rows that the owner declares"


def _seconds(work: Work, limits: EngineLimits) -> float:
    return work.seconds / max(1, limits.threads)


def _brief(seconds: float) -> str:
    return "less than 1" if seconds < 1 else f"{seconds:,.0f}"
