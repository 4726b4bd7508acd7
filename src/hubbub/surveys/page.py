"""The survey as a single static HTML page that randomizes answers in the browser."""

import base64
import json
import math
from fractions import Fraction
from hashlib import sha256
from html import escape
from pathlib import Path
from string import Template
from typing import Any
from urllib.parse import urlsplit

from hubbub.core.finite import FiniteDistribution, exact_distribution
from hubbub.core.interval import exp
from hubbub.core.numbers import brief
from hubbub.errors import QueryError
from hubbub.mechanisms.bit_flips import BitFlips
from hubbub.surveys.survey import Survey, SurveyQuestion

_HERE = Path(__file__).parent
_WORDS = 1 << 64


def threshold(question: SurveyQuestion) -> int:
    """Return the number of 64-bit words, out of 2⁶⁴, for which the page changes the answer (or flips a box).

    Theorem (Coins of whole words). Lying with probability t/2⁶⁴, where t is rounded up from the probability of
    randomized response, costs at most the question's ε: a more likely lie leaves smaller odds.
    Proof    The odds of a true answer against each other one are (1 − t/2⁶⁴)(k − 1)/(t/2⁶⁴), falling in t, and e^ε at
             the exact t; of a box, (1 − t/2⁶⁴)/(t/2⁶⁴) likewise, as long as both are at least 1.
    Tested   tests/surveys/test_page.py::test_the_coins_of_the_page_keep_the_price_exactly
    """
    mechanism = question.mechanism
    rate = mechanism.rate if isinstance(mechanism, BitFlips) else mechanism.epsilon
    others = 1 if question.boxes else len(question.answers) - 1
    low = exp(-rate)
    lie = others * low / (1 + others * low)
    # for tiny ε, rounding up must not pass the point at which an answer carries no information
    return min(math.ceil(lie.enclosure[1] * _WORDS), others * _WORDS // (others + 1))


def distribution(question: SurveyQuestion, truth: int) -> FiniteDistribution[int]:
    """Return the distribution of what the page sends for one answer, or for one box (0 or 1)."""
    lie = Fraction(threshold(question), _WORDS)
    size = 2 if question.boxes else len(question.answers)
    return exact_distribution({each: 1 - lie if each == truth else lie / (size - 1) for each in range(size)})


def render_page(survey: Survey, *, to: str | None) -> str:
    """Return the page. Responses go to `to`, a URL or a path; without it the page shows them for copying."""
    script, style = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.js", "page.css"))
    data = json.dumps(_data(survey, to), ensure_ascii=True)
    # the data must not close its element or open a comment
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Template((_HERE / "page.html").read_text(encoding="utf-8")).substitute(
        policy=escape(content_security_policy(to), quote=True),
        title=escape(survey.title),
        epsilon=escape(brief(survey.epsilon)),
        style=style,
        script=script,
        survey=data,
    )


def content_security_policy(to: str | None) -> str:
    """Return the content security policy: the page's own script and style by hash, and one address to send to."""
    script, style = (_hash((_HERE / name).read_text(encoding="utf-8")) for name in ("page.js", "page.css"))
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; connect-src {_target(to)}; "
        "base-uri 'none'; form-action 'none'"
    )


def _target(to: str | None) -> str:
    if to is None:
        return "'none'"
    parts = urlsplit(to)
    if not parts.scheme and not parts.netloc and to.isascii() and not set(to) & set(" ;,'\"<>\\"):
        return "'self'"
    local = parts.hostname in ("localhost", "127.0.0.1", "::1")
    allowed = parts.scheme == "https" or (parts.scheme == "http" and local)
    if not allowed or not parts.netloc or not to.isascii() or set(to) & set(" ;,'\"<>\\"):
        raise QueryError("HB539", "Responses can be sent only to an https URL or a path.", "Pass --to https://….")
    return f"{parts.scheme}://{parts.netloc}"


def _data(survey: Survey, to: str | None) -> dict[str, Any]:
    return {
        "identity": survey.identity,
        "to": to,
        "questions": [
            {
                "name": each.name,
                "text": each.text,
                "answers": list(each.answers),
                "boxes": each.boxes,
                "most": each.most,
                "threshold": str(threshold(each)),
                "notice": describe_randomization(each),
            }
            for each in survey.questions
        ],
    }


def describe_randomization(question: SurveyQuestion) -> str:
    """Tell the respondent how the answer is randomized."""
    lie = threshold(question) / _WORDS
    change = "Each box is flipped" if question.boxes else "Your answer is replaced by a random other answer"
    return f"{change} with probability {lie:.3g} (ε = {brief(question.epsilon)})."


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
