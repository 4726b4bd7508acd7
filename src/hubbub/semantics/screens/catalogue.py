"""All screens of this package by name, in the order in which they are listed."""

from hubbub.semantics import examples
from hubbub.semantics.screens import game
from hubbub.semantics.screens.base import Screen

SCREENS: dict[str, Screen] = {screen.name: screen for screen in (game.SCREEN, *examples.SCREENS)}
