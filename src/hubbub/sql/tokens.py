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
    EXISTS OVER INTERSECT EXCEPT PARTITION_BY VALUES ANTI SEMI FOR QUALIFY RANGE TOP WINDOW ANY
    PIVOT UNPIVOT UNNEST LATERAL APPLY
    """
)
_EXPRESSIONS = token_set(
    """
    AND OR NOT BETWEEN CASE WHEN THEN ELSE END IN IS ISNULL NOTNULL LIKE ILIKE NULL TRUE FALSE INTERVAL ARRAY STRING
    NUMBER IDENTIFIER VAR YEAR REPLACE ESCAPE TILDE RLIKE SIMILAR_TO AT_GT DAMP VIEW
    """
)
#: Names of types.
TYPE_TOKENS = token_set(
    """
    BOOLEAN TINYINT SMALLINT INT BIGINT INT128 FLOAT DOUBLE DECIMAL CHAR VARCHAR TEXT BPCHAR TIMESTAMP TIMESTAMPNTZ
    TIMESTAMPTZ DATETIME DATE TIME UUID NAME UBIGINT UINT USMALLINT UTINYINT NVARCHAR NCHAR BIT DATETIME2 SMALLDATETIME
    TIMESTAMPLTZ
    """
)

#: All tokens that may occur. Some are listed only so that the parser can reject them with a better message.
TOKENS = _SIGNS | _CLAUSES | _EXPRESSIONS | TYPE_TOKENS

#: Keywords of unsupported statements and clauses; everywhere else they are ordinary names.
PLAIN_NAMES = token_set(
    """
    COMMENT FORCE FORMAT FUNCTION GEOGRAPHY GEOMETRY INDEX INET NEXT NULLABLE OBJECT OPERATOR ORDINALITY PERCENT
    PROCEDURE SCHEMA SEQUENCE SESSION SETTINGS TEMPORARY TRIGGER VECTOR VIEW VOLATILE
    """
)

#: What to do about the elements of a list.
ONE_ROW_EACH = (
    "For the elements of a list column, ask the data owner to declare it: `tags: {elements: 8}`, and write FROM visits "
    "v, UNNEST(v.tags) AS t(tag). For a subquery on the same row, "
    "write it in SELECT or WHERE."
)
#: What to write instead of a list of the values of one person.
LISTS = (
    "A list would have as many elements as a person has rows. To compare with it, write conditions on the rows of a "
    "person: SELECT id, COUNT(*) FILTER (WHERE code = 'A') AS n FROM visits GROUP BY id, or EXISTS (SELECT 1 FROM …)."
)
_MONTHS = (
    "Write MONTHS_BETWEEN(a, b) for months, FLOOR(MONTHS_BETWEEN(a, b) / 12) for years that have passed, or "
    "date_diff('day', b, a) for days."
)
_ONE_ROW = (
    "It would show the value of one row. Use MODE(x), MIN(x) or MAX(x). Within one person, ARG_MIN(x, day) is the "
    "first value."
)
_ENTROPY = (
    "Compute it from counts: SELECT -SUM(p * LN(p)) AS entropy FROM (SELECT COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS "
    "p FROM visits GROUP BY region)."
)
_MOMENTS = (
    "Compute it from an average: AVG(GREATEST(-99, LEAST(99, POWER((x - 3) / 5, {power})))), with the noisy AVG(x) for "
    "3 and STDDEV_POP(x) for 5."
)
_COUNTS = "Ask for the counts: SELECT x, COUNT(*) AS n FROM … GROUP BY x ORDER BY n DESC LIMIT 3."
_DATE_TEXT = "Write STRFTIME(d, '%Y-%m'), or name the dialect that it belongs to: dialect=\"bigquery\"."
#: What to write instead of some functions.
INSTEAD = {
    **dict.fromkeys(("APPROX_TOP_K", "APPROX_TOP_COUNT", "TOP_K", "HISTOGRAM"), _COUNTS),
    **dict.fromkeys(("FORMAT_DATE", "FORMAT_TIMESTAMP", "DATE_FORMAT"), _DATE_TEXT),
    "GROUP_CONCAT": LISTS,
    "ARRAY_AGG": LISTS,
    "LIST": LISTS,
    "COLLECT_LIST": LISTS,
    "AGE": _MONTHS,
    "WEEKDAY": "Write DOW(d), which is 0 on Sunday, or ISODOW(d), which is 1 on Monday and 7 on Sunday.",
    "ENTROPY": _ENTROPY,
    "MAD": "Ask for MEDIAN(x), and then with its value for MEDIAN(ABS(x - 3)).",
    "SKEWNESS": _MOMENTS.format(power=3),
    "KURTOSIS": _MOMENTS.format(power=4),
    "FIRST": _ONE_ROW,
    "LAST": _ONE_ROW,
    "RAND": "Leave it out: an answer could not be given again for free. The noise does not need a sample.",
}
#: For some rejected tokens: why they are not supported, and what to write instead.
REASONS: dict[T, tuple[str, str]] = {
    T.COLLATE: ("is not supported: text is compared byte by byte", "Compare lower(x) with lower-case text."),
    T.TABLE_SAMPLE: ("is not supported: the noise does not account for sampling", "Remove it to query all rows."),
    T.COLON: ("is not supported here: parameters are written ? or $1", "Write ? or $1 and pass the values in order."),
    T.HEREDOC_STRING: ("is a dollar-quoted string, which is not supported", "Use single quotes."),
    T.BYTE_STRING: (
        "is an escape string, which is not supported",
        "Use a plain string in single quotes, or pass the value as a parameter.",
    ),
    T.HEX_STRING: ("is a hexadecimal constant, which is not supported", "Write a decimal number or a plain string."),
    T.ASOF: (
        "is not supported",
        "Write SELECT a.id, a.day, ARG_MAX(b.x, b.day) AS x FROM a JOIN b ON a.id = b.id AND b.day <= a.day "
        "GROUP BY a.id, a.day.",
    ),
    T.LIST: ("is not supported", LISTS),
    T.CURRENT_DATE: (
        "is not supported: its value changes, so the query could not be repeated",
        "Write the date, or pass it as a parameter.",
    ),
    T.CURRENT_TIMESTAMP: (
        "is not supported: its value changes, so the query could not be repeated",
        "Write the timestamp, or pass it as a parameter.",
    ),
}
