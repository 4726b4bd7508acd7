"""Refusal attack: an auditor that looks at the data to decide what to refuse discloses it by refusing.

The auditor here returns the largest value among some people, unless that answer and the earlier ones would determine
someone's value (Kenthapadi, Mishra and Nissim 2005; Dwork 2011). All values are distinct.
"""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from hubbub.attacks.base import AttackFinding, AttackStudy, Fact, Progress, ceiling, describe_findings, no_progress
from hubbub.attacks.game import Bits, flip, guess_from, informed, score_guesses
from hubbub.attacks.table import AttackTable
from hubbub.attacks.target import TABLE, count_noise, open_protected
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.curator.session import Session
from hubbub.errors import HubbubError
from hubbub.noise.source import system

MAX_SALARY = 100
#: Queries that hubbub refuses or accepts without looking at the data: the replies are the same for all data.
PROBES = (
    "SELECT salary FROM people WHERE place = 3",
    "SELECT MAX(salary) FROM people WHERE team = 0 AND place < 3 GROUP BY salary",
    "SELECT MAX(salary) AS most FROM people WHERE team = 0",
)

_HIGH = f"team = 0 AND place = 3 AND salary > {MAX_SALARY // 2}"

Values = NDArray[np.int64]


def exact_auditor(values: Values) -> tuple[Values, Bits]:
    """Return the largest of each triple (a row each), and whether the largest of its first two is refused.

    If the first two contain the largest value, the answer is already known and determines no one. Otherwise an answer
    would show that the third person has it, so it is refused, and the refusal shows just that.
    """
    return values.max(axis=1), values[:, :2].max(axis=1) < values[:, 2]


def simulatable_auditor(values: Values) -> tuple[Values, Bits]:
    """Return the largest of each triple; always refuse the first two, because an answer could disclose something."""
    return values.max(axis=1), np.ones(len(values), dtype=bool)


def teams(trials: int, generator: np.random.Generator) -> tuple[Values, Bits]:
    """Simulate triples with distinct salaries; a coin decides whether the third is far above or below both others.

    The other salaries are in the middle half in both cases and reveal nothing about the coin.
    """
    others = np.argsort(generator.random((trials, MAX_SALARY // 2)), axis=1)[:, :2] + MAX_SALARY // 4
    coins = flip(trials, generator)
    top = MAX_SALARY - MAX_SALARY // 4
    third = np.where(
        coins, generator.integers(top, MAX_SALARY + 1, trials), generator.integers(0, MAX_SALARY // 4, trials)
    )
    return np.column_stack([others, third]).astype(np.int64), coins


def study(
    table: AttackTable | None = None,  # noqa: ARG001 - all studies have the same signature
    *,
    epsilons: Sequence[Fraction],
    generator: np.random.Generator,
    progress: Progress = no_progress,
    trials: int = 500,
) -> AttackStudy:
    """Ask an auditor for the highest of three salaries, then of two of them, and learn from its refusals.

    A refusal reveals that the third person has the highest salary, which the first answer gave. An auditor whose
    refusals depend only on the queries reveals nothing by them, but answers little. hubbub's refusals depend only on
    the query, the declarations and the ledger; its answers have noise, and both share ε. The best alternative query is
    a count of whether the third salary is high, at the whole of ε.
    """
    trials = numbers.integer(trials, "trials", 1, 5000)
    values, coins = teams(trials, generator)
    findings = []
    for name, auditor in (
        ("auditor that looks at the data", exact_auditor),
        ("simulatable auditor", simulatable_auditor),
    ):
        _, refused = auditor(values)
        guesses = guess_from(np.where(refused.all() or not refused.any(), 0, 2 * refused - 1), generator)
        facts: dict[str, Fact] = {"refused": float(np.mean(refused)), "salaries known exactly": _known(refused, coins)}
        findings.append(AttackFinding(name, None, score_guesses(guesses, coins), None, facts))
    for step, epsilon in enumerate(epsilons):
        progress(step / len(epsilons), f"hubbub at ε = {brief(epsilon)}")
        three, two = _query_maxima(values, epsilon)
        same = replies(values, epsilon) == replies(np.roll(values, 1, axis=1), epsilon)
        score = score_guesses(guess_from(three - two, generator), coins)
        facts = {"same refusals on both datasets": "yes" if same else "no"}
        count = count_noise(_company(values), _HIGH, epsilon=epsilon, declared=_declared(values))
        guesses = informed(count, np.zeros(trials, dtype=np.int64), coins, system())
        findings += [
            AttackFinding("hubbub, same two queries", epsilon, score, ceiling(epsilon), facts),
            AttackFinding("hubbub, one count instead", epsilon, score_guesses(guesses, coins), ceiling(epsilon)),
        ]
    progress(1.0, "done")
    return AttackStudy("refusal", "Information in refusals", describe_findings(findings), tuple(findings))


def _known(refused: Bits, coins: Bits) -> int:
    """Count the triples in which a refusal determines the third salary, unless the auditor always refuses."""
    return 0 if refused.all() else int(np.count_nonzero(refused & coins))


def _company(values: Values) -> AttackTable:
    """Return the triples as a table: team, position in the team, salary."""
    return AttackTable(
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
        "salary": {"type": "integer", "bounds": [0, MAX_SALARY]},
    }


def _query_maxima(values: Values, epsilon: Fraction) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Query the highest salary of every team, and of the first two members of each, at ε/2 each."""
    with open_protected(_company(values), epsilon=epsilon, declared=_declared(values)) as session:
        releases = [
            session.query(
                f"SELECT team, MAX(salary) AS most FROM {TABLE} WHERE place <= {last} GROUP BY team",  # noqa: S608
                epsilon=epsilon / 2,
                fresh=True,
            )
            for last in (3, 2)
        ]
    first, second = (np.array([row[1] for row in each.rows], dtype=np.float64) for each in releases)
    return first, second


def replies(values: Values, epsilon: Fraction) -> list[str]:
    """Return hubbub's replies to some queries, even beyond the budget, without the noisy numbers."""
    with open_protected(_company(values), epsilon=epsilon, declared=_declared(values)) as session:
        return [
            _reply(session, text, epsilon / 2, f"{turn} {probe}")
            for turn in range(3)
            for probe, text in enumerate(PROBES)
        ]


def _reply(session: Session, text: str, epsilon: Fraction, key: str) -> str:
    try:
        release = session.query(text, epsilon=epsilon, key=key)
    except HubbubError as refusal:
        return str(refusal)
    return f"{len(release.rows)} rows, ε = {release.epsilon}"
