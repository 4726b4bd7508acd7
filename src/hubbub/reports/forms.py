"""Documents as JSON, Markdown, HTML and PDF.

Tested in tests/reports/test_forms.py.
"""

import io
import textwrap
from collections.abc import Callable, Iterator, Mapping
from html import escape
from pathlib import Path

from hubbub.audit.report import load_private_key, sign_report
from hubbub.errors import ParameterError
from hubbub.reports.document import Document

OPEN = "Not answered yet."
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:46rem;margin:2rem auto;padding:0 1rem;color:#1d2b2a}"
    "h2{border-bottom:1px solid #bbb;padding-bottom:.2rem}dt{font-weight:600;margin-top:1rem}dd{margin:.2rem 0 0 0}"
    ".evidence{color:#566;font-size:.875rem}.open{color:#a33}footer{margin-top:3rem;color:#566;font-size:.875rem}"
)


def markdown(document: Document) -> str:
    """Write a document as Markdown."""
    lines = [f"# {document.title}", "", *_head(document), ""]
    for section in document.sections:
        lines += [f"## {section.title}", ""]
        for item in section.items:
            lines += [f"**{item.question}**", ""]
            lines += [f"- {_plain(statement)}" for statement in item.answer] or [f"*{OPEN}*"]
            lines += ["", f"Evidence: {', '.join(item.evidence)}", ""] if item.evidence else [""]
    return "\n".join([*lines, *_open_list(document)]) + "\n"


def _plain(text: str) -> str:
    """Keep names of columns and tables from being read as markup."""
    return "".join(f"\\{letter}" if letter in "\\`*_[]<>#|" else letter for letter in text)


def _head(document: Document) -> list[str]:
    deployment = document.deployment
    return [
        f"Written on {deployment.made:%Y-%m-%d %H:%M} UTC by {deployment.software} from ledger"
        f" {deployment.verification.ledger}, entry {deployment.verification.head.sequence}, hash {deployment.head}.",
    ]


def _open_list(document: Document) -> list[str]:
    if not document.unanswered:
        return ["All questions are answered."]
    return ["## Not answered", "", *[f"- {_plain(item.question)} (`{item.name}`)" for item in document.unanswered]]


def html(document: Document) -> str:
    """Write a document as one HTML page that loads nothing."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{escape(document.title)}</title><style>{_STYLE}</style></head><body>",
        f"<h1>{escape(document.title)}</h1>",
    ]
    for section in document.sections:
        parts += [f"<h2>{escape(section.title)}</h2>", "<dl>"]
        for item in section.items:
            parts.append(f'<dt id="{escape(item.name)}">{escape(item.question)}</dt>')
            parts += [f"<dd>{escape(statement)}</dd>" for statement in item.answer]
            if not item.answered:
                parts.append(f'<dd class="open">{OPEN}</dd>')
            if item.evidence:
                parts.append(f'<dd class="evidence">Evidence: {escape(", ".join(item.evidence))}</dd>')
        parts.append("</dl>")
    parts += [f"<footer>{escape(line)}</footer>" for line in _head(document)]
    return "\n".join([*parts, "</body></html>", ""])


def pdf(document: Document) -> bytes:
    """Write a document as a PDF of plain pages; it needs the extra `plot`."""
    try:
        from matplotlib.backends.backend_pdf import PdfPages
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ParameterError(
            "HB114", "A PDF needs matplotlib.", 'Install it with pip install "hubbub[plot]", or use .html.'
        ) from None
    lines = [*_lines(document)]
    stream = io.BytesIO()
    with PdfPages(stream, metadata={"Title": document.title, "Creator": document.deployment.software}) as pages:
        for start in range(0, len(lines), _PER_PAGE):
            figure = Figure(figsize=(8.27, 11.69))
            for place, (text, weight) in enumerate(lines[start : start + _PER_PAGE]):
                figure.text(0.09, 0.95 - place * 0.017, text, fontsize=9, weight=weight, parse_math=False)
            pages.savefig(figure)
    return stream.getvalue()


_PER_PAGE = 53
_WIDTH = 98  # characters of a line


def _lines(document: Document) -> Iterator[tuple[str, str]]:
    yield from ((line, "bold") for line in textwrap.wrap(document.title, _WIDTH))
    for line in _head(document):
        yield from ((part, "normal") for part in textwrap.wrap(line, _WIDTH))
    for section in document.sections:
        yield from (("", "normal"), (section.title.upper(), "bold"))
        for item in section.items:
            yield ("", "normal")
            yield from ((part, "bold") for part in textwrap.wrap(item.question, _WIDTH))
            for statement in item.answer or (OPEN,):
                yield from ((part, "normal") for part in textwrap.wrap(statement, _WIDTH, initial_indent="  "))
            if item.evidence:
                yield (f"  Evidence: {', '.join(item.evidence)}", "light")


def signed_json(document: Document, key: Path) -> str:
    """Write a document as JSON, signed with the key of this installation."""
    return sign_report(document.to_json(), load_private_key(key, make=True))


#: Forms by the extension of the file, apart from JSON, which is signed.
FORMS: Mapping[str, Callable[[Document], str | bytes]] = {".md": markdown, ".html": html, ".pdf": pdf}


def write(document: Document, path: Path, key: Path) -> None:
    """Write a document in the form of the extension."""
    if path.suffix == ".json":
        content: str | bytes = signed_json(document, key)
    elif path.suffix in FORMS:
        content = FORMS[path.suffix](document)
    else:
        known = ", ".join([".json", *FORMS])
        raise ParameterError("HB115", f"Cannot write a document as {path.name!r}.", f"Use one of {known}.")
    try:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    except OSError as error:
        raise ParameterError("HB129", f"{path} cannot be written ({error.strerror}).", "Choose another file.") from None
