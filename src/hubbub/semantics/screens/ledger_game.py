"""The game against everything released so far: the worst case that the total of a ledger allows.

Tested in tests/semantics/screens/test_game.py.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from hubbub.core.events import Composed, Event, to_facts
from hubbub.core.numbers import brief
from hubbub.core.odds import LARGE
from hubbub.errors import ParameterError
from hubbub.semantics.history import QueryHistory
from hubbub.semantics.screens.base import Reading
from hubbub.semantics.screens.game import SCREEN


def ledger_game(given: Mapping[str, str], history: QueryHistory) -> Reading:
    """Play the game against the charges of a history, with their events in a sentence."""
    counts: Counter[str] = Counter()
    for event in history.events:
        counts.update(_mechanisms(event))
    listed = ", ".join(f"{count:,} × {name}" for name, count in counts.most_common())
    plain = history.plain()
    if plain is None:
        raise ParameterError(
            "HB694",
            "The charges do not satisfy pure DP, and the cap has no δ to express their cost at.",
            "Set a positive δ on the budget.",
        )
    return game_against(
        given,
        epsilon=plain.epsilon if history.count else Fraction(0),
        delta=plain.delta if history.count else Fraction(0),
        source=history.heading.removesuffix(".") + (f" ({listed})." if listed else "."),
    )


def game_against(given: Mapping[str, str], *, epsilon: Fraction, delta: Fraction, source: str) -> Reading:
    """Play the game against a total of (ε, δ), however its queries were chosen."""
    if epsilon > LARGE:
        raise ParameterError(
            "HB694", f"The total of ε = {brief(epsilon)} bounds no belief.", "Play the game for another dataset."
        )
    reading = SCREEN.read(given, {"mechanism": "worst", "epsilon": epsilon, "delta": delta})
    total = f"ε = {brief(epsilon)}" + (f" and δ = {brief(delta)}" if delta else "")
    words = "There is nothing to learn from." if not epsilon else f"However the queries were chosen, they cost {total}."
    note = f"{source} {words} The game shows the worst that such a total allows, not what these queries did."
    return replace(reading, sentences=(note, *reading.sentences))


def _mechanisms(event: Event) -> Counter[str]:
    """Count the mechanisms of an event by the names that the ledger stores."""
    if not isinstance(event, Composed):
        return Counter({str(to_facts(event)["mechanism"]): 1})
    counts: Counter[str] = Counter()
    for part, times in event.parts:
        for name, count in _mechanisms(part).items():
            counts[name] += count * times
    return counts
