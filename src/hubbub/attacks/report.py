"""Report of a study as self-contained HTML, PDF, SVG or JSON.

The HTML has no script, loads nothing and escapes all text. It shows what was run, the figures with their confidence
intervals, and how to interpret them.
"""

import html
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from hubbub.attacks.base import AttackFinding, AttackStudy, format_fact, percent
from hubbub.attacks.report_plot import plot
from hubbub.core.numbers import brief
from hubbub.errors import AttackError

#: How to interpret a report.
READING = (
    "Correct guesses are counted over independent trials; the 95% confidence interval contains the attack's true "
    "success rate in 95 of 100 such experiments (Clopper and Pearson).",
    "Chance is the success rate of guessing without any answer.",
    "The maximum is proved, not measured: under a guarantee of ε, no attack guesses a fair secret bit correctly with "
    "probability above e^ε/(1 + e^ε), whatever else the attacker knows.",
    "An attack that attains the maximum exceeds it half of the time by chance. A guarantee is reported as violated "
    "only if chance explains it with probability below one in a million.",
    "A failed attack proves nothing: a better one may exist. Without a maximum, there is no guarantee.",
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
class ReportContext:
    """When and with which table and settings a report was created."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC))
    terms: Mapping[str, str] = field(default_factory=dict)

    def facts(self, study: AttackStudy) -> dict[str, str]:
        """Return what was run, as names and texts."""
        return {
            "Attack": study.attack,
            **self.terms,
            "Made": f"{self.at.astimezone(UTC):%Y-%m-%d %H:%M} UTC by hubbub {version('hubbub')}",
        }


COLUMNS = ("Protection", "ε", "Correct", "95% interval", "Chance", "Maximum", "")


def row(finding: AttackFinding) -> tuple[str, ...]:
    """Return a finding as a row of `COLUMNS`."""
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


def verdict(finding: AttackFinding) -> str:
    """Return what a finding means for the guarantee."""
    score = finding.score
    if finding.ceiling is None:
        return "succeeds: better than chance" if score.low > score.chance else "not better than chance"
    if not finding.held:
        return "GUARANTEE VIOLATED: above the maximum"
    return (
        "within the guarantee" if score.low <= finding.ceiling else "above the maximum, maybe by chance: run it again"
    )


def exceeding_findings(study: AttackStudy) -> tuple[AttackFinding, ...]:
    """Return the findings that contradict a guarantee."""
    return tuple(each for each in study.findings if not each.held)


def summarize(study: AttackStudy) -> str:
    """Summarize a study in one sentence."""
    bare = [each.score.share for each in study.findings if each.ceiling is None]
    kept = [(each.epsilon, each.score.share) for each in study.findings if each.epsilon is not None and each.ceiling]
    parts = [f"Without a guarantee, {_up_to(bare)} of the guesses are correct"] if bare else []
    if kept:
        best = {e: max(share for other, share in kept if other == e) for e in (min(kept)[0], max(kept)[0])}
        rates = " and ".join(f"{percent(share)} at ε = {brief(e)}" for e, share in best.items())
        held = "MORE THAN THE GUARANTEE ALLOWS" if exceeding_findings(study) else "within the guarantee"
        parts.append(f"{'with one' if parts else 'With a guarantee'}, at most {rates}: {held}")
    chances = sorted({each.score.chance for each in study.findings})
    blind = [f"blind guessing achieves {percent(chances[0])}"] if len(chances) == 1 else []
    return "; ".join([*parts, *blind]) + "."


def _up_to(shares: Sequence[float]) -> str:
    low, high = percent(min(shares)), percent(max(shares))
    return high if low == high else f"{low} to {high}"


ALARM = (
    "At least one attack exceeded the privacy guarantee by more than chance explains. Either the guarantee is violated "
    "or the stated maximum is wrong for this attack. Do not release the data, and report this to the maintainers of "
    "hubbub."
)


def facts(finding: AttackFinding) -> str:
    """Format the further figures of a finding in one line."""
    return "; ".join(f"{name}: {format_fact(value)}" for name, value in finding.facts.items())


def page(study: AttackStudy, context: ReportContext | None = None) -> str:
    """Return a report as one self-contained HTML file."""
    context = context or ReportContext()
    text = html.escape
    head = "".join(f"<th{_number(index)}>{text(name)}</th>" for index, name in enumerate(COLUMNS))
    rows = "".join(
        f"<tr>{''.join(f'<td{_number(index)}>{text(cell)}</td>' for index, cell in enumerate(row(each)))}</tr>"
        for each in study.findings
    )
    more = "".join(f"<dt>{text(each.label)}</dt><dd>{text(facts(each))}</dd>" for each in study.findings if each.facts)
    alarm = f'<p class="bad" role="alert"><strong>{text(ALARM)}</strong></p>' if exceeding_findings(study) else ""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        # also in the file, because it may be opened from disk, without our headers
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{text(study.title)} · hubbub</title><style>{_STYLE}</style></head><body>"
        f"<h1>{text(study.title)}</h1>{alarm}<p><strong>{text(summarize(study))}</strong></p>"
        f"<section>{''.join(f'<p>{text(each)}</p>' for each in study.words)}</section>"
        f"<section><h2>Success against ε</h2>{plot(study)}</section>"
        f'<section><h2>Figures</h2><div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>'
        f"</div></section>{f'<section><h2>Further figures</h2><dl>{more}</dl></section>' if more else ''}"
        f"<section><h2>How to read this</h2><ul>{''.join(f'<li>{text(each)}</li>' for each in READING)}</ul></section>"
        "<section><h2>What was run</h2><dl>"
        f"{''.join(f'<dt>{text(name)}</dt><dd>{text(value)}</dd>' for name, value in context.facts(study).items())}"
        "</dl></section></body></html>\n"
    )


def _number(column: int) -> str:
    return ' class="num"' if column in (1, 2, 3, 4, 5) else ""


def _html(study: AttackStudy, context: ReportContext) -> bytes:
    return page(study, context).encode()


def _svg(study: AttackStudy, _: ReportContext) -> bytes:
    return plot(study, alone=True).encode()


def _json(study: AttackStudy, context: ReportContext) -> bytes:
    return (json.dumps({"run": context.facts(study), **study.to_json()}, ensure_ascii=False, indent=1) + "\n").encode()


def _pdf(study: AttackStudy, context: ReportContext) -> bytes:
    from hubbub.attacks.report_pdf import pdf  # it needs the extra `plot`

    return pdf(study, context)


#: Formats of a report by file extension, with their media types.
FORMS: Mapping[str, tuple[str, Callable[[AttackStudy, ReportContext], bytes]]] = {
    "html": ("text/html; charset=utf-8", _html),
    "pdf": ("application/pdf", _pdf),
    "svg": ("image/svg+xml", _svg),
    "json": ("application/json", _json),
}


def write(study: AttackStudy, path: Path, context: ReportContext | None = None) -> None:
    """Write a report to a file, in the format of its extension."""
    form = path.suffix.lower().removeprefix(".")
    if form not in FORMS:
        raise AttackError(
            "HB646",
            f"Cannot write a report as {path.suffix or 'a file without an extension'!r}.",
            f"Use one of these extensions: {', '.join(f'.{each}' for each in FORMS)}.",
        )
    path.write_bytes(FORMS[form][1](study, context or ReportContext()))
