"""Read the model of a release.

Tested in tests/analyses/programs/test_kmeans.py.
"""

from collections.abc import Mapping
from typing import Any

from hubbub.answers.release import Release
from hubbub.errors import ParameterError


def model_of(release: Release, name: str) -> Mapping[str, Any]:
    """Give the model of a release of this analysis, or reject the release."""
    if not release.model or release.analysis != name:
        raise ParameterError(
            "HB196", f"This release has no {name} model.", f'Use a release of h.query("CALL {name}(…)", epsilon=…).'
        )
    return release.model


def flag(value: object, name: str) -> bool:
    """Check that a value is TRUE or FALSE."""
    if not isinstance(value, bool):
        raise ParameterError("HB101", f"{name} must be TRUE or FALSE.", "Correct its value.")
    return value
