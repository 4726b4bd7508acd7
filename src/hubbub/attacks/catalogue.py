"""All attacks by name, each loaded when it is used; its settings are the keywords of its `study`.

A new attack is one file with a function `study(table, *, epsilons, generator, …) -> Study` and one line here.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from importlib import import_module
from math import isfinite
from types import MappingProxyType
from typing import Literal

import numpy as np

from hubbub.attacks.base import Progress, Study, unheard
from hubbub.attacks.table import Table
from hubbub.core import numbers
from hubbub.errors import AttackError

Setting = int | float | str | bool | tuple[str, ...]

_GIVEN = ("table", "epsilons", "generator", "progress")
_LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Attack:
    """One line of the catalogue: where its `study` is, what it shows, and whether it takes a table of the user's."""

    name: str
    place: str
    summary: str
    table: Literal["no", "may", "must"] = "no"

    @property
    def study(self) -> Callable[..., Study]:
        """Load the function."""
        module, _, function = self.place.partition(":")
        found: Callable[..., Study] = getattr(import_module(module), function)
        return found

    @property
    def settings(self) -> Mapping[str, Setting]:
        """The settings with their defaults, from the signature."""
        found = inspect.signature(self.study).parameters.values()
        return MappingProxyType({each.name: each.default for each in found if each.name not in _GIVEN})

    @property
    def about(self) -> str:
        """What the attack does, in the words of its `study`."""
        return inspect.getdoc(self.study) or self.summary

    def run(
        self,
        table: Table | None = None,
        *,
        epsilons: Sequence[numbers.Number],
        generator: np.random.Generator,
        settings: Mapping[str, object] = MappingProxyType({}),
        progress: Progress = unheard,
    ) -> Study:
        """Run it; settings may come as text, and are read as what their defaults are."""
        if table is None and self.table == "must":
            raise AttackError("HB642", f"{self.name} needs a table.", f"Name one: hubbub attack {self.name} table.csv")
        if table is not None and self.table == "no":
            raise AttackError(
                "HB642", f"{self.name} takes no table: it runs on one that it makes itself.", "Leave the table out."
            )
        if not epsilons:
            raise AttackError("HB643", "no ε is given.", "Give at least one, such as 1.")
        prices: list[Fraction] = sorted({numbers.epsilon(each) for each in epsilons})
        given = {name: self._setting(name, value) for name, value in settings.items()}
        return self.study(table, epsilons=prices, generator=generator, progress=progress, **given)

    def _setting(self, name: str, value: object) -> Setting:
        known = self.settings
        if name not in known:
            near = get_close_matches(name, known, n=1)
            remedy = f"Did you mean {near[0]}?" if near else f"It has: {', '.join(known) or 'none'}."
            raise AttackError("HB643", f"{self.name} has no setting {name[:60]!r}.", remedy)
        read = _read(value, known[name])
        if read is None:
            kind = {bool: "true or false", int: "a whole number", float: "a number", tuple: "names, with commas"}
            wanted = kind.get(type(known[name]), "text")
            raise AttackError("HB643", f"{name} of {self.name} is not {wanted}.", f"The default is {known[name]!r}.")
        return read


def _read(value: object, default: Setting) -> Setting | None:
    """Read a setting as its default is; None where it cannot be read so."""
    if isinstance(value, str) and len(value) > _LONGEST:
        return None
    if isinstance(default, bool):
        words = {"true": True, "yes": True, "false": False, "no": False}
        return value if isinstance(value, bool) else words.get(str(value).strip().lower())
    if isinstance(default, tuple):
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
            return None
        return tuple(part.strip() for part in parts if part.strip())
    if isinstance(default, str):
        return value if isinstance(value, str) else None
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        if isinstance(default, int):
            return None if isinstance(value, float) else int(value)
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if isfinite(number) else None


_ATTACKS: tuple[Attack, ...] = (
    Attack("differencing", "hubbub.attacks.differencing:study", "two large counts, with and without Mr X", table="may"),
    Attack("averaging", "hubbub.attacks.averaging:study", "ask the same again and again, until the noise is gone"),
    Attack("subsampling", "hubbub.attacks.subsampling:study", "other words for the same, where words choose a sample"),
    Attack("refusal", "hubbub.attacks.refusal:study", "learn from what an auditor refuses to answer"),
    Attack("linkage", "hubbub.attacks.linkage:study", "name the rows of a table that has no names", table="may"),
    Attack(
        "homogeneity",
        "hubbub.attacks.homogeneity:study",
        "read secrets off k-anonymous groups and hidden counts",
        table="may",
    ),
    Attack("tokens", "hubbub.attacks.tokens:study", "read words again that were replaced by hashes", table="may"),
    Attack("floats", "hubbub.attacks.floats:study", "read the last bits of noise that was made in floating point"),
    Attack("timing", "hubbub.attacks.timing:study", "time the noise as it is drawn"),
    Attack("exhaustive", "hubbub.attacks.exhaustive:study", "try every database until one fits all subset sums"),
    Attack(
        "reconstruction",
        "hubbub.attacks.reconstruction:study",
        "solve for everybody's bit from a few random sums a person",
    ),
    Attack("synthetic", "hubbub.attacks.synthetic_table:study", "ask a synthetic table sums and solve for real people"),
    Attack("spectral", "hubbub.attacks.spectral:study", "filter independent noise off correlated columns", table="may"),
    Attack("membership", "hubbub.attacks.membership:study", "tell who is in a group from its sums", table="may"),
    Attack("shadow", "hubbub.attacks.shadow:study", "tell who is in synthetic data, by making such data", table="may"),
    Attack("rereleases", "hubbub.attacks.rereleases:study", "average what is published again and again"),
    Attack("separation", "hubbub.attacks.separation:study", "tell a parity from published answers, or from one asked"),
    Attack(
        "isolation",
        "hubbub.attacks.isolation:study",
        "find a person in data that was blended in with the crowd",
        table="may",
    ),
)

#: Every attack by its name.
ATTACKS: Mapping[str, Attack] = MappingProxyType({attack.name: attack for attack in _ATTACKS})


def find(name: str) -> Attack:
    """Find an attack by its name."""
    if name in ATTACKS:
        return ATTACKS[name]
    near = get_close_matches(name, ATTACKS, n=1)
    remedy = f"Did you mean {near[0]}?" if near else "hubbub attack lists them all."
    raise AttackError("HB640", f"there is no attack called {name[:60]!r}.", remedy)
