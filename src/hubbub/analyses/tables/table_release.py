"""What all published tables have in common: budgets, prepared releases, and the lines of their derivations.

Tested in tests/analyses/tables/test_contingency.py.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import cast

from hubbub.analyses.base import PreparedAnalysis, Published, Run, Setting
from hubbub.analyses.tables.marginals import Marginal
from hubbub.answers.estimate import Expected
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.errors import QueryError
from hubbub.mechanisms.laplace import Laplace
from hubbub.sql.aggregates.formula import TYPICAL_ROWS
from hubbub.sql.measures import Sensitivity
from hubbub.sql.noise import Noise
from hubbub.sql.noise_budget import AdditiveNoise, NoiseBudget, noise_budgets

_KINDS: Mapping[str | None, Noise | None] = {None: None, "laplace": "laplace", "gaussian": "gaussian"}


def table_budgets(setting: Setting, noise: str | None) -> tuple[NoiseBudget, ...]:
    """Give the budget for each kind of noise that can be used, or for the requested kind only."""
    if noise not in _KINDS:
        raise QueryError("HB587", "noise must be 'laplace' or 'gaussian'.", "Omit it to use the better one.")
    return noise_budgets(setting.epsilon, setting.delta, _KINDS[noise])


def expected(name: str, half: float) -> Expected:
    """Give the expected error of a count."""
    return Expected(name, half, None, half / TYPICAL_ROWS)


@dataclass(frozen=True, kw_only=True)
class TableRelease(PreparedAnalysis):
    """A prepared table: ask the engine for one marginal, add noise to sums of its cells, and post-process.

    `publish` lets nothing out of the engine's counts but through `mechanisms`, each once.
    """

    marginal: Marginal
    mechanisms: tuple[AdditiveNoise, ...]
    publish: Callable[[Run], Published]

    def run(self, run: Run) -> Published:
        """Ask, add noise, and publish."""
        return self.publish(run)


def table_release(
    setting: Setting,
    marginal: Marginal,
    budget: NoiseBudget,
    mechanisms: tuple[AdditiveNoise, ...],
    *,
    derivation: tuple[str, ...],
    expected: tuple[Expected, ...],
    publish: Callable[[Run], Published],
) -> TableRelease:
    """Prepare a table: each mechanism is charged once, with δ only where the noise is Gaussian."""
    return TableRelease(
        protection=marginal.protection,
        epsilon=setting.epsilon,
        delta=setting.delta if budget.noise == "gaussian" else Fraction(0),
        event=Composed(tuple((cast(Event, each.event), 1) for each in mechanisms)),
        noise=budget.noise,
        derivation=derivation,
        expected=expected,
        marginal=marginal,
        mechanisms=mechanisms,
        publish=publish,
    )


def opening_lines(marginal: Marginal, count: str) -> tuple[str, ...]:
    """Describe what is counted, the privacy unit, and the contribution bounds."""
    cells = f"{marginal.size:,} cells of {' × '.join(marginal.names) or 'the total'}"
    names = ", ".join(table.name for table in marginal.plan.query.tables)
    if marginal.limits is None:
        whose = "each row is its own unit"
    else:
        whose = f"a unit counts in at most {marginal.limits.groups} cells"
        whose += f", with at most {marginal.limits.rows} rows in each" if count == "rows" else ""
    changed = "one unit more or less" if marginal.relation is Relation.ADD_REMOVE else "one unit replaced by another"
    return (f"count {count} of {names} in {cells}; {whose}", f"neighbors differ by {changed}")


def noise_line(what: str, moved: Sensitivity, each: AdditiveNoise) -> str:
    """Describe how the noise of one vector follows from its sensitivity."""
    if isinstance(each, Laplace):
        return f"{what}: moves by at most {moved.l1:,} (L1); Laplace noise of scale {brief(each.scale)}"
    return f"{what}: moves by at most √{moved.l2_squared:,} (L2); Gaussian noise of variance {brief(each.variance)}"


def free(name: str, taken: Collection[str]) -> str:
    """Give a column name that is not taken.

    >>> free("count", {"count", "age"})
    'count_'
    """
    while name in taken:
        name += "_"
    return name
