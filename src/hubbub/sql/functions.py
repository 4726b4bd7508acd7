"""The allow-list of functions and operators: `FUNCTIONS`, with the kind, range and step of each result.

All functions are total: none raises an error for any value.

  numbers   are DOUBLE in the engine; an integer beyond 2⁵³ becomes the nearest double; those with a step are decimals
  NULL      gives NULL, except in case, coalesce, greatest, least, is_null, is_distinct, and, or
  NaN       never reaches a comparison, a key or an aggregate: the scan turns it into NULL; where arithmetic can
            produce one (inf - inf, 0·inf, inf % x), only arithmetic passes it on, and any other use turns it into NULL
  ±inf      compares as larger or smaller than all numbers; overflow gives it; an aggregate clamps it
  text      is compared byte by byte; case and length are those of Unicode code points
  dates     are limited to the years 1 to 9999; the scan clamps others

`tokens.py` and `nodes.py` list the SQL syntax that may surround them.
"""

import math
from dataclasses import dataclass
from fractions import Fraction

from hubbub.core.schema import Bounds
from hubbub.sql import ranges, rules
from hubbub.sql.expressions import Expr, Facts, FunctionCall, Literal
from hubbub.sql.rules import (
    BOOLEAN,
    DATE,
    DATED,
    INTEGER,
    REAL,
    TEXT,
    TIMESTAMP,
    Args,
    ArgsRule,
    KindRule,
    RangeRule,
    StepRule,
)

_NUMBER = (INTEGER, REAL)
_SCALAR = (BOOLEAN, INTEGER, REAL, TEXT)


@dataclass(frozen=True, slots=True)
class Function:
    """A function of the allow-list.

    kind      kind of the result for the kinds of the arguments; None if the function does not apply to them
    total     behavior for NULL, NaN, ±inf, overflow, zero and malformed text
    range     range of the result for the arguments
    step      step of the result for the arguments (an integer has step 1)
    constant  indices of the arguments that must be constants
    accepts   whether the function applies to the arguments, of which the constants are constants
    """

    name: str
    kind: KindRule
    total: str
    range: RangeRule = rules.unknown
    step: StepRule = rules.no_step
    constant: frozenset[int] = frozenset()
    accepts: ArgsRule = rules.any_arguments


def build(name: str, args: Args) -> FunctionCall | None:
    """Build a call with the kind and facts of its result; None if the function does not apply to the arguments.

    Theorem (Facts hold in doubles). If the facts of the arguments hold of the doubles that the engine computes, those
    of the result hold of the double that it computes from them. Rounding to the nearest double is monotone, so a
    correctly rounded result lies at or below the double nearest to a bound of the exact one; an end that is no double
    is moved outward to the next; results of library functions get 2⁻⁴⁰ of slack.
    Assumes  IEEE arithmetic, and library functions that err by less than 2⁻⁴⁰ of the result.
    Tested   tests/sql/test_functions.py::test_a_function_is_total_and_its_facts_hold
             tests/sql/test_functions.py::test_random_expressions_are_total_and_their_facts_hold
             tests/sql/test_functions.py::test_a_planted_wrong_fact_is_caught
    """
    function = FUNCTIONS[name]
    kind = function.kind(tuple(arg.kind for arg in args))
    if kind is None or any(not isinstance(args[i], Literal) for i in function.constant if i < len(args)):
        return None
    if not function.accepts(args):
        return None
    within = function.range(args)
    bounds = Bounds(within.low, within.high) if within.low is not None and within.high is not None else None
    step = function.step(args) or (Fraction(1) if kind is INTEGER else None)
    return FunctionCall(name, args, kind, Facts(bounds, None, step) if kind.numeric or kind in DATED else Facts())


_ARITHMETIC = (
    Function("add", rules.two_numbers, "overflow: ±inf", rules.on(ranges.add), rules.common_step),
    Function("sub", rules.two_numbers, "overflow: ±inf; inf - inf: NULL", rules.difference, rules.common_step),
    Function("mul", rules.two_numbers, "overflow: ±inf; 0·inf: NULL", rules.on(ranges.multiply), rules.step_of_product),
    Function("div", rules.numbers(), "by zero: NULL; overflow: ±inf", rules.on(ranges.divide)),
    Function(
        "intdiv", rules.takes(INTEGER, INTEGER, gives=INTEGER), "toward zero; by zero: NULL", rules.integer_quotient
    ),
    Function("mod", rules.two_numbers, "dividend's sign; by zero, of ±inf: NULL", rules.remainder),
    Function("neg", rules.one_number, "total", rules.on(ranges.negate), rules.step_of_first),
    Function("abs", rules.one_number, "total", rules.on(ranges.absolute), rules.step_of_first),
    Function("sign", rules.number(), "-1, 0 or 1", rules.fixed(-1, 1)),
    Function("floor", rules.number(), "±inf stays", rules.on(ranges.monotone(math.floor))),
    Function("ceil", rules.number(), "±inf stays", rules.on(ranges.monotone(math.ceil))),
    Function("trunc", rules.number(), "toward zero; ±inf stays", rules.on(ranges.monotone(math.trunc))),
    Function(
        "round", rules.rounded, "half away from zero; ±inf stays", rules.rounding, rules.step_of_places, frozenset({1})
    ),
    Function(
        "decimal",
        rules.takes(_NUMBER, REAL, INTEGER, gives=REAL),
        "to a part of a step; only within bounds",
        rules.decimal,
        rules.step_of_first,
        frozenset({1, 2}),
        rules.countable,
    ),
    Function("sqrt", rules.number(), "below zero: NULL", rules.on(ranges.library(math.sqrt, Fraction(0)))),
    Function("ln", rules.number(), "zero or below: NULL", rules.on(ranges.library(math.log))),
    Function("log10", rules.number(), "zero or below: NULL", rules.on(ranges.library(math.log10))),
    Function("log2", rules.number(), "zero or below: NULL", rules.on(ranges.library(math.log2))),
    Function("exp", rules.number(), "overflow: inf", rules.on(ranges.library(math.exp, Fraction(0)))),
    *(
        Function(name, rules.number(), "of ±inf, outside of the domain: NULL", rules.fixed(low, high))
        for name, low, high in (("sin", -1, 1), ("cos", -1, 1), ("asin", -2, 2), ("acos", 0, 4), ("atan", -2, 2))
    ),
    Function("tan", rules.number(), "of ±inf: NULL"),
    Function(
        "power", rules.numbers(), "negative base with a fractional exponent, 0 with a negative one: NULL", rules.squares
    ),
    Function(
        "width_bucket",
        rules.takes(_NUMBER, _NUMBER, _NUMBER, INTEGER, gives=INTEGER),
        "below low: 0; high or above: n + 1",
        rules.buckets,
        constant=frozenset({1, 2, 3}),
    ),
)

_LOGIC = (
    *(
        Function(name, rules.comparison, "±inf larger or smaller than all numbers")
        for name in ("eq", "ne", "lt", "le", "gt", "ge")
    ),
    Function("is_distinct", rules.comparison, "never NULL: NULL is not distinct from NULL"),
    Function("in", rules.in_list, "of NULL: NULL", constant=frozenset(range(1, 10_000))),
    Function("between", rules.between, "three-valued logic"),
    Function("is_null", rules.anything(BOOLEAN), "never NULL"),
    Function("and", rules.logic, "three-valued logic"),
    Function("or", rules.logic, "three-valued logic"),
    Function("not", rules.takes(BOOLEAN, gives=BOOLEAN), "three-valued logic"),
    Function("case", rules.case, "the first branch whose condition is true", rules.of_case, rules.step_of_case),
    Function("coalesce", rules.same, "the first that is not NULL", rules.of_any, rules.common_step),
    Function("nullif", rules.first_of_two, "NULL where equal", rules.of_first, rules.step_of_first),
    Function("greatest", rules.same, "ignores NULL; NULL if all are", rules.greatest, rules.common_step),
    Function("least", rules.same, "ignores NULL; NULL if all are", rules.least, rules.common_step),
)

_ONE, _TWO = frozenset({1}), frozenset({1, 2})
_TEXT = (
    Function("lower", rules.text(), "total"),
    Function("upper", rules.text(), "total"),
    Function("trim", rules.text(), "total; blanks only"),
    Function("ltrim", rules.text(), "total; blanks only"),
    Function("rtrim", rules.text(), "total; blanks only"),
    Function("length", rules.text(INTEGER), "total; in code points", rules.from_zero),
    Function("concat", rules.texts, "any NULL: NULL"),
    Function("substr", rules.part_of_text, "beyond the end: empty; constant start from 1", constant=_TWO),
    Function("left", rules.end_of_text, "shorter text: all of it; constant length from 0", constant=_ONE),
    Function("right", rules.end_of_text, "shorter text: all of it; constant length from 0", constant=_ONE),
    Function("strpos", rules.takes(TEXT, TEXT, gives=INTEGER), "not found: 0", rules.from_zero, constant=_ONE),
    Function("starts_with", rules.takes(TEXT, TEXT, gives=BOOLEAN), "total", constant=_ONE),
    Function("ends_with", rules.takes(TEXT, TEXT, gives=BOOLEAN), "total", constant=_ONE),
    Function("contains", rules.takes(TEXT, TEXT, gives=BOOLEAN), "total", constant=_ONE),
    Function("replace", rules.takes(TEXT, TEXT, TEXT, gives=TEXT), "total; constant texts", constant=_TWO),
    Function(
        "split_part",
        rules.takes(TEXT, TEXT, INTEGER, gives=TEXT),
        "beyond the last part: empty; constant separator and number from 1",
        constant=_TWO,
    ),
    Function(
        "regexp", rules.takes(TEXT, TEXT, gives=BOOLEAN), "total; constant pattern of `patterns.py`", constant=_ONE
    ),
    Function(
        "regexp_extract",
        rules.takes(TEXT, TEXT, INTEGER, gives=TEXT),
        "no match: NULL; constant pattern without ∣, and group 0 or 1",
        constant=_TWO,
    ),
    Function(
        "regexp_replace",
        rules.takes(TEXT, TEXT, TEXT, BOOLEAN, gives=TEXT),
        "total; constant pattern without ∣, constant text, and whether all matches are replaced",
        constant=frozenset({1, 2, 3}),
    ),
    Function("like", rules.pattern, "total; constant pattern and escape character", constant=_TWO),
)

_UNIT, _SHIFT = frozenset({0}), frozenset({2})
_DATES = (
    Function("year", rules.takes(DATED, gives=INTEGER), "total", rules.years),
    *(
        Function(name, rules.takes(DATED, gives=INTEGER), "total", rules.fixed(low, high))
        for name, low, high in (
            ("quarter", 1, 4),
            ("month", 1, 12),
            ("week", 1, 53),
            ("day", 1, 31),
            ("dayofyear", 1, 366),
            ("dow", 0, 6),
            ("isodow", 1, 7),
            ("hour", 0, 23),
            ("minute", 0, 59),
            ("second", 0, 59),
        )
    ),
    Function("date_trunc", rules.takes(TEXT, DATED, gives=TIMESTAMP), "never before 0001-01-01", constant=_UNIT),
    Function(
        "date_diff",
        rules.takes(TEXT, DATED, DATED, gives=INTEGER),
        "total; boundaries crossed",
        rules.boundaries,
        constant=_UNIT,
    ),
    Function(
        "date_shift",
        rules.takes(DATED, INTEGER, TEXT, gives=TIMESTAMP),
        "by more than 4,000 years: NULL; clamped to the years 1 to 9999; constant unit",
        rules.shifted_time,
        constant=_SHIFT,
    ),
    Function("day_shift", rules.takes(DATE, INTEGER, gives=DATE), "clamped to the years 1 to 9999", rules.shifted_day),
    Function("make_date", rules.takes(INTEGER, INTEGER, INTEGER, gives=DATE), "no such day: NULL", rules.day_of_year),
    Function("seconds_between", rules.takes(DATED, DATED, gives=REAL), "total; with a fraction", rules.seconds),
    Function("days_between", rules.takes(DATE, DATE, gives=INTEGER), "total", rules.difference),
)

_CASTS = (
    Function(
        "to_integer",
        rules.takes(_SCALAR, INTEGER, gives=INTEGER),
        "half to even; not a number, or too large: NULL",
        rules.to_integer,
        constant=_ONE,
    ),
    Function("to_real", rules.takes(_SCALAR, gives=REAL), "not a number, or NaN: NULL", rules.as_number),
    Function("to_float", rules.takes(_SCALAR, gives=REAL), "not a number, or too large: NULL"),
    Function("to_text", rules.anything(TEXT), "an integer beyond 2¹²⁷: NULL"),
    Function(
        "parse_time",
        rules.takes(TEXT, TEXT, gives=TIMESTAMP),
        "other texts: NULL; constant format; clamped to the years 1 to 9999",
        constant=_ONE,
    ),
    Function("to_date", rules.takes((TEXT, *DATED), gives=DATE), "not a date: NULL; clamped to the years 1 to 9999"),
    Function(
        "to_timestamp",
        rules.takes((TEXT, *DATED), gives=TIMESTAMP),
        "not a timestamp: NULL; clamped to the years 1 to 9999",
        rules.timestamps,
    ),
    Function("to_boolean", rules.takes(_SCALAR, gives=BOOLEAN), "zero is false; text other than a boolean: NULL"),
)

FUNCTIONS: dict[str, Function] = {f.name: f for f in (*_ARITHMETIC, *_LOGIC, *_TEXT, *_DATES, *_CASTS)}
rules.RANGE_RULES.update({name: function.range for name, function in FUNCTIONS.items()})


def result_range(expr: Expr) -> ranges.Range:
    """Return the range of an expression over results; importing it here makes the rules of all functions known."""
    return rules.range_of(expr)
