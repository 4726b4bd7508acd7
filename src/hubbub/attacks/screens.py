"""All screens of `hubbub explain NAME` and the page Explain: those of `semantics`, and those that compute attacks.

Tested in tests/cli/test_explain.py.
"""

from fractions import Fraction

from hubbub.attacks import code_screen
from hubbub.attacks.separations import table
from hubbub.core import numbers
from hubbub.errors import ParameterError
from hubbub.semantics.screens import base
from hubbub.semantics.screens.base import Reading, Screen
from hubbub.semantics.screens.catalogue import SCREENS as SEMANTIC
from hubbub.semantics.screens.figures import Curves

_FIELDS = ("bits", "people", "response", "subset", "histogram", "bound", "corrected", "printed", "asked")
_HEADINGS = ("d", "n", "resp.", "subset", "hist.", "bound", "2006", "print", "query")
_MOST = 4


def separation(*, epsilon: Fraction, n: str) -> Reading:
    """Compare non-interactive releases of a parity with one private answer."""
    people = tuple(numbers.integer(int(numbers.exact(part, "n")), "n", 1, 10**9) for part in n.split(","))
    if len(people) > _MOST:
        raise ParameterError("HB691", f"n has more than {_MOST} numbers.", "List fewer, such as 1,100,10000.")
    results = table.rows(epsilon=epsilon, people=people)
    first = [result for result in results if result.people == people[0]]
    curves = tuple(
        (name, tuple((float(result.bits), float(getattr(result, field))) for result in first))
        for name, field in (
            ("randomized response", "response"),
            ("bound for any view", "bound"),
            ("one query", "asked"),
        )
    )
    return Reading(
        (
            *table.sentences(epsilon=epsilon),
            "The table shows statistical differences for d bits and n people: 0 reveals nothing, 1 everything."
            " Non-interactive: randomized response (resp.), its best form (subset), a noisy histogram (hist.); upper"
            " bounds for 2/3 of all parities: ours (bound), that of 2006 corrected (2006) and as printed (print)."
            " Interactive: one private answer (query).",
        ),
        _HEADINGS,
        tuple(tuple(_brief(getattr(result, field)) for field in _FIELDS) for result in results),
        Curves(f"Does everybody satisfy a parity? n = {people[0]:,}", "bits d", "statistical difference", curves),
    )


def _brief(figure: float | None) -> str:
    if figure is None or isinstance(figure, int):
        return "" if figure is None else f"{figure:,}"
    return f"{figure:.3g}" if figure >= 0.01 else f"{figure:.2g}".replace("e-0", "e-")


SCREENS: dict[str, Screen] = SEMANTIC | {
    "separation": Screen(
        "separation",
        "Non-interactive against interactive release: does everybody satisfy a parity?",
        "Why hubbub answers queries instead of publishing one release for all of them (Dwork and others 2006, section"
        " 4).",
        (base.epsilon(), base.Control("n", "People", "1,100,10000", "text")),
        separation,
    ),
    code_screen.SCREEN.name: code_screen.SCREEN,
}
