"""Statements by their first words; what changes data, or cannot be read, is refused."""

import pytest

from hubbub.errors import ParameterError
from hubbub.gateway import statements as s
from hubbub.gateway.lexer import tokens


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("select 1", s.Ask("select 1")),
        ("CALL kmeans(table => 'v')", s.Ask("CALL kmeans(table => 'v')")),
        ("EXPLAIN (VERBOSE) SELECT 1", s.Explain(s.Ask("SELECT 1"))),
        ("set hubbub.within to '5%'", s.SetVariable("hubbub.within", "5%")),
        ("SET LOCAL search_path = public, x", s.SetVariable("search_path", "public, x")),
        ("SET TIME ZONE 'UTC'", s.SetVariable("timezone", "UTC")),
        ("SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY", s.Nothing("SET")),
        ("RESET hubbub.epsilon", s.SetVariable("hubbub.epsilon", None, "RESET")),
        ("SHOW TRANSACTION ISOLATION LEVEL", s.Show("transaction_isolation")),
        ("begin isolation level serializable", s.PgTransaction("BEGIN")),
        ("ROLLBACK TO SAVEPOINT a", s.PgTransaction("ROLLBACK TO")),
        ("DECLARE c NO SCROLL CURSOR FOR SELECT 1", s.Declare("c", s.Ask("SELECT 1"))),
        ("FETCH FORWARD 5 FROM c", s.Fetch("c", 5)),
        ("FETCH ALL IN c", s.Fetch("c", None)),
        ("fetch c", s.Fetch("c", 1)),
        ("MOVE 2 IN c", s.Fetch("c", 2, move=True)),
        ("CLOSE ALL", s.Close(None, "CLOSE CURSOR ALL")),
        ("DEALLOCATE PREPARE a", s.Close("a", "DEALLOCATE")),
        ("COPY (SELECT 1) TO STDOUT", s.Copy(s.Ask("SELECT 1"))),
        ("COPY v TO STDOUT", s.Copy(s.Ask("SELECT * FROM v"))),
        (
            "COPY (SELECT (1)) TO STDOUT WITH (FORMAT csv, HEADER, DELIMITER ';', NULL 'x')",
            s.Copy(s.Ask("SELECT (1)"), "csv", header=True, delimiter=";", null="x"),
        ),
        ("COPY (SELECT 1) TO STDOUT CSV HEADER", s.Copy(s.Ask("SELECT 1"), "csv", header=True, delimiter=",", null="")),
        ("COPY (SELECT 1) TO STDOUT (FORMAT 'binary')", s.Copy(s.Ask("SELECT 1"), "binary")),
        ('COPY (SELECT 1) TO STDOUT (FORMAT "binary")', s.Copy(s.Ask("SELECT 1"), "binary")),
    ],
)
def test_a_statement_is_read(text: str, read: s.Statement) -> None:
    assert s.read(text) == [read]


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO v VALUES (1)",
        "CREATE TEMP TABLE x (a int)",
        "DROP TABLE v",
        "VACUUM",
        "DO $$ $$",
        "EXPLAIN ANALYZE SELECT 1",
        "EXPLAIN (ANALYZE, COSTS) SELECT 1",
        "EXPLAIN",
        "COPY v FROM STDIN",
        "COPY (SELECT 1) TO '/tmp/x'",
        "COPY (SELECT 1) TO PROGRAM 'sh'",
        "COPY (SELECT 1) TO STDOUT (FORMAT parquet)",
        "COPY (SELECT 1 TO STDOUT",
        "SET x",
        "DECLARE c",
        "FETCH BACKWARD 1 FROM c",
        "FETCH x FROM c",
        "CLOSE",
    ],
)
def test_what_changes_data_or_is_not_supported_is_refused(text: str) -> None:
    with pytest.raises(ParameterError, match=r"HB809|HB817"):
        s.read(text)


@pytest.mark.parametrize(
    ("comment", "options"),
    [
        ("/* epsilon=0.1 */", {"epsilon": "0.1"}),
        ("/*+ within='5%', groups = 2 */", {"within": "5%", "groups": "2"}),
        ("-- hubbub.epsilon=0.1", {"epsilon": "0.1"}),
        ("/* Metabase:: userID: 1 queryType: native */", {}),
        ("/* epsilon=0.1 and more */", {}),
        ("/* raw=on */", {}),
        ("/* use epsilon=0.1 */", {}),
    ],
)
def test_only_a_comment_that_is_a_list_of_options_sets_some(comment: str, options: dict[str, str]) -> None:
    assert s.hints(tokens(f"{comment}\nSELECT 1")) == options
