"""The page /docs: every route of the HTTP API with its parameters and fields, from the OpenAPI document.

Tested in tests/server/test_pages_docs.py.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from starlette.responses import Response

from hubbub.server.pages.frame import Visit


@dataclass(frozen=True, slots=True)
class Operation:
    """One route: its method and path, what it does, and what it takes."""

    method: str
    path: str
    text: str
    parameters: tuple[tuple[str, str], ...]
    fields: tuple[tuple[str, str], ...]

    @property
    def anchor(self) -> str:
        """The name of its part of the page."""
        path = self.path.removeprefix("/api/v1/").translate({ord("/"): "-", ord("{"): None, ord("}"): None})
        return f"{self.method.lower()}-{path}"


def operations(document: Mapping[str, Any]) -> Iterator[Operation]:
    """Read the routes out of an OpenAPI document."""
    schemas = document["components"]["schemas"]
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            text = operation.get("description") or operation.get("summary") or ""
            parameters = [(each["name"], each.get("description", "")) for each in operation.get("parameters", ())]
            content = operation.get("requestBody", {}).get("content", {})
            body: Mapping[str, Any] = next((each.get("schema", {}) for each in content.values()), {})
            named = schemas.get(str(body.get("$ref", "")).rpartition("/")[2], body)
            fields = [(name, value.get("description", "")) for name, value in named.get("properties", {}).items()]
            yield Operation(method.upper(), path, text, tuple(parameters), tuple(fields))


def show(visit: Visit) -> Response:
    """Show the API to somebody who is signed in."""
    listed = list(operations(visit.request.app.openapi()))
    url = visit.service.settings.public_url or str(visit.request.base_url)
    return visit.render("docs.html", operations=listed, url=url.rstrip("/"))
