"""Pages of the screens: one explanation each, with parameters to vary.

They work as plain forms. The script of the pages sends the same form as the sliders move, and replaces the reading.
"""

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from starlette.responses import Response

from hubbub.answers.budget import CapState
from hubbub.attacks.screens import SCREENS
from hubbub.errors import HubbubError, ParameterError
from hubbub.semantics.games import databases
from hubbub.semantics.screens import svg
from hubbub.semantics.screens.base import Reading, Screen
from hubbub.semantics.screens.game import NAMES
from hubbub.semantics.screens.game_tables import label
from hubbub.semantics.screens.ledger_game import game_against
from hubbub.server.pages.frame import Visit, drawing
from hubbub.server.problems import not_found, status_of

#: The parameters of the game that its page shows as a table.
_TABLES = ("prior", "known", "secret")


def show(visit: Visit) -> Response:
    """Show a screen for the values of its controls in the query string."""
    screen = SCREENS.get(visit.request.path_params["name"])
    if screen is None:
        raise not_found("page at this address")
    query = dict(visit.request.query_params)
    known = {control.name for control in screen.controls}
    # parameters of other forms are ignored, as on the other pages
    given = {name: text for name, text in query.items() if name in known}
    values = screen.values(given)
    game = _Table(query, values) if screen.name == "game" else None
    reading, problem = None, None
    try:
        reading = screen.read(given) if game is None else _play(visit, screen, given | game.given(), query)
    except HubbubError as error:
        problem = error
    return visit.render(
        "explain_screen.html" if game is None else "explain_game.html",
        status=status_of(problem) if problem else 200,
        screen=screen,
        screens=SCREENS,
        controls=[control for control in screen.controls if game is None or control.name not in _TABLES],
        values=values,
        reading=reading,
        drawn="" if reading is None or reading.figure is None else drawing(svg.draw(reading.figure)),
        problem=problem,
        **({} if game is None else game.shown() | _ledger(visit, query)),
    )


class _Table:
    """The table of the game: a weight for each database, whether it is possible, and whether it is in the secret."""

    def __init__(self, query: Mapping[str, str], values: Mapping[str, str]) -> None:
        sizes = [int(values[name]) if values[name] in ("1", "2", "3") else 2 for name in ("people", "values")]
        self.people, self.name = sizes[0], f"{sizes[0]}x{sizes[1]}"
        self.labels = [label(rows) for rows in databases(range(sizes[1]), people=sizes[0])][:9]
        sent = query.get("table") == self.name  # a table of another size is not this one
        self.weights = {each: query.get(f"weight-{each}", "1") if sent else "1" for each in self.labels}
        self.possible = [each for each in self.labels if not sent or f"possible-{each}" in query]
        self.secret = [each for each in self.labels if (f"secret-{each}" in query if sent else each[0] == "1")]

    def given(self) -> dict[str, str]:
        """Return the table as parameters of the screen."""
        if not self.possible or not self.secret:
            raise ParameterError(
                "HB694", "No database is possible, or none is in the secret.", "Check at least one of each."
            )
        weights = ",".join(f"{each}={weight.strip()[:9] or '0'}" for each, weight in self.weights.items())
        return {"prior": weights, "known": ",".join(self.possible), "secret": ",".join(self.secret)}

    def shown(self) -> dict[str, Any]:
        """Return what the template shows."""
        return {
            "table": self.name,
            "people": ", ".join(NAMES[: self.people]),
            "worlds": [
                {"label": each, "weight": weight, "possible": each in self.possible, "secret": each in self.secret}
                for each, weight in self.weights.items()
            ],
        }


def _play(visit: Visit, screen: Screen, given: Mapping[str, str], query: Mapping[str, str]) -> Reading:
    """Play the game, against everything released so far if a dataset is chosen."""
    dataset = query.get("dataset", "")
    if not dataset:
        return screen.read(given)
    state = _states(visit).get(dataset)
    if state is None or state.spent is None:
        raise ParameterError("HB694", "This dataset has no total ε.", "Choose another dataset, or none.")
    return game_against(
        given,
        epsilon=state.spent,
        delta=state.delta if state.spent else Fraction(0),
        source=f"All queries so far on {dataset}.",
    )


def _ledger(visit: Visit, query: Mapping[str, str]) -> dict[str, Any]:
    return {"datasets": list(_states(visit)), "dataset": query.get("dataset", "")}


def _states(visit: Visit) -> dict[str, CapState]:
    """Return the cap on all queries of each dataset that the visitor sees, as the page Explain does."""
    return {
        view.dataset: state
        for view in visit.service.catalog.budget(visit.principal)
        for state in view.caps
        if state.scope == "dataset" and state.per is None
    }
