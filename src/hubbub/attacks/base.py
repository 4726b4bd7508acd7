"""Results of an attack: its success rate on each target, and the maximum that the privacy guarantee allows."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from hubbub.core import binomial
from hubbub.core.numbers import brief
from hubbub.semantics import odds

Fact = float | int | str
#: A score that chance explains with a smaller probability than this counts as a violated guarantee.
ALARM = 1e-6
#: Progress callback of a study: a share from 0 to 1, and the current step.
Progress = Callable[[float, str], None]


def no_progress(_: float, __: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, slots=True)
class Score:
    """Score of an attack: `right` of `trials` independent guesses; `chance` is the success rate of blind guessing.

    >>> score = Score(75, 100, 0.5)
    >>> score.share, round(score.low, 3), round(score.high, 3)
    (0.75, 0.653, 0.831)
    """

    right: int
    trials: int
    chance: float

    def __post_init__(self) -> None:
        if not (0 <= self.right <= self.trials and self.trials >= 1 and 0 <= self.chance <= 1):
            raise ValueError("a score needs trials >= 1, 0 <= right <= trials, and 0 <= chance <= 1")

    @property
    def share(self) -> float:
        """The share of correct guesses."""
        return self.right / self.trials

    @property
    def low(self) -> float:
        """Lower bound of the 95% confidence interval."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """Upper bound of the 95% confidence interval."""
        return self.interval()[1]

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Return a confidence interval of the success rate (Clopper and Pearson)."""
        return binomial.interval(self.right, self.trials, confidence)

    def to_json(self) -> dict[str, Fact]:
        """Return the score as JSON values."""
        low, high = self.interval()
        return {
            "right": self.right,
            "trials": self.trials,
            "chance": self.chance,
            "share": self.share,
            "low": low,
            "high": high,
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read the result of `to_json`."""
        return cls(int(form["right"]), int(form["trials"]), float(form["chance"]))


@dataclass(frozen=True, slots=True)
class AttackFinding:
    """The result of one attack on one target.

    target    the protection, such as "unprotected", "rounded" or "hubbub"
    epsilon   None if the target has no privacy guarantee
    ceiling   maximum success rate under ε (e^ε/(1+e^ε) for one balanced bit); None without a guarantee
    facts     further figures, such as wrong bits, noise, or seconds
    """

    target: str
    epsilon: Fraction | None
    score: Score
    ceiling: float | None
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        """Whether the score is compatible with the ceiling: at the ceiling its probability is at least `ALARM`.

        Some attacks attain the ceiling, so a 95% interval would raise a false alarm in one of forty studies.
        """
        return self.ceiling is None or binomial.tail(self.score.right, self.score.trials, self.ceiling) >= ALARM

    @property
    def label(self) -> str:
        """The target with its ε."""
        return self.target if self.epsilon is None else f"{self.target}, ε = {brief(self.epsilon)}"

    def to_json(self) -> dict[str, object]:
        """Return the finding as JSON values; ε is exact, as text."""
        return {
            "target": self.target,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "score": self.score.to_json(),
            "ceiling": self.ceiling,
            "facts": dict(self.facts),
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read the result of `to_json`."""
        epsilon = None if form["epsilon"] is None else Fraction(form["epsilon"])
        return cls(form["target"], epsilon, Score.read(form["score"]), form["ceiling"], dict(form["facts"]))


@dataclass(frozen=True, slots=True)
class AttackStudy:
    """The result of `hubbub attack NAME`: findings, and sentences that describe them."""

    attack: str
    title: str
    words: tuple[str, ...]
    findings: tuple[AttackFinding, ...]

    def to_json(self) -> dict[str, object]:
        """Return the study as JSON values."""
        return {
            "attack": self.attack,
            "title": self.title,
            "words": list(self.words),
            "findings": [finding.to_json() for finding in self.findings],
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read the result of `to_json`."""
        findings = tuple(map(AttackFinding.read, form["findings"]))
        return cls(form["attack"], form["title"], tuple(form["words"]), findings)

    def json(self) -> str:
        """Format the study as JSON."""
        return json.dumps(self.to_json(), ensure_ascii=False, indent=2)

    def text(self) -> str:
        """Format the study as plain text: title, sentences, and one line per finding."""
        wide = max((len(finding.label) for finding in self.findings), default=0)
        lines = [self.title, "", *self.words, ""]
        for finding in self.findings:
            ceiling = "no guarantee" if finding.ceiling is None else f"maximum {percent(finding.ceiling)}"
            shown = f"{percent(finding.score.share):>7}  [{percent(finding.score.low)}, {percent(finding.score.high)}]"
            facts = "".join(f"  {name}: {format_fact(value)}" for name, value in finding.facts.items())
            lines.append(
                f"  {finding.label:<{wide}}  {shown}  chance {percent(finding.score.chance)}  {ceiling}{facts}"
            )
        return "\n".join(lines) + "\n"


def describe_findings(findings: Sequence[AttackFinding]) -> tuple[str, ...]:
    """Describe findings: one sentence per target, and one more for each finding that exceeds its ceiling.

    >>> describe_findings([AttackFinding("unprotected", None, Score(99, 100, 0.5), None)])
    ('unprotected: 99.0% of 100 guesses are correct; blind guessing achieves 50.0%.',)
    >>> describe_findings([AttackFinding("hubbub", Fraction(1), Score(70, 100, 0.5), ceiling(Fraction(1)))])
    ('hubbub: 70.0% (ε = 1) of 100 guesses are correct; the guarantee allows at most 73.1%.',)
    """
    sentences = []
    for target in dict.fromkeys(finding.target for finding in findings):
        group = [finding for finding in findings if finding.target == target]
        shares = join_words(
            [percent(f.score.share) + (f" (ε = {brief(f.epsilon)})" if f.epsilon else "") for f in group]
        )
        trials = join_words([*dict.fromkeys(f"{each.score.trials:,}" for each in group)])
        allowed = join_words([percent(each.ceiling) for each in group if each.ceiling is not None])
        chance = join_words([*dict.fromkeys(percent(each.score.chance) for each in group)])
        lucky = any(f.held and f.ceiling is not None and f.score.share > f.ceiling for f in group)
        explained = " on average, and chance explains the difference" if lucky else ""
        end = f"the guarantee allows at most {allowed}{explained}." if allowed else f"blind guessing achieves {chance}."
        sentences.append(f"{target}: {shares} of {trials} guesses are correct; {end}")
    sentences += [
        f"{each.label}: {each.score.right:,} of {each.score.trials:,} correct guesses exceed the guarantee; by chance "
        "this happens in fewer than one of a million studies."
        for each in findings
        if not each.held
    ]
    return tuple(sentences)


def join_words(parts: Sequence[str]) -> str:
    """Join words with commas and "and".

    >>> join_words(["a"]), join_words(["a", "b"]), join_words(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def ceiling(epsilon: Fraction, delta: Fraction = Fraction(0)) -> float:
    """Return the maximum success rate of guessing one fair secret under (ε, δ), by the theorem of `odds.guess`.

    >>> ceiling(Fraction(0)), round(ceiling(Fraction(1)), 4), ceiling(Fraction(10**6))
    (0.5, 0.7311, 1.0)
    """
    return float(odds.guess(epsilon=epsilon, delta=delta))


def percent(share: float) -> str:
    """Format a share as a percentage: 100% or 0% only if exact.

    >>> percent(1.0), percent(0.99999), percent(0.5), percent(0.00001), percent(0.0)
    ('100%', '>99.9%', '50.0%', '<0.1%', '0%')
    """
    if share in (0.0, 1.0):
        return f"{share * 100:.0f}%"
    if share < 0.0005:
        return "<0.1%"
    return ">99.9%" if share >= 0.9995 else f"{share * 100:.1f}%"


def format_fact(value: Fact) -> str:
    """Format a fact for display."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
