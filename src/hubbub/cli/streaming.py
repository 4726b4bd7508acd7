"""The commands of `hubbub stream`."""

import csv
import json
import sys
from argparse import Namespace
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub import show
from hubbub.config import load
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.curator.opening import folder_of
from hubbub.curator.session import open_session
from hubbub.errors import QueryError
from hubbub.noise.source import system
from hubbub.streams import feeding
from hubbub.streams.audit import snapshots
from hubbub.streams.buying import begin
from hubbub.streams.density import Density
from hubbub.streams.examples import CountMin, Reservoir
from hubbub.streams.stream import Stream, made, names, opened
from hubbub.streams.terms import Terms


#: Arrivals of the streams that `audit` enumerates: a look between two of them shows all there is.
_LENGTH = 2


def stream(options: Namespace, console: Console) -> int:
    """Do one of the commands."""
    return {"make": _make, "feed": _feed, "answer": _answer, "read": _read, "list": _list, "audit": _audit}[
        options.what
    ](options, console)


def _folder(options: Namespace) -> Path:
    return Path(options.folder) if options.folder else Path(options.config).parent / "hubbub-streams"


def _make(options: Namespace, console: Console) -> int:
    universe = None if options.universe is None else _universe(options.universe)
    if options.dataset is None:
        delta = Fraction(0) if options.delta in (None, "0") else numbers.delta(options.delta)
        method = options.method or ("root" if delta and not options.private_state else "tree")
        terms = Terms(
            name=options.name, kind=options.kind, epsilon=numbers.epsilon(options.epsilon), delta=delta,
            universe=universe, outputs=options.outputs, classic=options.classic, horizon=options.horizon,
            window=options.window, bins=None if options.bins is None else tuple(options.bins), bound=options.bound,
            method=method, private_state=options.private_state,
        )  # fmt: skip
        with made(_folder(options), terms, system()) as begun:
            _show(begun, console)
        console.print("It belongs to no data set: nothing was charged to a ledger.")
        return 0
    config = load(Path(options.config))
    with open_session(options.config, analyst=options.analyst) as session:
        bought = session.stream(
            options.dataset, options.name, kind=options.kind, universe=universe, outputs=options.outputs,
            classic=options.classic, horizon=options.horizon, window=options.window, bins=options.bins,
            bound=options.bound, method=options.method, private_state=options.private_state, epsilon=options.epsilon,
            delta=options.delta,
        )  # fmt: skip
        begun = begin(_folder(options), folder_of(config), bought, analyst=session.analyst, source=system())
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
        _folder(options), options.name, file, feeder=feeder, resume=options.resume or path is not None,
        follow=options.follow, source=system(),
    )  # fmt: skip
    console.print(f"{new} arrivals taken" + (f", {passed} lines passed over." if passed else "."))
    return 0


def _answer(options: Namespace, console: Console) -> int:
    with opened(_folder(options), options.name) as held:
        held.tell(system())
        _say(held, options, console)
    return 0


def _read(options: Namespace, console: Console) -> int:
    with opened(_folder(options), options.name) as held:
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
        console.print(show.table(("what", "value", "95 % from", "to"), shown, right=(1, 2, 3)))


def _list(options: Namespace, console: Console) -> int:
    for name in names(_folder(options)):
        console.print(name, markup=False)
    return 0


def _audit(options: Namespace, console: Console) -> int:
    """Enumerate one look and the answer, over two elements, under the relation that is asked for."""
    relation, epsilon = Relation(options.relation), numbers.epsilon(options.epsilon)
    ours = Density.from_epsilon(size=2, epsilon=epsilon, outputs=1, elements=relation.units_changed)
    rows = [
        (name, promised, snapshots(process, length=_LENGTH, relation=relation))  # type: ignore[arg-type]
        for name, promised, process in (
            ("density (ours)", brief(epsilon), ours),
            ("Count-Min sketch", "none", CountMin(2)),
            ("reservoir sample", "none", Reservoir(2)),
        )
    ]
    shown = ((name, promised, f"{float(worst.bounds[1]):.6g}") for name, promised, worst in rows)
    console.print(show.table(("state and answer of", "ε promised", "ε found"), shown, right=(1, 2)))
    console.print(
        f"Every pair of neighboring streams ({relation.value}) of two arrivals of two elements, one look at each moment,"
        " and the answer."
    )
    return 0 if rows[0][2].bounds[1] <= epsilon + Fraction(1, 10**20) else 1
