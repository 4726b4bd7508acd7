"""A minimal FastAPI endpoint that runs plain DuckDB queries, without privacy or a ledger: a baseline."""

import sys
from pathlib import Path

import duckdb
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel


class Body(BaseModel):
    """The request body."""

    sql: str


def app(data: Path) -> FastAPI:
    """Serve one CSV file, loaded into memory, as the table health."""
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE health AS SELECT * FROM read_csv('{data}')")
    bare = FastAPI()

    @bare.get("/readyz")
    def ready() -> str:
        return "ready"

    @bare.post("/query")
    def query(body: Body) -> dict[str, object]:
        cursor = connection.cursor().execute(body.sql)
        return {"columns": [each[0] for each in cursor.description or ()], "rows": cursor.fetchall()}

    return bare


if __name__ == "__main__":
    uvicorn.run(app(Path(sys.argv[1])), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning", access_log=False)
