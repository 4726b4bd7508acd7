"""What a user of Apache Superset does, by its Python and REST API; it runs with Superset's own Python.

It prints a line of JSON for each step: its name, the status, and what came.
"""

import json
import logging
import sys
import warnings
from typing import Any

warnings.simplefilter("ignore")
logging.disable(logging.CRITICAL)

from superset.app import create_app  # type: ignore[import-not-found]  # noqa: E402

URI = sys.argv[1]
COUNTS = "SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY region"
MEAN = {"expressionType": "SIMPLE", "aggregate": "AVG", "column": {"column_name": "cost"}, "label": "mean cost"}
WEEK = {
    "timeGrain": "P1W",
    "columnType": "BASE_AXIS",
    "sqlExpression": "day",
    "label": "day",
    "expressionType": "SQL",
}

client = create_app().test_client()
headers: dict[str, str] = {}
asked = 0


def call(method: str, path: str, body: object = None) -> tuple[int, Any]:
    """Send one request."""
    reply = getattr(client, method)(f"/api/v1/{path}", json=body, headers=headers)
    return reply.status_code, reply.get_json(silent=True)


def step(name: str, status: int, found: object) -> None:
    """Print what came of a step."""
    print(json.dumps([name, status, found], default=str), flush=True)


def lab(database: int, sql: str) -> tuple[int, Any]:
    """Run a query in SQL Lab."""
    global asked
    asked += 1
    body = {"database_id": database, "sql": sql, "schema": "public", "runAsync": False, "client_id": f"c{asked}"}
    return call("post", "sqllab/execute/", body)


def rows(answer: tuple[int, Any]) -> tuple[int, Any]:
    """Return the rows of SQL Lab, or what it said instead."""
    status, form = answer
    return status, form.get("data", form.get("errors")) if isinstance(form, dict) else form


def chart(dataset: int, **query: object) -> tuple[int, Any]:
    """Ask for the data of a chart."""
    body = {
        "datasource": {"id": dataset, "type": "table"},
        "force": False,
        "result_format": "json",
        "result_type": "full",
        "queries": [{"row_limit": 100, **query}],
    }
    status, form = call("post", "chart/data", body)
    return status, form["result"][0]["data"] if status == 200 else form


_, token = call("post", "security/login", {"username": "admin", "password": "admin", "provider": "db"})
headers["Authorization"] = f"Bearer {token['access_token']}"
place = {"sqlalchemy_uri": URI, "database_name": "hubbub"}
step("test the connection", *call("post", "database/test_connection/", place))
status, made = call("post", "database/", {**place, "expose_in_sqllab": True})
step("add the database", status, made)
database = made["id"]
status, listed = call("get", f"database/{database}/tables/?q=(schema_name:public)")
step("list tables", status, sorted(each["value"] for each in listed["result"]))
status, table = call("get", f"database/{database}/table_metadata/?name=visits&schema=public")
step("describe a table", status, [each["name"] for each in table["columns"]])
step("SQL Lab: a query with a price", *rows(lab(database, COUNTS)))
step("SQL Lab: again, free", *rows(lab(database, COUNTS)))
step("SQL Lab: a refusal", *rows(lab(database, "SELECT * FROM visits")))
step("SQL Lab: goes on after it", *rows(lab(database, "SELECT word, whole FROM kinds ORDER BY whole")))
status, made = call("post", "dataset/", {"database": database, "schema": "public", "table_name": "visits"})
step("make a dataset", status, made)
adult = [{"col": "age", "op": ">=", "val": 18}]
shown = {"columns": ["region"], "metrics": ["count", MEAN], "orderby": [["count", False]], "filters": adult}
step("a chart by region", *chart(made["id"], **shown))
step("the chart again, free", *chart(made["id"], **shown))
weeks = {"columns": [WEEK], "metrics": ["count"], "granularity": "day", "extras": {"time_grain_sqla": "P1W"}}
step("a chart over time", *chart(made["id"], **weeks, time_range="2026-01-01 : 2026-02-01"))
status, found = call("get", f"datasource/table/{made['id']}/column/region/values/")
step("the values of a filter", status, found["result"] if status == 200 else found)
