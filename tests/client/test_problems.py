"""Every error that is raised anywhere has a code by which a client finds its class again."""

import re
from pathlib import Path
from typing import Any

import httpx2
import pytest

import hubbub
from hubbub import errors
from hubbub.client import problems
from hubbub.errors import AccessError, HubbubError, QueryError, RunError, ServerError, SpentError

SOURCE = Path(hubbub.__file__).parent
RAISED = re.compile(r'\b(\w+Error)\(\s*"(HB\d{3})"')


def raised(source: Path) -> list[tuple[str, str, str]]:
    files = [path for path in sorted(source.rglob("*.py")) if path.parent.name != "dbapi"]  # its errors never travel
    return [(path.name, *match) for path in files for match in RAISED.findall(path.read_text())]


def test_the_code_of_every_error_tells_its_class() -> None:
    found = raised(SOURCE)
    assert len(found) > 100
    wrong = [
        (where, name, code)
        for where, name, code in found
        if not issubclass(getattr(errors, name, errors.BudgetError), problems.error_class(code))
        or not issubclass(problems.error_class(code), getattr(errors, name, HubbubError))
    ]
    assert wrong == []


def problem(**changes: Any) -> dict[str, Any]:
    return {"code": "HB501", "detail": "line 2, column 5: no.", "remedy": "Yes.", "position": [2, 5], **changes}


def test_a_problem_becomes_the_error_that_it_was() -> None:
    found = problems.error(problem())
    assert isinstance(found, QueryError)
    original = QueryError("HB501", "no.", "Yes.", (2, 5))
    found = problems.error(problem(detail=original.message))
    assert isinstance(found, QueryError)
    assert (str(found), found.position, found.args) == (str(original), (2, 5), original.args)
    assert type(problems.error(problem(code="HB900"))) is RunError
    assert type(problems.error(problem(code="HB901"))) is SpentError
    assert type(problems.error(problem(code="HB999"))) is HubbubError


def test_how_long_to_wait_is_told() -> None:
    response = httpx2.Response(429, json=problem(code="HB722"), headers={"Retry-After": "7"})
    found = problems.refusal(response)
    assert isinstance(found, AccessError)
    assert found.wait == 7
    assert problems.wait(httpx2.Response(503, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"})) == 0


@pytest.mark.parametrize(
    ("response", "code"),
    [
        (httpx2.Response(502, text="<html>Bad Gateway</html>"), "HB801"),
        (httpx2.Response(404, text="<html>nginx</html>"), "HB802"),
        (httpx2.Response(302, headers={"Location": "https://elsewhere.example"}), "HB802"),
        (httpx2.Response(500, json={"detail": "?"}), "HB802"),
        (httpx2.Response(500, json=[1]), "HB802"),
    ],
)
def test_what_is_no_problem_of_ours_is_said_to_be_none(response: httpx2.Response, code: str) -> None:
    found = problems.refusal(response)
    assert isinstance(found, ServerError)
    assert found.code == code
