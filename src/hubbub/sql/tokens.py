"""The allow-list of SQL tokens. Every kind of token that is not listed here is rejected.

Tested in tests/sql/test_parse.py.
"""

from sqlglot.tokenizer_core import TokenType as T


def token_set(names: str) -> frozenset[T]:
    """Return the tokens with these names, separated by spaces."""
    return frozenset(T[name] for name in names.split())


#: Keywords that start a statement other than a query.
COMMANDS = token_set(
    """
    ALTER ANALYZE ATTACH BEGIN CACHE COMMAND COMMIT COPY CREATE DELETE DESCRIBE DETACH DROP EXECUTE EXPORT GRANT
    INSERT INSTALL INTO KILL LOAD LOCK MERGE PRAGMA REFRESH RENAME REVOKE ROLLBACK SET SHOW SUMMARIZE TRUNCATE
    UPDATE USE
    """
)

_SIGNS = token_set(
    """
    L_PAREN R_PAREN L_BRACKET R_BRACKET COMMA DOT DASH PLUS STAR SLASH DIV MOD CARET DSTAR LT LTE GT GTE EQ NEQ
    DPIPE DCOLON SEMICOLON PARAMETER PLACEHOLDER
    """
)
_CLAUSES = token_set(
    """
    ALIAS ALL ASC CUBE DESC DISTINCT FETCH FILTER FIRST FROM GROUP_BY GROUPING_SETS HAVING INNER JOIN LEFT LIMIT ON
    ONLY ORDER_BY OUTER RIGHT ROLLUP ROW ROWS SELECT UNION USING WHERE WITH FULL CROSS NATURAL OFFSET RECURSIVE
    EXISTS OVER INTERSECT EXCEPT PARTITION_BY LATERAL VALUES ANTI SEMI FOR
    """
)
_EXPRESSIONS = token_set(
    """
    AND OR NOT BETWEEN CASE WHEN THEN ELSE END IN IS ISNULL NOTNULL LIKE ILIKE NULL TRUE FALSE INTERVAL ARRAY STRING
    NUMBER IDENTIFIER VAR YEAR REPLACE
    """
)
#: Names of types.
TYPE_TOKENS = token_set(
    """
    BOOLEAN TINYINT SMALLINT INT BIGINT INT128 FLOAT DOUBLE DECIMAL CHAR VARCHAR TEXT BPCHAR TIMESTAMP TIMESTAMPNTZ
    TIMESTAMPTZ DATETIME DATE TIME UUID NAME UBIGINT UINT USMALLINT UTINYINT
    """
)

#: All tokens that may occur. Some are listed only so that the parser can reject them with a better message.
TOKENS = _SIGNS | _CLAUSES | _EXPRESSIONS | TYPE_TOKENS

#: Keywords of unsupported statements and clauses; everywhere else they are ordinary names.
PLAIN_NAMES = token_set("COMMENT FORMAT FUNCTION INDEX OBJECT PERCENT PROCEDURE SEQUENCE SESSION VECTOR VIEW")

#: For some rejected tokens: why they are not supported, and what to write instead.
REASONS: dict[T, tuple[str, str]] = {
    T.COLLATE: ("is not supported: text is compared byte by byte", "Compare lower(x) with lower-case text."),
    T.TABLE_SAMPLE: ("is not supported: the noise does not account for sampling", "Remove it to query all rows."),
    T.QUALIFY: ("filters by window functions, which combine rows of different people", "Use GROUP BY and HAVING."),
    T.WINDOW: (
        "defines a window, which combines rows of different people",
        "Use GROUP BY, or compute one value per person in a subquery.",
    ),
    T.PIVOT: ("is not supported", "Write one aggregate with FILTER (WHERE …) for each column."),
    T.UNPIVOT: ("is not supported", "Combine subqueries with UNION ALL."),
    T.COLON: ("is not supported here: parameters are written ? or $1", "Write ? or $1 and pass the values in order."),
    T.HEREDOC_STRING: ("is a dollar-quoted string, which is not supported", "Use single quotes."),
    T.BYTE_STRING: (
        "is an escape string, which is not supported",
        "Use a plain string in single quotes, or pass the value as a parameter.",
    ),
    T.HEX_STRING: ("is a hexadecimal constant, which is not supported", "Write a decimal number or a plain string."),
    T.TILDE: ("matches a regular expression, which is not supported", "Use LIKE with a constant pattern."),
    T.SIMILAR_TO: ("matches a regular expression, which is not supported", "Use LIKE with a constant pattern."),
    T.ESCAPE: ("is not supported in LIKE", "Use starts_with, ends_with or contains."),
    T.CURRENT_DATE: (
        "is not supported: its value changes, so the query could not be repeated",
        "Write the date, or pass it as a parameter.",
    ),
    T.CURRENT_TIMESTAMP: (
        "is not supported: its value changes, so the query could not be repeated",
        "Write the timestamp, or pass it as a parameter.",
    ),
    T.ANY: ("is not supported", "Write x IN (…)."),
    T.UNNEST: ("is not supported: it turns one row into several", "Join a public table instead."),
}
