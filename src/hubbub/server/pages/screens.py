"""Pages of the screens: one explanation each, with parameters to vary.

They work as plain forms. The script of the pages sends the same form as the sliders move, and replaces the reading.
"""

from starlette.responses import Response

from hubbub.attacks.screens import SCREENS
from hubbub.errors import HubbubError
from hubbub.semantics.screens import svg
from hubbub.semantics.screens.base import Reading
from hubbub.server.pages.frame import Visit, drawing
from hubbub.server.problems import not_found, status_of


def show(visit: Visit) -> Response:
    """Show a screen for the values of its controls in the query string."""
    screen = SCREENS.get(visit.request.path_params["name"])
    if screen is None:
        raise not_found("page at this address")
    known = {control.name for control in screen.controls}
    # parameters of other forms are ignored, as on the other pages
    given = {name: text for name, text in visit.request.query_params.items() if name in known}
    reading: Reading | None = None
    problem = None
    try:
        reading = screen.read(given)
    except HubbubError as error:
        problem = error
    return visit.render(
        "explain_screen.html",
        status=status_of(problem) if problem else 200,
        screen=screen,
        controls=screen.controls,
        values=screen.values(given),
        reading=reading,
        drawn="" if reading is None or reading.figure is None else drawing(svg.draw(reading.figure)),
        problem=problem,
    )
