"""Refusal as disclosure: an auditor that refuses what would tell too much tells it by refusing.

The auditor here answers the largest value among some people, unless that answer, with the earlier ones, would fix
somebody's value (Kenthapadi, Mishra and Nissim 2005; Dwork 2011). Values are all different.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import Fact, Finding, Progress, Study, ceiling, compared, unheard
from hubbub.attacks.game import Bits, flip, informed, scored, settled
from hubbub.attacks.table import Table
from hubbub.attacks.target import TABLE, counting, protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.curator.session import Session
from hubbub.errors import HubbubError
from hubbub.noise.source import system

MOST = 100
#: Questions that hubbub refuses, or answers, without a look at the data: both worlds hear the same.
PROBES = (
    "SELECT salary FROM people WHERE place = 3",
    "SELECT MAX(salary) FROM people WHERE team = 0 AND place < 3 GROUP BY salary",
    "SELECT MAX(salary) AS most FROM people WHERE team = 0",
)

_HIGH = f"team = 0 AND place = 3 AND salary > {MOST // 2}"

Values = NDArray[np.int64]


def exact_auditor(values: Values) -> tuple[Values, Bits]:
    """Answer the largest of each triple (a row each), and say where the largest of its first two is refused.

    Where the first two hold the largest, their answer is the one already given and fixes nobody. Where they do not,
    an answer would leave only the third to hold it; so it is refused, and the refusal says just that.
    """
    return values.max(axis=1), values[:, :2].max(axis=1) < values[:, 2]


def simulatable_auditor(values: Values) -> tuple[Values, Bits]:
    """Answer the largest of each triple; refuse the first two always: some data that fits would be told."""
    return values.max(axis=1), np.ones(len(values), dtype=bool)


def teams(trials: int, generator: np.random.Generator) -> tuple[Values, Bits]:
    """Make up triples with different salaries; a coin says whether the third earns far more than both others, or less.

    The others are in the middle half whatever the coin says: their salaries tell nothing of it, so that the coin is
    one person's secret, and fair.
    """
    others = np.argsort(generator.random((trials, MOST // 2)), axis=1)[:, :2] + MOST // 4
    coins = flip(trials, generator)
    top = MOST - MOST // 4
    third = np.where(coins, generator.integers(top, MOST + 1, trials), generator.integers(0, MOST // 4, trials))
    return np.column_stack([others, third]).astype(np.int64), coins


def study(
    table: Table | None = None,  # noqa: ARG001 - all studies are called alike
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = unheard,
    trials: int = 500,
) -> Study:
    """Ask an auditor for the highest of three salaries, then of two of them, and listen to what it refuses.

    A refusal says that the third person has the highest, which the first answer gave. An auditor whose refusals can be
    foretold from the questions alone says nothing by them, and little else. hubbub refuses by the question, the
    declarations and the ledger alone; what it answers has noise, and both answers cost ε together. The best that can be
    asked of it instead is whether the third salary is high, as a count at the whole of ε.
    """
    trials = numbers.integer(trials, "trials", 1, 5000)
    values, coins = teams(trials, generator)
    findings = []
    for name, auditor in (
        ("auditor that looks at the data", exact_auditor),
        ("auditor that can be foretold", simulatable_auditor),
    ):
        _, refused = auditor(values)
        told = settled(np.where(refused.all() or not refused.any(), 0, 2 * refused - 1), generator)
        facts: dict[str, Fact] = {"refused": float(np.mean(refused)), "salaries known exactly": _known(refused, coins)}
        findings.append(Finding(name, None, scored(told, coins), None, facts))
    for place, epsilon in enumerate(epsilons):
        progress(place / len(epsilons), f"hubbub at ε = {brief(epsilon)}")
        three, two = _asked(values, epsilon)
        alike = heard(values, epsilon) == heard(np.roll(values, 1, axis=1), epsilon)
        score = scored(settled(three - two, generator), coins)
        facts = {"refusals alike in two worlds": "yes" if alike else "no"}
        count = counting(_company(values), _HIGH, epsilon=epsilon, declared=_declared(values))
        told = informed(count, np.zeros(trials, dtype=np.int64), coins, system())
        findings += [
            Finding("hubbub, the same two questions", epsilon, score, ceiling(epsilon), facts),
            Finding("hubbub, one count instead", epsilon, scored(told, coins), ceiling(epsilon)),
        ]
    progress(1.0, "done")
    return Study("refusal", "What a refusal tells", compared(findings), tuple(findings))


def _known(refused: Bits, coins: Bits) -> int:
    """Count the triples in which a refusal fixes the third salary, where a refusal is not the rule."""
    return 0 if refused.all() else int(np.count_nonzero(refused & coins))


def _company(values: Values) -> Table:
    """Write the triples as a table: team, place within it, salary."""
    return Table(
        "company",
        {
            "team": np.repeat(np.arange(len(values)), 3),
            "place": np.tile(np.arange(1, 4), len(values)),
            "salary": values.ravel(),
        },
    )


def _declared(values: Values) -> dict[str, dict[str, object]]:
    return {
        "team": {"type": "integer", "values": list(range(len(values)))},
        "place": {"type": "integer", "values": [1, 2, 3]},
        "salary": {"type": "integer", "bounds": [0, MOST]},
    }


def _asked(values: Values, epsilon: Fraction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Ask hubbub for the highest salary of every team, and of the first two of each, at half of ε each."""
    with protected(_company(values), epsilon=epsilon, declared=_declared(values)) as session:
        found = [
            session.query(
                f"SELECT team, MAX(salary) AS most FROM {TABLE} WHERE place <= {last} GROUP BY team",  # noqa: S608
                epsilon=epsilon / 2,
            )
            for last in (3, 2)
        ]
    first, second = (np.array([row[1] for row in each.rows], dtype=np.float64) for each in found)
    return first, second


def heard(values: Values, epsilon: Fraction) -> list[str]:
    """Give all that hubbub says of some questions, past the end of the budget too, but for the noisy numbers."""
    with protected(_company(values), epsilon=epsilon, declared=_declared(values)) as session:
        return [
            _reply(session, text, epsilon / 2, f"{turn} {place}")
            for turn in range(3)
            for place, text in enumerate(PROBES)
        ]


def _reply(session: Session, text: str, epsilon: Fraction, key: str) -> str:
    try:
        release = session.query(text, epsilon=epsilon, key=key)
    except HubbubError as refusal:
        return str(refusal)
    return f"{len(release.rows)} rows, ε = {release.epsilon}"
