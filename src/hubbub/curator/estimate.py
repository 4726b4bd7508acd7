"""What a query would cost and how exact it would be, told before anything is paid."""

from dataclasses import dataclass, replace
from fractions import Fraction

from hubbub.core.numbers import brief
from hubbub.sql.allot import Expected
from hubbub.sql.expressions import Call, Col, Expr
from hubbub.sql.plan import Plan


@dataclass(frozen=True)
class Estimate:
    """A plan for people: free, and without a look at the data.

    admitted   whether the caps would admit it now; `largest` is the most that they would
    scaling    (ε, ± of each aggregate) around the ε asked for
    """

    datasets: tuple[str, ...]
    epsilon: Fraction
    delta: Fraction
    noise: str
    cells: int
    expected: tuple[Expected, ...]
    derivation: tuple[str, ...]
    admitted: bool
    largest: Fraction
    scaling: tuple[tuple[Fraction, tuple[Expected, ...]], ...]
    sql: tuple[str, ...]

    def __repr__(self) -> str:
        price = f"ε = {brief(self.epsilon)}" + (f", δ = {brief(self.delta)}" if self.delta else "")
        lines = [f"costs {price} on {', '.join(self.datasets)}; nothing was run or charged"]
        lines += [f"  {name} {margin(each)}" for each in self.expected for name in (each.name,)]
        if not self.admitted:
            lines.append(f"  not admitted now: up to ε = {brief(self.largest)} is left")
        return "\n".join(lines)


def margin(each: Expected) -> str:
    """Show an expected error.

    >>> margin(Expected("n", 30.0, None, 0.1)), margin(Expected("a", 1.25, 1000, 0.1))
    ('±30', '±1.2 (in a group of 1,000 rows)')
    """
    where = "" if each.rows is None else f" (in a group of {each.rows:,} rows)"
    rank = " rows off in rank" if each.unit == "rank" else ""
    return f"±{significant(each.plus_minus)}{rank}{where}"


def significant(value: float) -> str:
    """Show two digits of an error, or all of a whole one."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def labels(plan: Plan) -> dict[str, str]:
    """Say by which output column an analyst knows an aggregate; inside an expression, by that column and its place."""
    found: dict[str, str] = {}
    for name, expr in plan.query.select:
        inside = [each for each in plan.expected if _mentions(expr, each.name)]
        for place, each in enumerate(inside, 1):
            alone = isinstance(expr, Col)
            label = name if alone else f"{name} (part {place})" if len(inside) > 1 else f"in {name}"
            if alone or each.name not in found:
                found[each.name] = label
    return found


def _mentions(expr: Expr, name: str) -> bool:
    if isinstance(expr, Call):
        return any(_mentions(arg, name) for arg in expr.args)
    return isinstance(expr, Col) and expr.name == name


def of(plan: Plan, *, admitted: bool, largest: Fraction, scaling: list[Plan]) -> Estimate:
    """Make the estimate of a plan."""
    names = labels(plan)

    def named(each: Plan) -> tuple[Expected, ...]:
        return tuple(replace(expected, name=names.get(expected.name, expected.name)) for expected in each.expected)

    return Estimate(
        datasets=tuple(table.name for table in plan.query.tables if table.unit is not None),
        epsilon=plan.epsilon,
        delta=plan.delta,
        noise=plan.noise,
        cells=plan.size,
        expected=named(plan),
        derivation=plan.derivation,
        admitted=admitted,
        largest=largest,
        scaling=tuple((each.epsilon, named(each)) for each in scaling),
        sql=tuple(statement.sql for statement in plan.statements),
    )


__all__ = ["Estimate", "Expected", "labels", "margin", "of", "significant"]
