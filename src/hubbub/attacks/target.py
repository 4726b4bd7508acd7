"""The protected target: hubbub itself, opened on a table to attack, with a temporary ledger."""

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
from hubbub.attacks.table import AttackTable
from hubbub.core.events import Composed, GaussianEvent, LaplaceEvent, from_facts
from hubbub.curator.session import Session, open_session
from hubbub.mechanisms.gaussian import Gaussian
from hubbub.mechanisms.laplace import Laplace

#: Name of the target's table in SQL.
TABLE = "people"
ANALYST = "eve"
#: A text column with more distinct values than this is declared without a list of them.
_MAX_VALUES = 1000

Declared = Mapping[str, Mapping[str, object]]


@contextmanager
def open_protected(
    table: AttackTable,
    *,
    epsilon: Fraction,
    delta: Fraction = Fraction(0),
    declared: Declared | None = None,
    unit: str | Mapping[str, object] = "row",
    relation: str = "replace",
) -> Iterator[Session]:
    """Open hubbub on a table named `people` for one analyst, eve, with a total budget of (ε, δ).

    This is `hubbub.open` with a complete hubbub.yaml and ledger in a temporary folder. Declarations that are not in
    `declared` are derived from the data (`declarations`); an attack that compares two tables must declare both alike,
    so pass them there. The default relation, replace, fits the secret bit of a person who is in the table.
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
        "ledger": {"anchor": "anchor/ledger.anchor"},  # temporary, like its folder
    }
    with TemporaryDirectory(prefix="hubbub-attack-") as folder:
        _write(table, Path(folder) / source)
        (Path(folder) / "hubbub.yaml").write_text(yaml.safe_dump(document, allow_unicode=True), encoding="utf-8")
        with open_session(Path(folder) / "hubbub.yaml", analyst=ANALYST) as session:
            yield session


def declarations(table: AttackTable) -> dict[str, dict[str, object]]:
    """Declare columns as an owner would who considers their ranges and lists of values public."""
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
    return {"type": "text", "values": listed} if len(listed) <= _MAX_VALUES else {"type": "text"}


def condition(column: str, value: object) -> str:
    """Write an SQL condition that a column has a value, which may be missing."""
    quoted = '"' + column.replace('"', '""') + '"'
    plain = value.item() if isinstance(value, np.generic) else value
    if plain == "" or plain != plain:  # only NaN differs from itself
        return f"{quoted} IS NULL"
    if isinstance(plain, str):
        return f"{quoted} = '" + plain.replace("'", "''") + "'"
    return f"{quoted} = {str(plain).upper() if isinstance(plain, bool) else repr(plain)}"


def count(session: Session, where: str, *, epsilon: Fraction, key: str | None = None, fresh: bool = False) -> Release:
    """Query the number of rows that satisfy a condition; `fresh` insists on new noise, whatever was released before."""
    text = f"SELECT COUNT(*) AS n FROM {TABLE} WHERE {where}"  # noqa: S608
    return session.query(text, epsilon=epsilon, key=key, fresh=fresh)


def count_noise(table: AttackTable, where: str, *, epsilon: Fraction, declared: Declared | None = None) -> Laplace:
    """Query one count at ε and return its noise mechanism, to sample from again."""
    return count_noises(table, where, epsilons=[epsilon], declared=declared)[0]


def count_noises(
    table: AttackTable, where: str, *, epsilons: Sequence[Fraction], declared: Declared | None = None
) -> list[Laplace]:
    """Query one count at each ε in one session and return the noise mechanisms."""
    with open_protected(table, epsilon=sum(epsilons, Fraction(0)), declared=declared) as session:
        return [laplace(count(session, where, epsilon=epsilon, fresh=True)) for epsilon in epsilons]


def laplace(release: Release) -> Laplace:
    """Return the Laplace mechanism of a release, such as any count without δ."""
    noise = mechanism(release)
    if not isinstance(noise, Laplace):
        raise TypeError("this release does not use Laplace noise")
    return noise


def mechanism(release: Release) -> Laplace | Gaussian:
    """Return the mechanism of a release, from its receipt, for attacks that need thousands of samples."""
    event = from_facts(release.receipt["event"])
    while isinstance(event, Composed) and len(event.parts) == 1 and event.parts[0][1] == 1:
        event = event.parts[0][0]
    if isinstance(event, LaplaceEvent):
        return Laplace(sensitivity=event.sensitivity, scale=event.scale)
    if isinstance(event, GaussianEvent):
        return Gaussian(sensitivity_squared=event.sensitivity_squared, variance=event.variance)
    raise ValueError("this release does not use exactly one additive mechanism")


def number(release: Release) -> float:
    """Return the only number of a release."""
    ((value,),) = release.rows
    return float(str(value))


def _write(table: AttackTable, path: Path) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(table.columns)
        writer.writerows(zip(*(_texts(values) for values in table.columns.values()), strict=True))


def _texts(values: NDArray[Any]) -> list[object]:
    if values.dtype.kind == "f":
        shown: list[object] = np.where(np.isnan(values), "", values.astype(object)).tolist()
        return shown
    plain: list[object] = values.tolist()
    return plain
