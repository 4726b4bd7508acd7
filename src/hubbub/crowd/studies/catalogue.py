"""Catalogue of the studies by name, each loaded on use; its settings are the keyword arguments of its `study`.

A new study is one file with a function `study(*, rng, progress, …) -> CrowdStudy` and one line here.

Tested in tests/crowd/test_studies.py.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from types import MappingProxyType

import numpy as np

from hubbub.core.settings import Setting, kind_of, read_setting, settings_of
from hubbub.crowd.studies.base import CrowdStudy, Progress, no_progress
from hubbub.errors import CrowdError

_GIVEN = ("rng", "progress")


@dataclass(frozen=True, slots=True)
class StudyEntry:
    """An entry of the catalogue: its module, a summary, and the part of the paper that it is about."""

    name: str
    summary: str
    source: str

    @property
    def study(self) -> Callable[..., CrowdStudy]:
        """Load the function."""
        module = import_module(f"hubbub.crowd.studies.{self.name.replace('-', '_')}")
        function: Callable[..., CrowdStudy] = module.study
        return function

    @property
    def settings(self) -> Mapping[str, Setting]:
        """The settings with their defaults, from the signature."""
        return settings_of(self.study, _GIVEN)

    @property
    def about(self) -> str:
        """Description of the study: the docstring of its function."""
        return inspect.getdoc(self.study) or self.summary

    def run(
        self,
        *,
        rng: np.random.Generator,
        settings: Mapping[str, object] = MappingProxyType({}),
        progress: Progress = no_progress,
    ) -> CrowdStudy:
        """Run the study; settings given as text are converted to the types of their defaults."""
        given = {name: self._setting(name, value) for name, value in settings.items()}
        result = self.study(rng=rng, progress=progress, **given)
        progress(1.0, "done")
        return result

    def _setting(self, name: str, value: object) -> Setting:
        known = self.settings
        if name not in known:
            near = get_close_matches(name, known, n=1)
            remedy = f"Did you mean {near[0]}?" if near else f"Available settings: {', '.join(known) or 'none'}."
            raise CrowdError("HB685", f"The study {self.name} has no setting {name[:60]!r}.", remedy)
        read = read_setting(value, known[name])
        if read is None:
            raise CrowdError(
                "HB685",
                f"The setting {name} of {self.name} must be {kind_of(known[name])}.",
                f"Use a value such as the default, {known[name]!r}.",
            )
        return read


_STUDIES = (
    StudyEntry("isolation", "how often each adversary isolates a row, by dimension, crowd size or distance", "§ 4, 5"),
    StudyEntry("informed", "adversaries who know a distance, or all rows but one", "§ 5.1"),
    StudyEntry("perfect", "no sanitizer is perfect: auxiliary information that any useful release unlocks", "§ 3"),
    StudyEntry("smoothness", "data on few positions, which an exact histogram isolates in every dimension", "remark 2"),
    StudyEntry("balls", "masses and volumes of a winning ball, computed without sampling", "lemmas 1 and 2"),
    StudyEntry("attributes", "an adversary who knows a fraction of a row's attributes", "remark 4"),
    StudyEntry("cubes", "a recursive histogram of a mixture of separated cubes", "remark 4"),
    StudyEntry(
        "subspace", "an adversary who picks the few attributes to isolate in", "§ 7, isolation in few dimensions"
    ),
    StudyEntry("cross-training", "how far the best guess stays from a row of cross-training", "§ 6, lemma 5"),
    StudyEntry("clusters", "how much wider clusters of sanitized rows are", "§ 5.1"),
    StudyEntry("mixtures", "learning a mixture of Gaussians from sanitized rows", "§ 5.2, theorem 3, lemmas 3 and 4"),
    StudyEntry("round", "a first-level histogram of balls, spheres and Gaussians", "remark 4, § 7"),
    StudyEntry("covariance", "the covariance of the data, recovered from sanitized rows", "§ 5"),
    StudyEntry("tests", "whether a test on sanitized rows keeps its level and its power", "§ 7, utility"),
    StudyEntry("changes", "publishing again after the data changed", "§ 7, changes over time"),
    StudyEntry("databases", "several sanitized databases of the same people", "§ 7, multiple databases"),
    StudyEntry("categories", "a metric for categories, and what it blends", "§ 7, real-life data"),
)

#: Every study by its name.
STUDIES: Mapping[str, StudyEntry] = MappingProxyType({entry.name: entry for entry in _STUDIES})


def find_study(name: str) -> StudyEntry:
    """Find a study by its name."""
    if name in STUDIES:
        return STUDIES[name]
    near = get_close_matches(name, STUDIES, n=1)
    remedy = f"Did you mean {near[0]}?" if near else "Run `hubbub sanitize study` to list all studies."
    raise CrowdError("HB684", f"Unknown study {name[:60]!r}.", remedy)
