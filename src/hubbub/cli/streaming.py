"""The commands of `hubbub stream`."""

import csv
import json
import sys
from argparse import Namespace
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.analyses.streams import buying, feeding
from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.audit import snapshots
from hubbub.analyses.streams.density import Density
from hubbub.analyses.streams.examples import CountMin, Reservoir
from hubbub.analyses.streams.places import Entry, entries, find
from hubbub.analyses.streams.stream import Stream, made, opened
from hubbub.analyses.streams.terms import Terms
from hubbub.answers import terminal
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.curator.session import open_session
from hubbub.errors import QueryError, StreamError
from hubbub.noise.source import system

#: Arrivals of the streams that `audit` enumerates: a look between two of them shows all there is.
_LENGTH = 2


def stream(options: Namespace, console: Console) -> int:
    """Do one of the commands."""
    commands = {
        "make": _make,
        "feed": _feed,
        "answer": _answer,
        "read": _read,
        "list": _list,
        "end": _end,
        "audit": _audit,
    }
    return commands[options.what](options, console)


def _folder(options: Namespace) -> Path:
    return Path(options.folder) if options.folder else Path(options.config).parent / "hubbub-streams"


def _find(options: Namespace) -> Path:
    """Find the folder of one stream, by its name and, where several have it, its analyst."""
    entry = _entry(options)
    if entry is None:
        raise states.missing(options.name)
    return entry.folder


def _entry(options: Namespace) -> Entry | None:
    chosen = [
        each
        for each in entries(_folder(options))
        if each.name == options.name and options.analyst in (None, each.analyst)
    ]
    if len(chosen) > 1:
        whose = ", ".join(each.analyst or "nobody" for each in chosen)
        raise StreamError("HB663", f"{options.name} is a stream of several: {whose}.", "Say whose: --analyst NAME.")
    return chosen[0] if chosen else None


def _end(options: Namespace, console: Console) -> int:
    entry, root = _entry(options), _folder(options)
    analyst = entry.analyst if entry is not None else options.analyst
    if analyst is None:
        buying.end_state(root, options.name)
    else:
        buying.end(root, analyst, options.name)
    console.print(f"{escape(options.name)} has ended, and its state is erased. What it cost stays spent.")
    return 0


def _make(options: Namespace, console: Console) -> int:
    universe = None if options.universe is None else _universe(options.universe)
    if options.dataset is None:
        delta = Fraction(0) if options.delta in (None, "0") else numbers.delta(options.delta)
        method = options.method or ("root" if delta and not options.private_state else "tree")
        terms = Terms(
            name=options.name,
            kind=options.kind,
            epsilon=numbers.epsilon(options.epsilon),
            delta=delta,
            universe=universe,
            outputs=options.outputs,
            classic=options.classic,
            horizon=options.horizon,
            window=options.window,
            bins=None if options.bins is None else tuple(options.bins),
            bound=options.bound,
            method=method,
            private_state=options.private_state,
        )
        with made(_folder(options), terms, system()) as begun:
            _show(begun, console)
        console.print("It belongs to no dataset: nothing was charged to a ledger.")
        return 0
    if options.folder:
        raise QueryError(
            "HB530", "the streams of a dataset lie beside hubbub.yaml.", "Leave out --folder, or --dataset."
        )
    with open_session(options.config, analyst=options.analyst) as session:
        bought = session.stream(
            options.dataset,
            options.name,
            kind=options.kind,
            universe=universe,
            outputs=options.outputs,
            classic=options.classic,
            horizon=options.horizon,
            window=options.window,
            bins=options.bins,
            bound=options.bound,
            method=options.method,
            private_state=options.private_state,
            epsilon=options.epsilon,
            delta=options.delta,
        )
        entry = find(_folder(options), session.analyst, options.name)
    if entry is None:
        raise states.missing(options.name)
    with opened(entry.folder, options.name) as begun:
        _show(begun, console)
    console.print(
        f"{'It was' if bought.replayed else 'It is'} charged to {escape(options.dataset)}: ε = {brief(bought.epsilon)},"
        " once, for all that it will say."
    )
    return 0


def _universe(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    try:
        return int(low), int(high)
    except ValueError:
        raise QueryError("HB530", f"{text!r} is not a universe.", "Write --universe 0:99999.") from None


def _feed(options: Namespace, console: Console) -> int:
    path = None if options.tail is None else Path(options.tail)
    file = sys.stdin.fileno() if path is None else feeding.open_file(path)
    # a file that was put in another's place is another feeder, and begins at its first line
    feeder = options.feeder or ("stdin" if path is None else f"{path.absolute()} {path.stat().st_ino}")
    new, passed = feeding.feed(
        _find(options),
        options.name,
        file,
        feeder=feeder,
        resume=options.resume or path is not None,
        follow=options.follow,
        source=system(),
    )
    console.print(f"{new} arrivals taken" + (f", {passed} lines passed over." if passed else "."))
    return 0


def _answer(options: Namespace, console: Console) -> int:
    with opened(_find(options), options.name) as held:
        held.tell(system())
        _say(held, options, console)
    return 0


def _read(options: Namespace, console: Console) -> int:
    with opened(_find(options), options.name) as held:
        if options.all:
            writer = csv.writer(sys.stdout, lineterminator="\n")
            if held.terms.kind == "density":
                writer.writerow(("answer", "density"))
                writer.writerows(enumerate(held.told(), 1))
            else:
                series = held.series()
                writer.writerow(("arrival", *(held.terms.bins or ("count",))))
                first = (held.arrivals or 0) - len(series) + 1
                writer.writerows([first + place, *row] for place, row in enumerate(series.round(3).tolist()))
        else:
            _say(held, options, console)
    return 0


def _say(held: Stream, options: Namespace, console: Console) -> None:
    if options.json:
        print(json.dumps(held.form(), ensure_ascii=False))  # noqa: T201
    else:
        _show(held, console)


def _show(held: Stream, console: Console) -> None:
    arrived = "" if held.arrivals is None else f"{held.arrivals} arrivals, "
    console.print(f"[bold]{escape(held.terms.name)}[/]  {arrived}ε = {brief(held.terms.epsilon)}")
    for line in held.terms.derivation:
        console.print(f"  {escape(line)}")
    if held.values():
        shown = ((e.name, f"{e.value:.6g}", f"{e.low:.6g}", f"{e.high:.6g}") for e in held.values())
        console.print(terminal.table(("what", "value", "95% from", "to"), shown, right=(1, 2, 3)))


def _list(options: Namespace, console: Console) -> int:
    for entry in entries(_folder(options)):
        whose = "" if entry.analyst is None else f"  ({entry.analyst}, {entry.dataset})"
        console.print(f"{entry.name}{whose}", markup=False)
    return 0


def _audit(options: Namespace, console: Console) -> int:
    """Enumerate one look and the answer, over two elements, under the relation that is asked for."""
    relation, epsilon = Relation(options.relation), numbers.epsilon(options.epsilon)
    ours = Density.from_epsilon(size=2, epsilon=epsilon, outputs=1, elements=relation.units_changed)
    rows = [
        ("density (ours)", brief(epsilon), snapshots(ours, length=_LENGTH, relation=relation)),
        ("Count-Min sketch", "none", snapshots(CountMin(2), length=_LENGTH, relation=relation)),
        ("reservoir sample", "none", snapshots(Reservoir(2), length=_LENGTH, relation=relation)),
    ]
    shown = ((name, promised, f"{float(worst.bounds[1]):.6g}") for name, promised, worst in rows)
    console.print(terminal.table(("state and answer of", "ε promised", "ε found"), shown, right=(1, 2)))
    console.print(
        f"Every pair of neighboring streams ({relation.value}) of {_LENGTH} arrivals of two elements, one look at each"
        " moment, and the answer."
    )
    return 0 if rows[0][2].bounds[1] <= epsilon + Fraction(1, 10**20) else 1
