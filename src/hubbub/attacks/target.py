"""The protected target: the real product, opened on a table to attack, with a ledger that is thrown away."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from hubbub.answers.release import Release
from hubbub.attacks.table import Table
from hubbub.core.events import Composed, GaussianEvent, LaplaceEvent, from_facts
from hubbub.curator.session import Session, open_session
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace

#: What the target's table is called in SQL.
TABLE = "people"
ANALYST = "eve"
#: A text column with more different values than this is declared without a list of them.
_MOST_VALUES = 1000

Declared = Mapping[str, Mapping[str, object]]


@contextmanager
def protected(
    table: Table,
    *,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    declared: Declared | None = None,
    unit: str | Mapping[str, object] = "row",
    relation: str = "replace",
) -> Iterator[Session]:
    """Open hubbub on a table for one analyst, eve, with so much to spend in all; its table is called `people`.

    It is `hubbub.open` with a hubbub.yaml, a ledger and all else, in a folder that vanishes. What `declared` does not
    say of a column is made up from the data here (`declarations`): where an attack compares two tables, both must be
    declared alike, so say it there. The default relation, replace, is that of the bit of somebody who is in the table.
    """
    facts = {**declarations(table), **(declared or {})}
    source = f"{TABLE}.csv"
    document = {
        "version": 1,
        "datasets": {
            TABLE: {
                "source": source,
                "unit": unit if isinstance(unit, str) else dict(unit),
                "relation": relation,
                "columns": {name: dict(facts[name]) for name in table.columns},
                "budget": {"epsilon": str(epsilon), **({"delta": str(delta)} if delta else {})},
            }
        },
        "analysts": {ANALYST: {TABLE: {"epsilon": str(epsilon)}}},
        "ledger": {"anchor": "anchor/ledger.anchor"},  # it lasts no longer than its folder
    }
    with TemporaryDirectory(prefix="hubbub-attack-") as folder:
        _write(table, Path(folder) / source)
        (Path(folder) / "hubbub.yaml").write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
        with open_session(Path(folder) / "hubbub.yaml", analyst=ANALYST) as session:
            yield session


def declarations(table: Table) -> dict[str, dict[str, object]]:
    """Declare columns as an owner would who takes what stands in them for public: ranges and lists of values."""
    return {name: _declaration(values) for name, values in table.columns.items()}


def _declaration(values: NDArray[Any]) -> dict[str, object]:
    if values.dtype.kind == "b":
        return {"type": "boolean"}
    if values.dtype.kind in "iuf":
        known = values[np.isfinite(values)]
        low, high = (known.min().item(), known.max().item()) if len(known) else (0, 1)
        kind = "real" if values.dtype.kind == "f" else "integer"
        return {"type": kind, "bounds": [low, high if high > low else low + 1]}
    listed = sorted(set(values.tolist()))
    return {"type": "text", "values": listed} if len(listed) <= _MOST_VALUES else {"type": "text"}


def condition(column: str, value: object) -> str:
    """Write in SQL that a column has a value; a missing one included."""
    quoted = '"' + column.replace('"', '""') + '"'
    plain = value.item() if isinstance(value, np.generic) else value
    if plain == "" or plain != plain:  # NaN alone differs from itself
        return f"{quoted} IS NULL"
    if isinstance(plain, str):
        return f"{quoted} = '" + plain.replace("'", "''") + "'"
    return f"{quoted} = {str(plain).upper() if isinstance(plain, bool) else repr(plain)}"


def count(session: Session, where: str, *, epsilon: Fraction, key: str | None = None) -> Release:
    """Ask how many rows meet a condition."""
    return session.query(f"SELECT COUNT(*) AS n FROM {TABLE} WHERE {where}", epsilon=epsilon, key=key)  # noqa: S608


def counting(table: Table, where: str, *, epsilon: Fraction, declared: Declared | None = None) -> Laplace:
    """Ask hubbub for one count at the whole of ε, and give the noise that it came with, to draw from again."""
    return countings(table, where, epsilons=[epsilon], declared=declared)[0]


def countings(
    table: Table, where: str, *, epsilons: Sequence[Fraction], declared: Declared | None = None
) -> list[Laplace]:
    """Ask for one count at each of several prices, of a hubbub that is opened once; give the noises they came with."""
    with protected(table, epsilon=sum(epsilons, Fraction(0)), declared=declared) as session:
        return [laplace(count(session, where, epsilon=epsilon)) for epsilon in epsilons]


def laplace(release: Release) -> Laplace:
    """Make the mechanism of a release whose noise is Laplace noise: that of any count, where there is no δ."""
    found = mechanism(release)
    if not isinstance(found, Laplace):
        raise TypeError("this release has another noise")
    return found


def mechanism(release: Release) -> Laplace | Gaussian:
    """Make the mechanism that a release was drawn from, by its receipt: for attacks that need thousands of draws."""
    event = from_facts(release.receipt["event"])
    while isinstance(event, Composed) and len(event.parts) == 1 and event.parts[0][1] == 1:
        event = event.parts[0][0]
    if isinstance(event, LaplaceEvent):
        return Laplace(sensitivity=event.sensitivity, scale=event.scale)
    if isinstance(event, GaussianEvent):
        return Gaussian(sensitivity_squared=event.sensitivity_squared, variance=event.variance)
    raise ValueError("this release was not drawn by one additive mechanism")


def number(release: Release) -> float:
    """Give the one number of a release."""
    ((value,),) = release.rows
    return float(str(value))


def _write(table: Table, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(zip(*(_texts(values) for values in table.columns.values()), strict=True))


def _texts(values: NDArray[Any]) -> list[object]:
    if values.dtype.kind == "f":
        shown: list[object] = np.where(np.isnan(values), "", values.astype(object)).tolist()
        return shown
    found: list[object] = values.tolist()
    return found
