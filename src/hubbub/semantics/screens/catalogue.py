"""All screens of this package by name, in the order in which they are listed.

Tested in tests/semantics/screens/test_screens.py.
"""

from hubbub.semantics import examples
from hubbub.semantics.screens import (
    accuracy,
    adversaries,
    composition,
    consequences,
    definitions,
    game,
    hypothesis,
    lemmas,
    many_answers,
    sensitivity,
    theorems,
    under_delta,
    unprotected,
)
from hubbub.semantics.screens.base import Screen

_GROUPS = (
    (game.SCREEN,),
    examples.SCREENS,
    consequences.SCREENS,
    composition.SCREENS,
    (many_answers.SCREEN,),
    adversaries.SCREENS,
    definitions.SCREENS,
    hypothesis.SCREENS,
    theorems.SCREENS,
    under_delta.SCREENS,
    sensitivity.SCREENS,
    lemmas.SCREENS,
    unprotected.SCREENS,
    accuracy.SCREENS,
)

SCREENS: dict[str, Screen] = {screen.name: screen for group in _GROUPS for screen in group}
