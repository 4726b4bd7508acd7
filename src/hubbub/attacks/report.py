"""A study as a report: a page of HTML that stands by itself, a PDF, a drawing, or JSON.

The HTML has no script, loads nothing and links nowhere; whatever words it holds are escaped. It says what was run and
on what, the figures with their intervals, and how to read them: in particular that an attack that fails proves nothing,
and that the ceiling does.
"""

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from hubbub.attacks.base import Finding, Study, percent, shown_fact
from hubbub.attacks.report_plot import plot
from hubbub.core.numbers import brief
from hubbub.errors import AttackError

#: What every reader is told.
READING = (
    "Right guesses are counted over independent trials; the interval holds what the attack achieves in the long run "
    "in 95 of 100 such experiments (Clopper and Pearson).",
    "Chance is what somebody gets who guesses without looking at any answer.",
    "The ceiling is proved, not measured: against a promise of ε, nobody guesses one fair coin-flip of a secret right "
    "with a probability above e^ε/(1 + e^ε), by this attack or any other, whatever else they know.",
    "An attack that does as well as is allowed lies above the ceiling half of the time, by luck. A promise is called "
    "broken only where luck explains it less than once in a million.",
    "An attack that fails proves nothing: a better one may come. Where no ceiling is drawn, nothing is promised.",
)
_STYLE = """
:root{color-scheme:light dark}body{font:16px/1.55 system-ui,sans-serif;max-width:52rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;line-height:1.25}h2{font-size:1.15rem;margin-top:2rem}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.35rem .8rem .35rem 0;border-bottom:1px solid #8886;vertical-align:top}
.num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.wide{overflow-x:auto}.wide td,.wide th{white-space:nowrap}svg{max-width:100%}
dt{font-weight:600}dd{margin:0 0 .4rem;overflow-wrap:anywhere}.bad{border:2px solid #a3262a;padding:.6rem .9rem}
.soft{opacity:.75;font-size:.875rem}@media print{body{margin:0;max-width:none}section{break-inside:avoid}}
"""


@dataclass(frozen=True, slots=True)
class Made:
    """When a report was made, and of what: the table, the settings."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    terms: Mapping[str, str] = field(default_factory=dict)

    def facts(self, study: Study) -> dict[str, str]:
        """Give what was run, as names and words."""
        return {
            "Attack": study.attack,
            **self.terms,
            "Made": f"{self.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC by hubbub {version('hubbub')}",
        }


COLUMNS = ("Protection", "ε", "Right", "95% interval", "Chance", "Ceiling", "")


def row(finding: Finding) -> tuple[str, ...]:
    """Give a finding as a row under `COLUMNS`."""
    score = finding.score
    return (
        finding.target,
        "none" if finding.epsilon is None else brief(finding.epsilon),
        f"{percent(score.share)} of {score.trials:,}",
        f"{percent(score.low)} – {percent(score.high)}",
        percent(score.chance),
        "–" if finding.ceiling is None else percent(finding.ceiling),
        verdict(finding),
    )


def verdict(finding: Finding) -> str:
    """Say what a finding means for its promise, as far as luck lets it."""
    score = finding.score
    if finding.ceiling is None:
        return "wins: better than chance" if score.low > score.chance else "no better than chance can be shown"
    if not finding.held:
        return "PROMISE BROKEN: above the ceiling"
    return "within the promise" if score.low <= finding.ceiling else "above by luck? run it again"


def broken(study: Study) -> tuple[Finding, ...]:
    """Give the findings that contradict a promise."""
    return tuple(each for each in study.findings if not each.held)


def gist(study: Study) -> str:
    """Say in one sentence what a reader in a hurry must know."""
    bare = [each.score.share for each in study.findings if each.ceiling is None]
    kept = [(each.epsilon, each.score.share) for each in study.findings if each.epsilon is not None and each.ceiling]
    said = [f"Without a promise the attack is right in {_up_to(bare)} of its guesses"] if bare else []
    if kept:
        best = {e: max(share for other, share in kept if other == e) for e in (min(kept)[0], max(kept)[0])}
        found = " and ".join(f"in {percent(share)} at ε = {brief(e)}" for e, share in best.items())
        held = "MORE THAN THE PROMISE ALLOWS" if broken(study) else "no more than the promise allows, luck aside"
        said.append(f"{'with one' if said else 'With a promise the attack is right'}, at best, {found}: {held}")
    chances = sorted({each.score.chance for each in study.findings})
    blind = [f"blind guessing gets {percent(chances[0])}"] if len(chances) == 1 else []
    return "; ".join([*said, *blind]) + "."


def _up_to(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return high if low == high else f"{low} to {high}"


ALARM = (
    "At least one attack did better than the promise allows, beyond what luck explains. Either the promise is broken "
    "or its ceiling is wrong for this attack: do not release, and tell those who maintain hubbub."
)


def facts(finding: Finding) -> str:
    """Write the further figures of a finding in one line."""
    return "; ".join(f"{name}: {shown_fact(value)}" for name, value in finding.facts.items())


def page(study: Study, made: Made | None = None) -> str:
    """Write a report as one HTML file that needs nothing else."""
    made = made or Made()
    text = html.escape
    head = "".join(f"<th{_number(place)}>{text(name)}</th>" for place, name in enumerate(COLUMNS))
    rows = "".join(
        f"<tr>{''.join(f'<td{_number(place)}>{text(cell)}</td>' for place, cell in enumerate(row(each)))}</tr>"
        for each in study.findings
    )
    more = "".join(f"<dt>{text(each.label)}</dt><dd>{text(facts(each))}</dd>" for each in study.findings if each.facts)
    alarm = f'<p class="bad" role="alert"><strong>{text(ALARM)}</strong></p>' if broken(study) else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # in the file too: it will be opened from disks, without our headers
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{text(study.title)} · hubbub</title><style>{_STYLE}</style></head><body>"
        f"<h1>{text(study.title)}</h1>{alarm}<p><strong>{text(gist(study))}</strong></p>"
        f"<section>{''.join(f'<p>{text(each)}</p>' for each in study.words)}</section>"
        f"<section><h2>Success against ε</h2>{plot(study)}</section>"
        f'<section><h2>Figures</h2><div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        f"</div></section>{f'<section><h2>Further figures</h2><dl>{more}</dl></section>' if more else ''}"
        f"<section><h2>How to read this</h2><ul>{''.join(f'<li>{text(each)}</li>' for each in READING)}</ul></section>"
        "<section><h2>What was run</h2><dl>"
        f"{''.join(f'<dt>{text(name)}</dt><dd>{text(value)}</dd>' for name, value in made.facts(study).items())}"
        "</dl></section></body></html>\n"
    )


def _number(place: int) -> str:
    return ' class="num"' if place in (1, 2, 3, 4, 5) else ""


def _html(study: Study, made: Made) -> bytes:
    return page(study, made).encode()


def _svg(study: Study, _: Made) -> bytes:
    return plot(study, alone=True).encode()


def _json(study: Study, made: Made) -> bytes:
    return (json.dumps({"run": made.facts(study), **study.form()}, ensure_ascii=False, indent=1) + "\n").encode()


def _pdf(study: Study, made: Made) -> bytes:
    from hubbub.attacks.report_pdf import pdf  # it needs the extra `plot`

    return pdf(study, made)


#: The forms of a report, by the ending of its file, with their media types.
FORMS: Mapping[str, tuple[str, Callable[[Study, Made], bytes]]] = {
    "html": ("text/html; charset=utf-8", _html),
    "pdf": ("application/pdf", _pdf),
    "svg": ("image/svg+xml", _svg),
    "json": ("application/json", _json),
}


def write(study: Study, path: Path, made: Made | None = None) -> None:
    """Write a report to a file, in the form that its ending names."""
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise AttackError(
            "HB646",
            f"a report cannot be written as {path.suffix or 'a file without an ending'!r}.",
            f"End the file's name with one of: {', '.join(f'.{each}' for each in FORMS)}.",
        )
    path.write_bytes(FORMS[form][1](study, made or Made()))
