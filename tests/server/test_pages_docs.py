"""The page /docs lists the whole API for those who are signed in."""

from typing import Any

from hubbub.server.pages.api_docs import operations


def test_every_route_and_field_is_on_the_page(shared: Any, visitor: Any) -> None:
    document = shared.client(None).get("/api/v1/openapi.json").json()
    page = visitor("ana").get("/docs").text
    for path, item in document["paths"].items():
        for method in item:
            assert f"<code>{method.upper()} {path}</code>" in page
    assert "Target margin of error (95%) instead of ε" in page


def test_strangers_are_sent_to_the_sign_in_page(shared: Any) -> None:
    answer = shared.client(None).get("/docs", follow_redirects=False)
    assert answer.status_code == 303
    assert answer.headers["location"].startswith("/sign-in")


def test_a_body_without_a_named_schema_lists_its_own_fields() -> None:
    body = {"content": {"application/json": {"schema": {"properties": {"x": {"description": "An x."}}}}}}
    document = {"components": {"schemas": {}}, "paths": {"/api/v1/x/{y}": {"post": {"requestBody": body}}}}
    (only,) = operations(document)
    assert only.fields == (("x", "An x."),)
    assert only.anchor == "post-x-y"
