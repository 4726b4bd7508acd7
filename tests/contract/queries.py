"""Every aggregate of SQL, every kind of groups and of keys, with what can be reached of each noise (see `analyses`)."""

from collections.abc import Iterator
from fractions import Fraction

from tests.contract.analyses import ADD, ALL, FOUR, PEOPLE, REPLACE, Reach
from tests.contract.search import Subject
from tests.contract.tables import ROW, query

from hubbub.core.unit import Relation

#: Each text with the columns that it uses.
TEXTS: dict[str, str] = {
    "SELECT count(*) FROM t": "f",
    "SELECT count(x) FROM t WHERE i > 1": "x i",
    "SELECT count_if(f), count(*) FILTER (WHERE g) FROM t": "f g",
    "SELECT count(DISTINCT i) FROM t": "i",
    "SELECT k, count(DISTINCT u) FROM t GROUP BY k": "k",
    "SELECT sum(i) FROM t": "i",
    "SELECT k, sum(x) FROM t GROUP BY k": "x k",
    "SELECT sum(x) FILTER (WHERE f) FROM t": "x f",
    "SELECT avg(x) FROM t": "x",
    "SELECT k, avg(i) FROM t GROUP BY k": "i k",
    "SELECT var_pop(x), var_samp(x) FROM t": "x",
    "SELECT stddev_pop(i), stddev_samp(i) FROM t": "i",
    "SELECT sum(DISTINCT i), avg(DISTINCT i) FROM t": "i",
    "SELECT var_pop(DISTINCT i), var_samp(DISTINCT i) FROM t": "i",
    "SELECT k, stddev_pop(DISTINCT i), stddev_samp(DISTINCT i) FROM t GROUP BY k": "i k",
    "SELECT covar_pop(x, y), covar_samp(x, y) FROM t": "x y",
    "SELECT corr(x, y) FROM t": "x y",
    "SELECT regr_slope(y, x), regr_intercept(y, x), regr_r2(y, x) FROM t": "x y",
    "SELECT median(i) FROM t": "i",
    "SELECT k, quantile_cont(i, 0.9) FROM t GROUP BY k": "i k",
    "SELECT min(i), max(i) FROM t": "i",
    "SELECT mode(k) FROM t": "k",
    "SELECT k, f, count(*) FROM t GROUP BY ROLLUP (k, f)": "k f",
    "SELECT k, f, count(*) FROM t GROUP BY CUBE (k, f)": "k f",
    "SELECT k FROM t GROUP BY k ORDER BY count(*) DESC LIMIT 2": "k",
    "SELECT w, count(*) FROM t GROUP BY w": "w",
    "SELECT w, sum(i) FROM t GROUP BY w": "w i",
    "SELECT count(*), sum(m) FROM (SELECT u, k, max(i) AS m FROM t GROUP BY u, k) AS s": "k i",
}
#: What is reached where it is not all, for the start of a text:
#: a selection is bought for what two units move, and no score moves by more than what one does;
#: squares have their least in the middle of the bounds and the largest at one end;
#: over several grouping sets no two units are worst in all of them;
#: of two keys that are found, two units that may be in two each are both in both.
REACHED: dict[str, dict[Relation, Reach]] = {
    "SELECT k, avg(i)": {REPLACE: {0: 0.8, 1: 0.8}, ADD: {1: 0.6}},
    "SELECT stddev_pop": {REPLACE: {2: 0.55}},
    "SELECT var_pop(DISTINCT": {REPLACE: {2: 0.55}},
    "SELECT k, stddev_pop(DISTINCT": {REPLACE: {2: 0.55}},
    "SELECT median": {REPLACE: {0: 0.5}},
    "SELECT k, quantile": {REPLACE: {0: 0.5}},
    "SELECT min": {REPLACE: {0: 0.5, 1: 0.5}},
    "SELECT mode": {REPLACE: {0: 0.5}},
    "SELECT w": {REPLACE: {0: 0.5, 1: 0.5}},
    "SELECT k, f": {REPLACE: {0: 0.7}, ADD: {0: 0.6}},
}
#: The same for units with several rows: of two distinct values of a unit, only one can be at the end of the bounds.
REACHED_BY_UNITS: dict[str, dict[Relation, Reach]] = {
    "SELECT sum(DISTINCT": {REPLACE: {0: 0.5, 2: 0.25}, ADD: {0: 0.4, 2: 0.25}},
    "SELECT var_pop(DISTINCT": {REPLACE: {1: 0.4, 2: 0.375}, ADD: {1: 0.55}},
    "SELECT k, stddev_pop(DISTINCT": {REPLACE: {0: 0.6, 1: 0.25, 2: 0.18}, ADD: {0: 0.5, 1: 0.25}},
}
#: What is asked of units with several rows alone, and what needs a δ because nobody declared its keys.
OF_UNITS = ("DISTINCT u", "SELECT u,")
FOUND = "GROUP BY w"
#: So little that no key of one unit slips through while this runs: it would be on one side alone, which δ pays for.
SLIP = Fraction(1, 10**9)


def subjects(*, full: bool) -> Iterator[tuple[str, Subject, Reach]]:
    """Try every text under each unit, relation and δ."""
    for text, used in TEXTS.items():
        for unit, relation, delta in ALL if full else FOUR:
            of_units = any(each in text for each in OF_UNITS)
            if not (of_units and unit == ROW):
                needed = SLIP if FOUND in text else delta
                yield (
                    text,
                    query(text, PEOPLE, used, unit=unit, relation=relation, delta=needed),
                    _reach(text, relation, REACHED if unit == ROW else REACHED | REACHED_BY_UNITS),
                )


def _reach(text: str, relation: Relation, reached: dict[str, dict[Relation, Reach]]) -> Reach:
    return next((each.get(relation, {}) for start, each in reached.items() if text.startswith(start)), {})
