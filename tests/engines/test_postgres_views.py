"""Views in PostgreSQL: what depends on the clock, the session or chance is refused; what settings fix is accepted."""

import psycopg
import pytest
from tests.fixtures.postgres import place
from tests.fixtures.postgres_server import Server

from hubbub.engines.postgres.connection import schema
from hubbub.errors import ConfigError

FURNISHED = """
CREATE TABLE base (id int, name text, at timestamptz, day date);
CREATE FUNCTION recent() RETURNS timestamptz LANGUAGE sql STABLE AS 'SELECT max(at) FROM public.base';
CREATE FUNCTION twice(int) RETURNS int LANGUAGE sql IMMUTABLE AS 'SELECT 2 * $1';
CREATE VIEW inner_view AS SELECT id, name FROM base WHERE at < now();
"""
REFUSED = {
    "SELECT id FROM base WHERE at < now()": r"now\(\)",
    "SELECT id FROM base WHERE at < transaction_timestamp()": r"transaction_timestamp\(\)",
    "SELECT id FROM base WHERE at < statement_timestamp()": r"statement_timestamp\(\)",
    "SELECT id FROM base WHERE day < CURRENT_DATE": "CURRENT_DATE",
    "SELECT id FROM base WHERE at < CURRENT_TIMESTAMP": "CURRENT_TIMESTAMP",
    "SELECT id FROM base WHERE at < LOCALTIMESTAMP(0)": "LOCALTIMESTAMP",
    "SELECT id FROM base WHERE name = CURRENT_USER": "CURRENT_USER",
    "SELECT id FROM base WHERE name = current_schema()": r"current_schema\(\)",
    "SELECT id FROM base WHERE name = current_setting('application_name')": r"current_setting\(\)",
    "SELECT id FROM base WHERE age(at) > interval '1 year'": r"age\(\)",
    "SELECT id FROM base WHERE id < random()": r"random\(\)",
    "SELECT id FROM base WHERE at = public.recent()": r"recent\(\)",
    "SELECT id FROM base TABLESAMPLE SYSTEM (10)": "TABLESAMPLE",
    "SELECT id FROM inner_view": r"now\(\)",
    "SELECT id, txid_current() AS t FROM base": r"txid_current\(\)",
}
ACCEPTED = (
    "SELECT id, public.twice(id) AS n, lower(name) AS name FROM base",
    "SELECT id, at::date AS d, date_trunc('month', at) AS m, to_char(at, 'YYYY') AS y FROM base",
    "SELECT id, extract(hour FROM at) AS h, at + interval '1 day' AS t, at AT TIME ZONE 'Asia/Tokyo' AS z FROM base",
    "SELECT id, concat(name, id) AS c, day < at AS b, row_number() OVER (PARTITION BY id ORDER BY at) AS r FROM base",
    "SELECT id, (SELECT count(*) FROM base AS s WHERE s.id = b.id) AS n FROM base AS b",
)


def test_views_that_change_by_themselves_are_refused_and_others_are_not(postgres_server: Server) -> None:
    with postgres_server.database() as dsn:
        database = str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])
        postgres_server.run(FURNISHED, database)
        for number, body in enumerate((*REFUSED, *ACCEPTED)):
            postgres_server.run(f"CREATE VIEW v{number} AS {body}", database)
        for number, why in enumerate(REFUSED.values()):
            with pytest.raises(ConfigError, match=f"HB411.*uses {why}"):
                schema(place(postgres_server, database, f"v{number}"))
        for number in range(len(REFUSED), len(REFUSED) + len(ACCEPTED)):
            assert schema(place(postgres_server, database, f"v{number}"))[0].name == "id"
        # a materialized view is a table: its rows change when it is refreshed, and that is seen
        postgres_server.run("CREATE MATERIALIZED VIEW stored AS SELECT id FROM base WHERE at < now()", database)
        assert schema(place(postgres_server, database, "stored"))[0].name == "id"
