"""The corpus's queries and the plans that are expected of them.

A .sql file has one block a query, with blank lines between:

    -- its name, once in the file
    --! delta 1e-6; groups 2; rows 3; parameters [1, "good"]; dialect postgres; order yes
    SELECT …
    -- oracle
    SELECT … (what plain DuckDB is asked instead, where the same text would not do; $salt is the salt of the bounding)

The .plan file beside it has, under the same names, what the plan at ε = 1 promises. `python -m tests.sql.corpus` writes
the .plan files anew, so that a change of the product shows in their diff.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

from tests.sql.corpus.worlds import WORLDS

from hubbub.accounting.cost import privacy_cost
from hubbub.core.events import Composed, Event
from hubbub.core.numbers import SCALE_MIN, brief
from hubbub.core.schema import Value
from hubbub.mechanisms.exponential import Exponential
from hubbub.mechanisms.joint_exponential import JointExponential
from hubbub.mechanisms.laplace import Laplace
from hubbub.mechanisms.partition_selection import PartitionSelection
from hubbub.mechanisms.permute_and_flip import PermuteAndFlip
from hubbub.mechanisms.top_k import TopK
from hubbub.sql.aggregates.scores import ExtremeScore
from hubbub.sql.bind import bind
from hubbub.sql.keys import DiscoveredCells
from hubbub.sql.noise import Selection
from hubbub.sql.plan import Plan, plan
from hubbub.sql.query import Query

HERE = Path(__file__).parent
SALT = "corpus"


@dataclass(frozen=True)
class Entry:
    """One query: where it stands, what it says, with which options, and what plain DuckDB is asked beside it."""

    world: str
    file: str
    name: str
    text: str
    oracle: str
    options: dict[str, str]

    @property
    def id(self) -> str:
        """World, file and name."""
        return f"{self.world}/{self.file}: {self.name}"

    @property
    def parameters(self) -> tuple[Value, ...]:
        """The values that are handed in; numbers exactly."""
        found = json.loads(self.options.get("parameters", "[]"), parse_float=Fraction)
        return tuple(found)

    def bound(self) -> Query:
        """Bind it to the tables of its world."""
        return bind(
            self.text,
            tables=WORLDS[self.world]().tables,
            parameters=self.parameters,
            dialect=self.options.get("dialect", "duckdb"),
        )

    def planned(self, epsilon: Fraction = Fraction(1), **words: Any) -> Plan:
        """Plan it with its options, in DuckDB's words unless others are given (hashing, dialect)."""
        limits: dict[str, Any] = {name: int(self.options[name]) for name in ("groups", "rows") if name in self.options}
        delta = Fraction(self.options.get("delta", "0"))
        noise: Any = self.options.get("noise")
        return plan(self.bound(), epsilon=epsilon, delta=delta, salt=SALT, noise=noise, **limits, **words)


def entries(world: str | None = None) -> list[Entry]:
    """Read all queries, or those of one world."""
    folders = sorted(HERE.glob("*/")) if world is None else [HERE / world]
    return [entry for folder in folders for path in sorted(folder.glob("*.sql")) for entry in _read(path)]


def _read(path: Path) -> Iterator[Entry]:
    for block in filter(None, (part.strip() for part in path.read_text().split("\n\n"))):
        name, *lines = block.split("\n")
        options: dict[str, str] = {}
        while lines[0].startswith("--! "):
            pairs = (pair.strip().partition(" ") for pair in lines.pop(0)[4:].split(";"))
            options |= {key: value.strip() for key, _, value in pairs}
        text, _, oracle = "\n".join(lines).partition("\n-- oracle\n")
        yield Entry(path.parent.name, path.stem, name.removeprefix("-- "), text, oracle or text, options)


def expected(path: Path) -> dict[str, str]:
    """Read a .plan file: the plan of each name."""
    blocks = (block.strip().partition("\n") for block in path.read_text().split("\n\n") if block.strip())
    return {name.removeprefix("-- "): text for name, _, text in blocks}


def shown(made: Plan) -> str:
    """Write a plan: columns, cells, noise, what is charged, what error is expected, and the derivation."""
    columns = ", ".join(f"{name} {expr.kind.value}" for name, expr in made.query.select)
    cells = " + ".join("found" if isinstance(each, DiscoveredCells) else f"{each.size:,}" for each in made.groups)
    paid = privacy_cost(made.event)
    costs = f"ε = {brief(paid.pure)}" if paid.pure is not None else "no pure ε"
    lines = [
        f"columns  {columns}",
        f"cells    {cells}",
        f"noise    {made.noise}" + (f", δ = {brief(made.delta)}" if made.delta else ""),
        f"costs    {costs}",
        *(f"event    {_event(event, times)}" for event, times in _parts(made.event)),
        *(
            f"±        {each.name}: {each.plus_minus:.4g}{' ranks' if each.unit == 'rank' else ''}"
            + (f" in {each.rows:,} rows" if each.rows else "")
            for each in made.expected
        ),
        *(f"         {line}" for line in made.derivation),
    ]
    return "\n".join(lines)


def _parts(event: Event) -> Sequence[tuple[Event, int]]:
    return event.parts if isinstance(event, Composed) else [(event, 1)]


def _event(event: Event, times: int) -> str:
    facts = ((each.name, getattr(event, each.name)) for each in fields(event))
    inside = ", ".join(f"{name}={_fact(value)}" for name, value in facts)
    return f"{times} × {type(event).__name__.removesuffix('Event')}({inside})"


def _fact(value: object) -> str:
    if isinstance(value, Fraction):
        return brief(value)
    return _event(value, 1) if hasattr(value, "__dataclass_fields__") else str(value)  # type: ignore[arg-type]


def quiet(made: Plan) -> Plan:
    """Give the same plan with so little noise that none is seen: an ε of 1,000 for every step a measure can take.

    A draw differs from zero, and a selection from the best, with probability below e⁻⁹⁹⁹. Groups of two units or more
    are discovered.
    """
    still = Laplace(sensitivity=1, scale=SCALE_MIN)
    choices = tuple(
        replace(
            each,
            score=replace(each.score, depth=1) if isinstance(each.score, ExtremeScore) else each.score,
            mechanism=_best_selection(each.mechanism),
        )
        for each in made.choices
    )
    rule = made.threshold
    if rule is not None:
        noise = Laplace(sensitivity=2, scale=SCALE_MIN)
        rule = PartitionSelection(keys=1, contribution=1, relation=rule.relation, noise=noise, threshold=2)
    top = None if made.top is None else TopK(k=made.top.k, one=_best(made.top.one))
    measures = tuple(replace(each, mechanism=still) for each in made.measures)
    return replace(made, measures=measures, choices=choices, threshold=rule, top=top)


def _best(one: Exponential | PermuteAndFlip) -> Exponential:
    return Exponential(candidates=one.candidates, sensitivity=1, monotone=one.monotone, rate=1 / SCALE_MIN)


def _best_selection(one: Selection) -> Selection:
    return replace(one, sensitivity=1, rate=1 / SCALE_MIN) if isinstance(one, JointExponential) else _best(one)
