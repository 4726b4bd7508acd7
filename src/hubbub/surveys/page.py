"""The survey as one static page that randomizes in the browser: no other file, no other host, no evaluation of text."""

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

from hubbub.core.finite import Finite, exactly
from hubbub.core.interval import exp
from hubbub.core.numbers import brief
from hubbub.errors import QueryError
from hubbub.mechanisms.bit_flips import Flips
from hubbub.surveys.survey import Question, Survey

_HERE = Path(__file__).parent
_WORDS = 1 << 64


def threshold(question: Question) -> int:
    """Give the number of 64-bit words, of 2⁶⁴, at which the page lies (or flips a box).

    Theorem (Coins of whole words). Lying with probability t/2⁶⁴, t rounded up from what randomized response asks for,
    keeps the question's price: a lie that is more likely leaves smaller odds.
    Proof    The odds of a true answer against each other one are (1 − t/2⁶⁴)(k − 1)/(t/2⁶⁴), falling in t, and e^ε at
             the exact t; of a box, (1 − t/2⁶⁴)/(t/2⁶⁴) likewise, as long as both are at least 1.
    Tested   tests/surveys/test_page.py::test_the_coins_of_the_page_keep_the_price_exactly
    """
    mechanism = question.mechanism
    rate = mechanism.rate if isinstance(mechanism, Flips) else mechanism.epsilon
    others = 1 if question.boxes else len(question.answers) - 1
    low = exp(-rate)
    lie = others * low / (1 + others * low)
    # where ε is next to nothing, rounding up must not pass the point at which an answer says nothing
    return min(math.ceil(lie.enclosure[1] * _WORDS), others * _WORDS // (others + 1))


def law(question: Question, truth: int) -> Finite[int]:
    """Write out what the page sends: of one answer, or of one box (0 or 1)."""
    lie = Fraction(threshold(question), _WORDS)
    size = 2 if question.boxes else len(question.answers)
    return exactly({each: 1 - lie if each == truth else lie / (size - 1) for each in range(size)})


def page(survey: Survey, *, to: str | None) -> str:
    """Write the page. `to` is where responses go, an address or a path; without one they are shown to be copied."""
    script, style = ((_HERE / name).read_text(encoding="utf-8") for name in ("page.js", "page.css"))
    data = json.dumps(_data(survey, to), ensure_ascii=True)
    # nothing in the data may end its element, or begin a comment in it
    data = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return Template((_HERE / "page.html").read_text(encoding="utf-8")).substitute(
        policy=escape(policy(to), quote=True),
        title=escape(survey.title),
        price=escape(brief(survey.epsilon)),
        style=style,
        script=script,
        survey=data,
    )


def policy(to: str | None) -> str:
    """Give the page's content security policy: its own script and style by their hashes, and one address to send to."""
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
    good = parts.scheme == "https" or (parts.scheme == "http" and local)
    if not good or not parts.netloc or not to.isascii() or set(to) & set(" ;,'\"<>\\"):
        raise QueryError("HB539", "responses are sent to an https address, or to a path.", "Write --to https://….")
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
                "promise": promise(each),
            }
            for each in survey.questions
        ],
    }


def promise(question: Question) -> str:
    """Say to whoever answers what is done to the answer."""
    lie = threshold(question) / _WORDS
    what = "Each box is changed" if question.boxes else "Your answer is replaced by another one"
    return f"{what} with probability {lie:.3g} (ε = {brief(question.epsilon)})."


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}'"
