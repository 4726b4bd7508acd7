"""The functions of PostgreSQL that questions about the catalog call, as macros of DuckDB.

What would depend on data, such as the size of a table, is NULL. Tested in tests/gateway/test_catalog.py.
"""

from collections.abc import Iterator

from hubbub.gateway.catalog.contents import FORMATTED, PUBLIC

#: Functions that give the same whatever they are given: by their value, their names and their numbers of arguments.
_CONSTANTS: tuple[tuple[str, str], ...] = (
    ("true", "pg_type_is_visible/1 pg_function_is_visible/1 pg_operator_is_visible/1 pg_collation_is_visible/1"),
    ("true", "pg_opclass_is_visible/1 pg_opfamily_is_visible/1 pg_conversion_is_visible/1 pg_ts_config_is_visible/1"),
    ("true", "pg_ts_dict_is_visible/1 pg_ts_parser_is_visible/1 pg_ts_template_is_visible/1"),
    ("true", "has_schema_privilege/2 has_schema_privilege/3 has_database_privilege/2 has_database_privilege/3"),
    (
        "true",
        "pg_statistics_obj_is_visible/1 has_type_privilege/2 has_language_privilege/2 pg_has_role/2 pg_has_role/3",
    ),
    ("false", "has_function_privilege/2 has_function_privilege/3 has_sequence_privilege/2 has_sequence_privilege/3"),
    ("false", "pg_relation_is_publishable/1 pg_is_in_recovery/0 pg_is_other_temp_schema/1 row_security_active/1"),
    ("false", "has_server_privilege/2 has_tablespace_privilege/2 has_foreign_data_wrapper_privilege/2"),
    ("NULL", "pg_get_expr/2 pg_get_expr/3 pg_get_constraintdef/1 pg_get_constraintdef/2 pg_get_indexdef/1"),
    ("NULL", "pg_get_indexdef/3 pg_get_viewdef/1 pg_get_viewdef/2 pg_get_triggerdef/1 pg_get_triggerdef/2"),
    ("NULL", "pg_get_ruledef/1 pg_get_ruledef/2 pg_get_functiondef/1 pg_get_function_arguments/1"),
    ("NULL", "pg_get_function_result/1 pg_get_function_identity_arguments/1 pg_get_serial_sequence/2"),
    ("NULL", "pg_get_partkeydef/1 pg_get_partition_constraintdef/1 pg_get_statisticsobjdef_columns/1"),
    ("NULL", "pg_relation_size/1 pg_relation_size/2 pg_total_relation_size/1 pg_table_size/1 pg_indexes_size/1"),
    ("NULL", "pg_database_size/1 pg_size_pretty/1 pg_tablespace_location/1 shobj_description/2"),
    ("NULL", "pg_stat_get_numscans/1 inet_server_addr/0 inet_server_port/0 inet_client_addr/0"),
    ("NULL", "pg_get_function_sqlbody/1 pg_postmaster_start_time/0 pg_last_wal_replay_lsn/0 pg_conf_load_time/0"),
    ("NULL", "pg_describe_object/3 pg_get_statisticsobjdef/1"),
    ("0", "pg_my_temp_schema/0 txid_current/0 pg_column_size/1 age/1 pg_relation_filenode/1"),
    ("'UTF8'", "pg_encoding_to_char/1 pg_client_encoding/0 getdatabaseencoding/0"),
    ("6", "pg_char_to_encoding/1"),
)
#: Characters of a text, elements of an array, and the length that are given to a function whose result can be longer.
MAX_SHORT = 2000
_SELECT = "contains(lower({}), 'select')"
#: Functions of their arguments.
_MACROS: tuple[tuple[str, str, str], ...] = (
    ("pg_table_is_visible", "o", f"(SELECT hb_schema = {PUBLIC} FROM pgc.hb_tables WHERE hb_oid = o)"),  # noqa: S608
    ("obj_description", "o", "(SELECT hb_text FROM pgc.hb_remarks WHERE hb_object = o AND hb_part = 0)"),
    ("obj_description", "o, c", "(SELECT hb_text FROM pgc.hb_remarks WHERE hb_object = o AND hb_part = 0)"),
    ("col_description", "o, n", "(SELECT hb_text FROM pgc.hb_remarks WHERE hb_object = o AND hb_part = n)"),
    ("has_table_privilege", "t, p", _SELECT.format("p")),
    ("has_table_privilege", "u, t, p", _SELECT.format("p")),
    ("has_any_column_privilege", "t, p", _SELECT.format("p")),
    ("has_any_column_privilege", "u, t, p", _SELECT.format("p")),
    ("has_column_privilege", "t, c, p", _SELECT.format("p")),
    ("has_column_privilege", "u, t, c, p", _SELECT.format("p")),
    ("short", "s", f"CASE WHEN length(s) > {MAX_SHORT} THEN error('too long') ELSE s END"),
    ("small", "n", f"CASE WHEN n > {MAX_SHORT} THEN error('too long') ELSE n END"),
    ("quote_ident", "s", "CASE WHEN regexp_full_match(s, '[a-z_][a-z0-9_]*') THEN s ELSE '\"' || s || '\"' END"),
    ("quote_literal", "s", "'''' || replace(s, '''', '''''') || ''''"),
    ("array_upper", "a, n", "nullif(len(a), 0)"),
    ("array_lower", "a, n", "CASE WHEN len(a) > 0 THEN 1 END"),
    ("array_length", "a, n", "nullif(len(a), 0)"),
    ("cardinality", "a", "len(a)"),
    ("array_to_string", "a, s", "array_to_string(a, s)"),
    ("set_config", "n, v, l", "v"),
    ("translate", "s, a, b", "translate(s, a, b)"),
    ("to_regclass", "s", "hb_regclass(s)"),
    ("to_regtype", "s", "hb_regtype(s)"),
    ("to_regnamespace", "s", "hb_regnamespace(s)"),
    ("_pg_expandarray", "a", "unnest([{'x': a[i], 'n': i} for i in range(1, len(a) + 1)])"),
    (
        "regclass",
        "s",
        "coalesce(TRY_CAST(s AS BIGINT), (SELECT hb_oid FROM pgc.hb_tables"
        " WHERE hb_name = replace(split_part(s, '.', -1), '\"', '')"
        " AND (NOT contains(s, '.') OR hb_schema_name = replace(split_part(s, '.', -2), '\"', ''))"
        " ORDER BY hb_oid LIMIT 1), CASE WHEN split_part(s, '.', -1) = 'pg_class' THEN 1259 END)",
    ),
    ("regclass_name", "o", "coalesce((SELECT hb_name FROM pgc.hb_tables WHERE hb_oid = o), CAST(o AS VARCHAR))"),
    (
        "regtype",
        "s",
        "coalesce(TRY_CAST(s AS BIGINT), (SELECT min(hb_oid) FROM pgc.hb_types WHERE hb_name = split_part(s, '.', -1)"
        " OR hb_format_type(hb_oid, NULL) = s))",
    ),
    (
        "regnamespace",
        "s",
        "coalesce(TRY_CAST(s AS BIGINT), (SELECT hb_oid FROM pgc.hb_schemas WHERE hb_name = s))",
    ),
    ("regnamespace_name", "o", "(SELECT hb_name FROM pgc.hb_schemas WHERE hb_oid = o)"),
)
#: What macros read: with names that no question uses, because a macro's argument is resolved where it is written.
VIEWS = (
    "hb_types AS SELECT oid AS hb_oid, typname AS hb_name FROM pgc.pg_type",
    "hb_type_names AS SELECT oid AS hb_type_oid, typname AS hb_type_name FROM pgc.pg_type",
    "hb_schemas AS SELECT oid AS hb_oid, nspname AS hb_name FROM pgc.pg_namespace",
    "hb_tables AS SELECT c.oid AS hb_oid, c.relname AS hb_name, c.relnamespace AS hb_schema,"
    " n.nspname AS hb_schema_name FROM pgc.pg_class AS c JOIN pgc.pg_namespace AS n ON n.oid = c.relnamespace",
    "hb_remarks AS SELECT objoid AS hb_object, objsubid AS hb_part, description AS hb_text FROM pgc.pg_description",
)
#: Functions of DuckDB that mean the same there.
PLAIN = frozenset(
    {"lower", "upper", "length", "substring", "substr", "replace", "left", "right", "position", "trim", "btrim"}
    | {"ltrim", "rtrim", "concat", "concat_ws", "split_part", "string_to_array", "starts_with", "lpad", "rpad"}
    | {"coalesce", "nullif", "greatest", "least", "abs", "round", "floor", "ceil", "mod", "now", "md5"}
    | {"count", "min", "max", "sum", "avg", "bool_or", "bool_and", "array_agg", "string_agg", "row_number", "rank"}
    | {"dense_rank", "generate_subscripts", "unnest", "array_position", "array_append", "array_cat", "strpos", "chr"}
    | {"char_length", "initcap", "reverse", "regexp_replace", "regexp_matches", "lag", "lead", "first_value"}
)
#: Functions that give a table.
TABLES = {
    "pg_get_keywords": "SELECT '' AS word, 'U' AS catcode, '' AS catdesc WHERE false",
    "pg_options_to_table": "SELECT '' AS option_name, '' AS option_value WHERE false",
    "pg_listening_channels": "SELECT '' AS pg_listening_channels WHERE false",
    "pg_show_all_settings": "SELECT * FROM pgc.pg_settings",
    "pg_available_extensions": "SELECT '' AS name, '' AS default_version, '' AS comment WHERE false",
    "pg_timezone_names": "SELECT 'UTC' AS name, 'UTC' AS abbrev, false AS is_dst",
    "pg_lock_status": "SELECT * FROM pgc.pg_locks",
    "aclexplode": "SELECT 0 AS grantor, 0 AS grantee, '' AS privilege_type, false AS is_grantable WHERE false",
}


def names() -> frozenset[str]:
    """Return the names of all functions that are macros."""
    return frozenset(name for name, *_ in _definitions())


def macros() -> list[str]:
    """Return the statements that create the macros, and what they read."""
    listed: dict[str, list[str]] = {}
    for name, arguments, body in _definitions():
        listed.setdefault(name, []).append(f"({arguments}) AS ({body})")
    order = ["format_type", *(name for name in listed if name.startswith("reg"))]
    order += [name for name in listed if name not in order]
    views = [f"CREATE VIEW pgc.{view}" for view in VIEWS]
    return views + [f"CREATE MACRO hb_{name} {', '.join(listed[name])}" for name in order]


def _definitions() -> Iterator[tuple[str, str, str]]:
    cases = " ".join(f"WHEN {oid} THEN '{name}'" for oid, name in FORMATTED.items())
    other = "(SELECT hb_type_name FROM pgc.hb_type_names WHERE hb_type_oid = t)"
    yield "format_type", "t, m", f"CASE t {cases} ELSE {other} END"
    for value, written in _CONSTANTS:
        for each in written.split():
            name, _, count = each.partition("/")
            yield name, ", ".join("abcdef"[: int(count)]), value
    yield from _MACROS
