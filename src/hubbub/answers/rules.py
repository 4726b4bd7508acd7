"""What the data owner's rules for small numbers and rounding did to an answer, in words.

Tested in tests/sql/test_disclosure.py.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from hubbub.core.disclosure import disclosure_sentence

if TYPE_CHECKING:
    from hubbub.answers.release import Release


def rules_note(release: Release) -> str:
    """Say what was suppressed and rounded; empty if there are no rules."""
    form: Mapping[str, Any] = release.receipt.get("disclosure", {})
    said = disclosure_sentence(form, analysis=release.receipt.get("analysis", "batch") != "batch")
    if "suppress_below" not in form:
        return said
    if "after" in release.receipt:
        said += " Numbers that are computed from several groups leave suppressed ones out."
    noisy = [output.values for output in release.outputs if output.low is not None]
    hidden = sum(all(cell is None for cell in row) for row in zip(*noisy, strict=True))
    return f"{said} {hidden:,} of {len(release.ratio):,} rows are suppressed." if hidden else said


def suppressed_text(receipt: Mapping[str, Any]) -> str:
    """Write a noisy cell without a number.

    >>> suppressed_text({"disclosure": {"suppress_below": 11}}), suppressed_text({})
    ('suppressed (<11)', '–')
    """
    below = receipt.get("disclosure", {}).get("suppress_below")
    return "–" if below is None else f"suppressed (<{below})"
