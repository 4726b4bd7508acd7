"""Catalogue of attacks by name, each loaded on use; its settings are the keyword arguments of its `study`.

A new attack is one file with a function `study(table, *, epsilons, generator, …) -> AttackStudy` and one line here.

Tested in tests/attacks/test_isolation.py.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fractions import Fraction
from importlib import import_module
from types import MappingProxyType
from typing import Literal

import numpy as np

from hubbub.attacks.base import AttackStudy, Progress, no_progress
from hubbub.attacks.table import AttackTable
from hubbub.core import numbers
from hubbub.core.settings import Setting, kind_of, read_setting, settings_of
from hubbub.errors import AttackError

_GIVEN = ("table", "epsilons", "generator", "progress")


@dataclass(frozen=True, slots=True)
class Attack:
    """An entry of the catalogue: the location of its `study`, a summary, and whether it accepts a user's table."""

    name: str
    location: str
    summary: str
    table: Literal["no", "may", "must"] = "no"

    @property
    def study(self) -> Callable[..., AttackStudy]:
        """Load the function."""
        module, _, function = self.location.partition(":")
        study: Callable[..., AttackStudy] = getattr(import_module(module), function)
        return study

    @property
    def settings(self) -> Mapping[str, Setting]:
        """The settings with their defaults, from the signature."""
        return settings_of(self.study, _GIVEN)

    @property
    def about(self) -> str:
        """Description of the attack: the docstring of its `study`."""
        return inspect.getdoc(self.study) or self.summary

    def run(
        self,
        table: AttackTable | None = None,
        *,
        epsilons: Sequence[numbers.Number],
        generator: np.random.Generator,
        settings: Mapping[str, object] = MappingProxyType({}),
        progress: Progress = no_progress,
    ) -> AttackStudy:
        """Run the attack; settings given as text are converted to the types of their defaults."""
        if table is None and self.table == "must":
            raise AttackError(
                "HB642", f"The attack {self.name} needs a table.", f"Run `hubbub attack {self.name} table.csv`."
            )
        if table is not None and self.table == "no":
            raise AttackError(
                "HB642", f"The attack {self.name} runs on simulated data and accepts no table.", "Omit the table."
            )
        if not epsilons:
            raise AttackError("HB643", "No ε was given.", "Pass at least one, such as 1.")
        costs: list[Fraction] = sorted({numbers.epsilon(each) for each in epsilons})
        given = {name: self._setting(name, value) for name, value in settings.items()}
        return self.study(table, epsilons=costs, generator=generator, progress=progress, **given)

    def _setting(self, name: str, value: object) -> Setting:
        known = self.settings
        if name not in known:
            near = get_close_matches(name, known, n=1)
            remedy = f"Did you mean {near[0]}?" if near else f"Available settings: {', '.join(known) or 'none'}."
            raise AttackError("HB643", f"The attack {self.name} has no setting {name[:60]!r}.", remedy)
        read = read_setting(value, known[name])
        if read is None:
            raise AttackError(
                "HB643",
                f"The setting {name} of {self.name} must be {kind_of(known[name])}.",
                f"Use a value such as the default, {known[name]!r}.",
            )
        return read


_ATTACKS: tuple[Attack, ...] = (
    Attack(
        "differencing",
        "hubbub.attacks.differencing:study",
        "subtract two counts, with and without one person",
        table="may",
    ),
    Attack("averaging", "hubbub.attacks.averaging:study", "repeat a query and average the noise away"),
    Attack("subsampling", "hubbub.attacks.subsampling:study", "reword a query whose text determines the sample"),
    Attack("refusal", "hubbub.attacks.refusal:study", "learn from the queries that an auditor refuses"),
    Attack("linkage", "hubbub.attacks.linkage:study", "re-identify the rows of a table without names", table="may"),
    Attack(
        "homogeneity",
        "hubbub.attacks.homogeneity:study",
        "infer secrets from k-anonymous groups and suppressed counts",
        table="may",
    ),
    Attack(
        "intersection",
        "hubbub.attacks.intersection:study",
        "intersect k-anonymous tables of the same people",
        table="may",
    ),
    Attack(
        "swapping",
        "hubbub.attacks.swapping:study",
        "find rows although a column was swapped between pairs",
        table="may",
    ),
    Attack("tokens", "hubbub.attacks.tokens:study", "recover words that were replaced by hashes", table="may"),
    Attack("floats", "hubbub.attacks.floats:study", "exploit the low-order bits of floating-point noise"),
    Attack("timing", "hubbub.attacks.timing:study", "measure how long sampling the noise takes"),
    Attack("exhaustive", "hubbub.attacks.exhaustive:study", "search for a database that fits all subset sums"),
    Attack(
        "reconstruction",
        "hubbub.attacks.reconstruction:study",
        "solve for everyone's bit from a few random sums per person",
    ),
    Attack(
        "synthetic", "hubbub.attacks.synthetic_table:study", "reconstruct real people's bits from a synthetic table"
    ),
    Attack(
        "spectral", "hubbub.attacks.spectral:study", "filter independent noise from correlated columns", table="may"
    ),
    Attack("membership", "hubbub.attacks.membership:study", "infer who is in a group from its sums", table="may"),
    Attack(
        "shadow", "hubbub.attacks.shadow:study", "infer membership in synthetic data with shadow models", table="may"
    ),
    Attack("rereleases", "hubbub.attacks.rereleases:study", "average repeated releases"),
    Attack("separation", "hubbub.attacks.separation:study", "infer a parity from published data or from one query"),
    Attack(
        "isolation",
        "hubbub.attacks.isolation:study",
        "find a person in the output of a crowd sanitizer",
        table="may",
    ),
    Attack("isolator", "hubbub.attacks.isolator:study", "isolate a lonely person by published counts"),
    Attack(
        "attributes",
        "hubbub.attacks.attributes:study",
        "complete a person's attributes from a crowd sanitizer",
    ),
)

#: Every attack by its name.
ATTACKS: Mapping[str, Attack] = MappingProxyType({attack.name: attack for attack in _ATTACKS})


def find_attack(name: str) -> Attack:
    """Find an attack by its name."""
    if name in ATTACKS:
        return ATTACKS[name]
    near = get_close_matches(name, ATTACKS, n=1)
    remedy = f"Did you mean {near[0]}?" if near else "Run `hubbub attack` to list all attacks."
    raise AttackError("HB640", f"Unknown attack {name[:60]!r}.", remedy)
