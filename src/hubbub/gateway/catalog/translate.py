"""Questions about the catalog in PostgreSQL's dialect → the same for DuckDB, with nothing but what is listed here.

Every table is one of the catalog and every function is on a list, so that a question reads nothing else.

Tested in tests/gateway/test_catalog.py.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NoReturn

import sqlglot
from sqlglot import exp

from hubbub.errors import ParameterError
from hubbub.gateway.catalog import functions
from hubbub.gateway.catalog.contents import VERSION, known_tables

_SCHEMAS = {"pg_catalog": "pgc", "information_schema": "pgi"}
_OBJECTS = {"REGCLASS": "regclass", "REGTYPE": "regtype", "REGNAMESPACE": "regnamespace"}
_ROLE_COLUMNS = {
    "pg_roles": ("rolname",),
    "pg_user": ("usename",),
    "pg_tables": ("tableowner",),
    "pg_database": ("datname",),
    "schemata": ("schema_owner",),
}
_OPERATORS: Mapping[str, type[exp.Binary]] = {"=": exp.EQ, "<>": exp.NEQ, "!=": exp.NEQ, "||": exp.DPipe}
_KEPT = frozenset({"INT", "INTEGER", "INT4", "SMALLINT", "INT2", "BOOLEAN", "BOOL", "DATE", "TIMESTAMP"})
_FUNCTION_COLUMNS = frozenset({"typreceive", "typsend", "typinput", "typoutput", "typmodin", "typmodout", "typanalyze"})
#: Functions whose result can be much longer than what they are given.
_GROWING = (exp.Pad, exp.Replace, exp.RegexpReplace, exp.ArrayToString)
#: Functions that sqlglot knows by classes of their own.
_KNOWN = frozenset(
    {"Coalesce", "Lower", "Upper", "Substring", "Length", "Concat", "ConcatWs", "ArrayAgg", "GroupConcat", "Count"}
    | {"Max", "Min", "Sum", "Avg", "Case", "If", "Cast", "Nullif", "Greatest", "Least", "ArrayToString", "StrPosition"}
    | {"CurrentDate", "CurrentTimestamp", "RegexpLike", "RegexpILike", "RegexpReplace", "SplitPart", "Trim", "Unnest"}
    | {"RowNumber", "Array", "ArraySize", "ArrayLength", "StringToArray", "Anonymous", "Exists", "And", "Or", "Xor"}
    | {"Replace", "Left", "Right", "Abs", "Round", "Floor", "Ceil", "LogicalOr", "LogicalAnd", "Any", "All", "MD5"}
    | {"Explode", "Posexplode", "TryCast", "Rank", "DenseRank", "Lag", "Lead", "FirstValue", "Initcap", "StartsWith"}
    | {"CurrentSchemas", "CurrentSchema", "CurrentUser", "CurrentCatalog", "SessionUser", "CurrentDatabase", "Version"}
    | {
        "ArrayConcat",
        "Pad",
        "Chr",
        "ArrayConcatAgg",
        "ExplodingGenerateSeries",
        "GenerateSeries",
        "CurrentVersion",
        "TimestampTrunc",
        "Extract",
        "CurrentRole",
        "ArrayPosition",
    }
)


@dataclass(frozen=True, slots=True)
class Names:
    """What a question is told: who asks, where, and the settings of the connection."""

    user: str
    database: str
    process: int
    setting: Callable[[str], str | None]


#: Gives the SQL of a table in the schema `hubbub`, or None if there is none.
Extra = Callable[[str], str | None]


def translate(tree: exp.Expr, names: Names, extra: Extra) -> tuple[str, frozenset[int]]:
    """Write a question for DuckDB, or raise; return also which parameters it still has."""
    tree = tree.copy()
    if not isinstance(tree, exp.Query | exp.Values):
        _refuse(f"the statement {tree.key.upper()}")
    _name_outputs(tree)
    for node in reversed(list(tree.walk())):
        replacement = _translated(node, names, extra)
        if replacement is not node:
            if node is tree:
                tree = replacement
            else:
                node.replace(replacement)
    used = {int(node.name) for node in tree.find_all(exp.Parameter) if node.name.isdecimal()}
    return tree.sql(dialect="duckdb"), frozenset(used)


def _refuse(what: str) -> NoReturn:
    raise ParameterError(
        "HB810",
        f"This question about the catalog cannot be answered: {what[:100]} is not supported. Nothing was charged.",
        "Ask information_schema.tables, information_schema.columns, or hubbub.columns.",
    )


def _translated(node: exp.Expr, names: Names, extra: Extra) -> exp.Expr:
    match node:
        case exp.Table():
            return _table(node, names, extra)
        case exp.Dot():
            return _dot(node)
        case exp.Column() if node.args.get("db") is not None:
            node.set("db", None)
            node.set("catalog", None)
        case exp.Operator():
            return _operator(node)
        case exp.Collate():
            return _without_collation(node)
        case exp.Cast():
            return _cast(node)
        case exp.Func():
            return _function(node, names)
        case exp.Literal() if isinstance(node.parent, exp.EQ | exp.NEQ):
            return _compared(node, node.parent)
        case exp.Lock() | exp.Into() | exp.Command():
            _refuse(node.key.upper())
    return node


def _without_collation(node: exp.Collate) -> exp.Expr:
    inner: exp.Expr = node.this
    return inner


def _compared(node: exp.Literal, parent: exp.Binary) -> exp.Expr:
    """Write what a column is compared with: an array, or the function with the number 0, which is none."""
    if node.is_string:
        return _array_literal(node)
    other = parent.left if parent.right is node else parent.right
    return exp.Literal.string("-") if node.name == "0" and other.name in _FUNCTION_COLUMNS else node


def _table(node: exp.Table, names: Names, extra: Extra) -> exp.Expr:
    if isinstance(node.this, exp.Func):
        name = (node.this.name if isinstance(node.this, exp.Anonymous) else node.this.sql_name()).lower()
        if name.removeprefix("hb_") in functions.TABLES:
            return _derived(node, functions.TABLES[name.removeprefix("hb_")], name.removeprefix("hb_"))
        if name in (
            "generate_series",
            "exploding_generate_series",
            "unnest",
            "generate_subscripts",
            "_pg_expandarray",
            "explode",
            "hb__pg_expandarray",
        ):
            node.set("db", None)
            return node
        _refuse(f"the function {name}")
    if not isinstance(node.this, exp.Identifier):
        _refuse("this kind of table")
    schema, name = node.text("db").lower(), node.name
    if not schema and _is_common(node):
        return node
    if schema == "hubbub":
        text = extra(name)
        if text is None:
            raise ParameterError("HB186", f"There is no table hubbub.{name[:100]}.", "Ask: \\dt hubbub.*")
        return _derived(node, text, name)
    full = f"{schema or 'pg_catalog'}.{name.lower()}"
    columns = known_tables().get(full)
    if columns is None:
        _refuse(f"the table {full}")
    values = {column: names.database for column in columns if column.endswith("_catalog") or column == "catalog_name"}
    owned = _ROLE_COLUMNS.get(name.lower(), ())
    values |= {column: names.database if column == "datname" else names.user for column in owned}
    table = f'{_SCHEMAS[schema or "pg_catalog"]}."{name.lower()}"'
    if not values:
        return _renamed(node, schema) if node.alias else _derived(node, f"SELECT * FROM {table}", name)  # noqa: S608
    replaced = ", ".join(f"{exp.Literal.string(value).sql()} AS {column}" for column, value in values.items())
    return _derived(node, f"SELECT * REPLACE ({replaced}) FROM {table}", name)  # noqa: S608 - quoted


def _renamed(node: exp.Table, schema: str) -> exp.Table:
    node.set("catalog", None)
    node.set("db", exp.to_identifier(_SCHEMAS[schema or "pg_catalog"]))
    return node


def _derived(node: exp.Table, text: str, name: str) -> exp.Expr:
    alias = node.args.get("alias") or exp.TableAlias(this=exp.to_identifier(name, quoted=True))
    made = exp.Subquery(this=sqlglot.parse_one(text, read="duckdb"), alias=alias)
    for join in node.args.get("joins") or []:
        made.append("joins", join)
    return made


def _is_common(node: exp.Table) -> bool:
    """Tell whether a name is one of an enclosing WITH."""
    parent: exp.Expr | None = node
    while parent is not None:
        clause = parent.args.get("with_")
        if clause is not None and any(each.alias.lower() == node.name.lower() for each in clause.expressions):
            return True
        parent = parent.parent
    return False


def _dot(node: exp.Dot) -> exp.Expr:
    """Leave out the schema of a function."""
    if isinstance(node.this, exp.Identifier) and node.name and node.this.name.lower() in _SCHEMAS:
        function: exp.Expr = node.expression
        return function
    if isinstance(node.this, exp.Paren) or isinstance(node.expression, exp.Identifier):
        return node
    _refuse(node.sql())


def _operator(node: exp.Operator) -> exp.Expr:
    name = str(node.args.get("operator")).rpartition(".")[2]
    left, right = node.this, node.expression
    if name in ("~", "!~", "~*", "!~*"):
        matched: exp.Expr = exp.func("regexp_matches", left, right, *([exp.Literal.string("i")] if "*" in name else []))
        return exp.Not(this=matched) if name[0] == "!" else matched
    if name in ("~~", "!~~"):
        like: exp.Expr = exp.Like(this=left, expression=right)
        return exp.Not(this=like) if name[0] == "!" else like
    if name not in _OPERATORS:
        _refuse(f"the operator {name}")
    return _OPERATORS[name](this=left, expression=right)


def _cast(node: exp.Cast) -> exp.Expr:
    kind = node.args["to"]
    inner: exp.Expr = node.this
    name = kind.sql("postgres").upper().replace("PG_CATALOG.", "").replace("INFORMATION_SCHEMA.", "").strip('"')
    if name in _OBJECTS:
        macro = _OBJECTS[name]
        if (isinstance(inner, exp.Literal) and inner.is_string) or isinstance(inner, exp.Parameter):
            return _call(macro, inner)
        if isinstance(node.parent, exp.Cast) and node.parent.args["to"].sql("postgres").upper() in (
            "OID",
            "INT",
            "BIGINT",
        ):
            return exp.Paren(this=inner)
        return _call("format_type", inner, exp.Null()) if macro == "regtype" else _call(f"{macro}_name", inner)
    if name in ("OID", "XID", "INT8", "BIGINT"):
        return exp.Cast(this=inner, to=exp.DataType.build("BIGINT"))
    if name in _KEPT:
        return node
    if name.endswith("[]"):
        element = exp.DataType.build("BIGINT" if name[:-2] in ("OID", "INT", "INT2", "SMALLINT", "BIGINT") else "TEXT")
        listed = _array_literal(inner) if isinstance(inner, exp.Literal) else inner
        return exp.Cast(this=listed, to=exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[element], nested=True))
    if name in ("INT2VECTOR", "OIDVECTOR", "ANYARRAY"):
        return inner
    return exp.Cast(this=inner, to=exp.DataType.build("TEXT"))


def _array_literal(node: exp.Expr) -> exp.Expr:
    """Write an array in DuckDB's way."""
    text = node.name
    if len(text) < 2 or text[0] != "{" or text[-1] != "}":
        return node
    parts = [part.strip().strip('"') for part in text[1:-1].split(",")] if text != "{}" else []
    return exp.Literal.string("[" + ", ".join(parts) + "]")


def _call(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=f"hb_{name}", expressions=list(arguments))


def _function(node: exp.Func, names: Names) -> exp.Expr:
    name = (node.name if isinstance(node, exp.Anonymous) else node.sql_name()).lower()
    constant = _constant(name, names)
    if constant is not None:
        return constant
    if not isinstance(node, exp.Anonymous):
        if type(node).__name__ not in _KNOWN:
            _refuse(f"the function {name}")
        return _bounded(node) if isinstance(node, _GROWING) else node
    arguments = node.expressions
    if name == "current_setting" and arguments:
        value = names.setting(arguments[0].name.lower())
        return exp.Null() if value is None else exp.Literal.string(value)
    if name in functions.names():
        return _call(name, *(_joined(arguments) if name == "array_to_string" else arguments))
    if name in ("lpad", "rpad", "replace", "regexp_replace"):
        places = [_short(each) for each in arguments[:3]] + arguments[3:]
        if "pad" in name and len(arguments) > 1:
            places[1] = _call("small", arguments[1].copy())
        node.set("expressions", places)
        return node
    if name.startswith("hb_") or name in functions.PLAIN or name in functions.TABLES:
        return node
    _refuse(f"the function {name}")


def _bounded(node: exp.Func) -> exp.Func:
    """Bound the arguments of a function: the database does not count the memory that it takes for one long text."""
    if isinstance(node, exp.ArrayToString):
        node.set("this", _joined([node.this, node.expression])[0])
        return node
    for name in ("this", "expression", "replacement", "fill_pattern"):
        argument = node.args.get(name)
        if argument is not None:
            length = isinstance(node, exp.Pad) and name == "expression"
            node.set(name, _call("small", argument.copy()) if length else _short(argument))
    return node


def _joined(arguments: list[exp.Expr]) -> list[exp.Expr]:
    """Bound an array that is joined, and what is between its elements, which the database needs as a constant."""
    array, *separator = arguments
    constant = [each for each in separator if isinstance(each, exp.Literal | exp.ByteString) and len(each.name) <= 100]
    if len(constant) != 1 or len(separator) != 1:
        _refuse("this separator of array_to_string")
    return [_short(array), *separator]


def _short(argument: exp.Expr) -> exp.Expr:
    return _call("short", argument.copy())


def _constant(name: str, names: Names) -> exp.Expr | None:
    """Return the value of a function that has one value in a connection."""
    texts = {
        "current_schema": "public",
        "current_user": names.user,
        "session_user": names.user,
        "user": names.user,
        "current_role": names.user,
        "pg_get_userbyid": names.user,
        "current_catalog": names.database,
        "current_database": names.database,
        "version": VERSION,
        "current_version": VERSION,
    }
    if name in texts:
        return exp.Literal.string(texts[name])
    match name:
        case "current_schemas":
            return exp.Array(expressions=[exp.Literal.string(each) for each in ("pg_catalog", "public")])
        case "pg_backend_pid":
            return exp.Literal.number(names.process)
        case "json_build_object" | "jsonb_build_object":
            return exp.Null()  # asked of sequences and of identity columns, of which there are none
    return None


def _name_outputs(tree: exp.Expr) -> None:
    """Name the columns as PostgreSQL names them, also of subqueries in FROM, whose columns are read by their names."""
    read = [each.this for each in tree.find_all(exp.Subquery) if isinstance(each.parent, exp.From | exp.Join)]
    for query in (tree, *read):
        select = query.find(exp.Select)
        if select is not None:
            _name_items(select)


def _name_items(select: exp.Select) -> None:
    for item in list(select.expressions):
        name = item.args.get("alias") if isinstance(item, exp.Alias) else None
        if isinstance(name, exp.Identifier) and not name.quoted:
            name.set("this", name.name.lower())
        if isinstance(item, exp.Alias | exp.Star | exp.Column) or item.is_star:
            continue
        item.replace(exp.alias_(item.copy(), _output_name(item), quoted=True))


def _output_name(item: exp.Expr) -> str:
    match item:
        case exp.Cast():
            inner = _output_name(item.this)
            return inner if inner != "?column?" else item.args["to"].sql("postgres").lower()
        case exp.Paren() | exp.Subquery():
            return "?column?" if not isinstance(item.this, exp.Expr) else _output_name(item.this)
        case exp.Select() if item.expressions:
            first = item.expressions[0]
            return str(first.alias) if isinstance(first, exp.Alias) else _output_name(first)
        case exp.Column() | exp.Dot():
            return str(item.name or "?column?")
        case exp.Case():
            return _name_of_case(item)
        case exp.Anonymous():
            return str(item.name).lower()
        case exp.Binary() | exp.Not():
            return "?column?"
        case exp.Func():
            name = item.sql_name().lower()
            return "version" if name == "current_version" else name
    return "?column?"


def _name_of_case(item: exp.Case) -> str:
    """Name CASE as its ELSE, if that is a column or a function."""
    last = item.args.get("default")
    while isinstance(last, exp.Cast | exp.Paren):
        last = last.this
    if isinstance(last, exp.Column | exp.Func) and not isinstance(last, exp.Binary):
        return _output_name(last)
    return "case"
