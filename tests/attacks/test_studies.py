"""Properties of every study: it succeeds without a guarantee, stays below the ceiling, and reports its figures."""

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from hubbub.attacks.base import AttackFinding, AttackStudy, Score, ceiling, describe_findings, percent
from hubbub.attacks.catalogue import ATTACKS, find_attack
from hubbub.core import binomial
from hubbub.core.numbers import brief
from hubbub.errors import AttackError, ParameterError
from hubbub.noise.geometric import discrete_laplace

Run = Callable[..., AttackStudy]

#: For each study: a target without a guarantee, the minimum success rate on it, and settings for few trials.
STUDIES: dict[str, tuple[str, float, dict[str, object]]] = {
    "differencing": ("unprotected", 0.99, {"trials": 1000}),
    "averaging": ("fresh noise per answer, no accounting", 0.8, {"times": 3000, "trials": 100}),
    "subsampling": ("query-keyed sample of half, many wordings", 0.9, {"trials": 80}),
    "refusal": ("auditor that looks at the data", 0.95, {"trials": 150}),
    "linkage": ("names removed; known: birth, sex, area, diagnosis", 0.9, {}),
    "homogeneity": ("5-anonymous: coin, rest of the group known", 0.99, {}),
    "tokens": ("hashed words, by neighbors", 0.4, {"trials": 1000}),
    "floats": ("textbook noise in floating point", 0.75, {"trials": 1500}),
    "timing": ("noise sampled step by step", 0.95, {"clock": "steps", "trials": 600}),
}


@pytest.mark.parametrize("name", STUDIES)
def test_it_wins_where_nothing_is_promised_and_stays_under_the_ceiling(name: str, run: Run) -> None:
    """At most 9 scores per study have a ceiling; each exceeds it by chance with probability 1e-8: below 1e-7 in total.

    The attacker is seeded, so only the noise varies, and the thresholds are many deviations away.
    """
    target, share, settings = STUDIES[name]
    study = run(name, **settings)
    for finding in study.findings:
        if finding.ceiling is not None:
            score = finding.score
            assert binomial.tail(score.right, score.trials, finding.ceiling) > 1e-8, finding
            assert finding.target.startswith("hubbub")
    assert {each.epsilon for each in study.findings if each.target.startswith("hubbub")} == {
        Fraction(1, 10),
        Fraction(1),
        Fraction(3),
    }
    won = [finding for finding in study.findings if finding.target == target]
    assert won
    for finding in won:
        assert finding.score.interval(1 - 1e-6)[0] > finding.score.chance
        assert finding.score.share > share


@pytest.mark.parametrize("name", STUDIES)
def test_its_words_say_its_figures(name: str, run: Run) -> None:
    study = run(name, epsilons=("1/2", "2"), **STUDIES[name][2])
    described = study.findings[-len(study.words) :] if name == "linkage" else study.findings
    assert len([each for each in describe_findings(described) if each in study.words]) >= 2
    for finding in study.findings:
        if not any(each.startswith(f"{finding.target}: ") for each in study.words):
            assert name == "linkage"  # its findings before the last are described by uniqueness
            continue
        group = [each for each in study.words if each.startswith(f"{finding.target}: ")]
        (sentence,) = (each for each in group if "guesses are correct" in each)
        assert percent(finding.score.share) in sentence
        assert f"{finding.score.trials:,}" in sentence
        if finding.ceiling is not None and finding.epsilon is not None:
            assert percent(finding.ceiling) in sentence
            assert f"(ε = {brief(finding.epsilon)})" in sentence
    assert "exceed the guarantee" not in " ".join(study.words)


def test_noise_that_is_too_weak_is_found_through_the_whole_product(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a third of the charged noise, the informed guess is correct in 95% where 73% are allowed.

    With 2,000 guesses, this is missed with probability below 1e-6 (a binomial tail).
    """

    def weak(*, scale: Fraction, count: int, source: object) -> object:
        return discrete_laplace(scale=scale / 3, count=count, source=source)  # type: ignore[arg-type]

    monkeypatch.setattr("hubbub.mechanisms.laplace.discrete_laplace", weak)
    for name in ("differencing", "linkage", "homogeneity", "averaging"):
        study = run(name, epsilons=("1",), **({"times": 100, "trials": 2000} if name == "averaging" else {}))
        violations = [each for each in study.findings if not each.held]
        assert violations
        assert all(each.target.startswith("hubbub") for each in violations)
        assert any("exceed the guarantee" in sentence for sentence in study.words)


@pytest.mark.parametrize("name", ATTACKS)
def test_every_attack_explains_itself_and_its_settings(name: str) -> None:
    attack = find_attack(name)
    assert attack.name == name
    assert len(attack.summary) < 90
    assert attack.about.splitlines()[0].endswith(".")
    for value in attack.settings.values():
        assert isinstance(value, int | float | str | bool | tuple)


def test_progress_rises_to_the_end(generator: np.random.Generator) -> None:
    reported: list[tuple[float, str]] = []
    find_attack("differencing").run(
        epsilons=["1", 2], generator=generator, settings={"trials": "20"}, progress=lambda *step: reported.append(step)
    )
    shares = [share for share, _ in reported]
    assert shares == sorted(shares)
    assert reported[-1] == (1.0, "done")
    assert "hubbub at ε = 2" in {words for _, words in reported}


@pytest.mark.parametrize(
    ("name", "settings", "code"),
    [
        ("timing", {"clock": "sundial"}, "HB643"),
        ("timing", {"clok": "steps"}, "HB643"),
        ("timing", {"trials": "many"}, "HB643"),
        ("timing", {"trials": "1.5"}, "HB643"),
        ("timing", {"trials": 2.5}, "HB643"),
        ("timing", {"trials": True}, "HB643"),
        ("timing", {"trials": "-5"}, "HB103"),
        ("timing", {"trials": "9" * 30}, "HB103"),
        ("timing", {"clock": 7}, "HB643"),
        ("linkage", {"quasi": 7}, "HB643"),
        ("linkage", {"quasi": "nose"}, "HB644"),
        ("homogeneity", {"k": "1"}, "HB103"),
        ("homogeneity", {"k": "100000"}, "HB651"),
        ("differencing", {"column": "nose"}, "HB644"),
        ("differencing", {"quasi": "sex"}, "HB651"),
        ("tokens", {"most": "100000"}, "HB103"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(name: str, settings: dict[str, object], code: str, run: Run) -> None:
    with pytest.raises((AttackError, ParameterError)) as refused:
        run(name, **settings)
    assert refused.value.code == code
    assert refused.value.remedy


def test_an_attack_that_is_not_there_is_named_with_the_nearest_that_is(generator: np.random.Generator) -> None:
    with pytest.raises(AttackError, match="Unknown attack 'linkge'") as refused:
        find_attack("linkge")
    assert "Did you mean linkage?" in str(refused.value)
    with pytest.raises(AttackError, match="No ε was given"):
        find_attack("timing").run(epsilons=[], generator=generator)


def test_a_finding_is_held_or_its_study_says_so() -> None:
    assert not [each for each in describe_findings([_finding(60)]) if "exceed the guarantee" in each]
    assert [each for each in describe_findings([_finding(99)]) if "exceed the guarantee" in each]


def _finding(right: int) -> AttackFinding:
    return AttackFinding("hubbub", Fraction(1), Score(right, 100, 0.5), ceiling(Fraction(1)))
