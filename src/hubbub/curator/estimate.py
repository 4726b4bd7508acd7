"""From a plan to its estimate: what it would cost and how exact it would be, in the names that the analyst gave."""

from dataclasses import replace
from fractions import Fraction

from hubbub.analyses.registry import Called
from hubbub.answers.estimate import Estimate, Expected
from hubbub.sql.expressions import Call, Col, Expr
from hubbub.sql.plan import Plan


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


def of_call(called: Called, *, admitted: bool, largest: Fraction) -> Estimate:
    """Make the estimate of a call; its SQL may depend on noisy answers, so none is shown."""
    return Estimate(
        datasets=tuple(table.name for table in called.tables if table.unit is not None),
        epsilon=called.epsilon,
        delta=called.delta,
        noise=called.prepared.noise,
        cells=0,
        expected=called.prepared.expected,
        derivation=called.derivation,
        admitted=admitted,
        largest=largest,
        scaling=((called.epsilon, called.prepared.expected),),
        sql=(),
    )
