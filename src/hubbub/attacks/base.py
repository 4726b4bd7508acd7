"""What an attack reports: how often it guessed right, on which target, and how often the promise lets it."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Self

from hubbub.core import binomial
from hubbub.core.numbers import brief
from hubbub.semantics import odds

Fact = float | int | str
#: A score that luck gives less often than this is taken for a broken promise.
ALARM = 1e-6
#: Told how far a study is: a share from 0 to 1, and what it does now.
Progress = Callable[[float, str], None]


def unheard(_: float, __: str) -> None:
    """Tell nobody how far it is."""


@dataclass(frozen=True, slots=True)
class Score:
    """How well an attack did: `right` guesses of `trials` independent ones; `chance` is what blind guessing gets.

    >>> score = Score(75, 100, 0.5)
    >>> score.share, round(score.low, 3), round(score.high, 3)
    (0.75, 0.653, 0.831)
    """

    right: int
    trials: int
    chance: float

    def __post_init__(self) -> None:
        if not (0 <= self.right <= self.trials and self.trials >= 1 and 0 <= self.chance <= 1):
            raise ValueError("a score has trials, no more right ones than trials, and a chance between 0 and 1")

    @property
    def share(self) -> float:
        """The share of right guesses."""
        return self.right / self.trials

    @property
    def low(self) -> float:
        """The low end of the 95% interval."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """The high end of the 95% interval."""
        return self.interval()[1]

    def interval(self, confidence: float = 0.95) -> tuple[float, float]:
        """Enclose the true success rate (Clopper and Pearson)."""
        return binomial.interval(self.right, self.trials, confidence)

    def form(self) -> dict[str, Fact]:
        """Give it for JSON."""
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
        """Read what `form` gives."""
        return cls(int(form["right"]), int(form["trials"]), float(form["chance"]))


@dataclass(frozen=True, slots=True)
class Finding:
    """One attack on one target.

    target    the protection in plain words: "unprotected", "rounded", "hubbub"
    epsilon   None where the target promises nothing
    ceiling   what the guarantee allows at most (for one balanced bit e^ε/(1+e^ε)); None where nothing is promised
    facts     further figures: wrong bits, noise, seconds
    """

    target: str
    epsilon: Fraction | None
    score: Score
    ceiling: float | None
    facts: Mapping[str, Fact] = field(default_factory=dict)

    @property
    def held(self) -> bool:
        """Whether luck explains the score: at the ceiling, as many right guesses come with at least this probability.

        Some attacks attain the ceiling, so an interval of 95% would cry wolf in one of forty studies.
        """
        return self.ceiling is None or binomial.tail(self.score.right, self.score.trials, self.ceiling) >= ALARM

    @property
    def label(self) -> str:
        """The target with its ε."""
        return self.target if self.epsilon is None else f"{self.target}, ε = {brief(self.epsilon)}"

    def form(self) -> dict[str, object]:
        """Give it for JSON; ε is exact, as text."""
        return {
            "target": self.target,
            "epsilon": None if self.epsilon is None else str(self.epsilon),
            "score": self.score.form(),
            "ceiling": self.ceiling,
            "facts": dict(self.facts),
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read what `form` gives."""
        epsilon = None if form["epsilon"] is None else Fraction(form["epsilon"])
        return cls(form["target"], epsilon, Score.read(form["score"]), form["ceiling"], dict(form["facts"]))


@dataclass(frozen=True, slots=True)
class Study:
    """What `hubbub attack NAME`, Python and the page show: findings, and plain sentences made from their figures."""

    attack: str
    title: str
    words: tuple[str, ...]
    findings: tuple[Finding, ...]

    def form(self) -> dict[str, object]:
        """Give it for JSON, as data."""
        return {
            "attack": self.attack,
            "title": self.title,
            "words": list(self.words),
            "findings": [finding.form() for finding in self.findings],
        }

    @classmethod
    def read(cls, form: Mapping[str, Any]) -> Self:
        """Read what `form` gives."""
        findings = tuple(map(Finding.read, form["findings"]))
        return cls(form["attack"], form["title"], tuple(form["words"]), findings)

    def json(self) -> str:
        """Write it as JSON."""
        return json.dumps(self.form(), ensure_ascii=False, indent=2)

    def text(self) -> str:
        """Write it for a terminal or a mail: title, sentences, one line a finding."""
        wide = max((len(finding.label) for finding in self.findings), default=0)
        lines = [self.title, "", *self.words, ""]
        for finding in self.findings:
            ceiling = "promises nothing" if finding.ceiling is None else f"ceiling {percent(finding.ceiling)}"
            shown = f"{percent(finding.score.share):>7}  [{percent(finding.score.low)}, {percent(finding.score.high)}]"
            facts = "".join(f"  {name}: {shown_fact(value)}" for name, value in finding.facts.items())
            lines.append(
                f"  {finding.label:<{wide}}  {shown}  chance {percent(finding.score.chance)}  {ceiling}{facts}"
            )
        return "\n".join(lines) + "\n"


def compared(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Say in plain sentences what the figures show: one for each target, and one more where a ceiling is passed.

    >>> compared([Finding("unprotected", None, Score(99, 100, 0.5), None)])
    ('unprotected: right in 99.0 % of 100 guesses, where blind guessing gets 50.0 %.',)
    >>> compared([Finding("hubbub", Fraction(1), Score(70, 100, 0.5), ceiling(Fraction(1)))])
    ('hubbub: right in 70.0 % (ε = 1) of 100 guesses; the promise allows 73.1 % at most.',)
    """
    said = []
    for target in dict.fromkeys(finding.target for finding in findings):
        own = [finding for finding in findings if finding.target == target]
        shares = listed([percent(f.score.share) + (f" (ε = {brief(f.epsilon)})" if f.epsilon else "") for f in own])
        trials = listed([*dict.fromkeys(f"{each.score.trials:,}" for each in own)])
        allowed = listed([percent(each.ceiling) for each in own if each.ceiling is not None])
        chance = listed([*dict.fromkeys(percent(each.score.chance) for each in own)])
        end = f"; the promise allows {allowed} at most." if allowed else f", where blind guessing gets {chance}."
        said.append(f"{target}: right in {shares} of {trials} guesses{end}")
    said += [
        f"{each.label}: {each.score.right:,} of {each.score.trials:,} right guesses are more than the promise allows; "
        "luck does as well in fewer than one of a million studies."
        for each in findings
        if not each.held
    ]
    return tuple(said)


def listed(parts: Sequence[str]) -> str:
    """Write a list as people do.

    >>> listed(["a"]), listed(["a", "b"]), listed(["a", "b", "c"])
    ('a', 'a and b', 'a, b and c')
    """
    return " and ".join(part for part in (", ".join(parts[:-1]), *parts[-1:]) if part)


def ceiling(epsilon: Fraction, delta: Fraction = Fraction(0)) -> float:
    """Give the share of right guesses of one fair secret that a promise allows at most, by the theorem of `odds.guess`.

    >>> ceiling(Fraction(0)), round(ceiling(Fraction(1)), 4), ceiling(Fraction(10**6))
    (0.5, 0.7311, 1.0)
    """
    return float(odds.guess(epsilon=epsilon, delta=delta))


def percent(share: float) -> str:
    """Show a share to a person: never 100 % or 0 % unless it is.

    >>> percent(1.0), percent(0.99999), percent(0.5), percent(0.00001), percent(0.0)
    ('100 %', '>99.9 %', '50.0 %', '<0.1 %', '0 %')
    """
    if share in (0.0, 1.0):
        return f"{share * 100:.0f} %"
    if share < 0.0005:
        return "<0.1 %"
    return ">99.9 %" if share >= 0.9995 else f"{share * 100:.1f} %"


def shown_fact(value: Fact) -> str:
    """Show a fact to a person."""
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:.4g}"
