"""`hubbub stream`: release private counts over a stream as events arrive."""

import argparse
import sys
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.analyses.streams import arrivals, purchase
from hubbub.analyses.streams import state as states
from hubbub.analyses.streams.audit import worst_snapshot
from hubbub.analyses.streams.density import Density
from hubbub.analyses.streams.examples import CountMin, Reservoir
from hubbub.analyses.streams.folders import StreamEntry, all_streams, find_stream
from hubbub.analyses.streams.stream import Stream, create_stream, open_stream
from hubbub.analyses.streams.terms import Terms
from hubbub.answers import terminal
from hubbub.cli import options, output
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.core.unit import Relation
from hubbub.curator.session import open_session
from hubbub.errors import QueryError, StreamError
from hubbub.noise.source import system

#: Length of the streams that `audit` enumerates: an intrusion between two arrivals already reveals the worst case.
_LENGTH = 2


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of the command."""
    parser.epilog = """\
examples:
  hubbub stream make visitors --kind density --universe 0:99999 --epsilon 2 --dataset visits
  tail -f ids.log | hubbub stream feed visitors --follow
  hubbub stream answer visitors"""
    actions = parser.add_subparsers(dest="action", required=True, metavar="action")
    make = actions.add_parser("make", help="create a stream; its dataset is charged once for all of its answers")
    _add_make(make)
    feed = actions.add_parser("feed", help="read events, one per line, from standard input or a file")
    feed.add_argument("--tail", metavar="FILE", help="read this file, from where an earlier run stopped")
    feed.add_argument("--follow", action="store_true", help="wait for more lines until stopped")
    feed.add_argument("--resume", action="store_true", help="skip lines that an earlier run read (--tail implies it)")
    feed.add_argument(
        "--feeder", metavar="NAME", help="name under which lines are counted (default: the file, or stdin)"
    )
    feed.set_defaults(act=_feed)
    answer = actions.add_parser("answer", help="compute one of a density's answers and show it")
    answer.set_defaults(act=_answer)
    read = actions.add_parser("read", help="show the current estimates (free)")
    read.add_argument("--all", action="store_true", help="print every answer so far as CSV")
    read.set_defaults(act=_read)
    for action in (answer, read):
        options.add_json(action)
        output.add_output(action)
    listing = actions.add_parser("list", help="list the streams")
    output.add_output(listing)
    listing.set_defaults(act=_list)
    end = actions.add_parser("end", help="end a stream and erase its state; its charge stays in the ledger")
    end.set_defaults(act=_end)
    for action in (make, feed, answer, read, end):
        action.add_argument("name", help="name of the stream")
    for action in (feed, answer, read, end):
        action.add_argument("-a", "--analyst", metavar="NAME", help="owner of the stream, if several have this name")
    for action in (make, feed, answer, read, listing, end):
        options.add_config(action)
        action.add_argument(
            "--folder", metavar="PATH", help="folder of the streams (default: hubbub-streams next to hubbub.yaml)"
        )
    audit = actions.add_parser(
        "audit", help="compute exactly what an intruder who sees the state learns, compared with two common sketches"
    )
    audit.add_argument(
        "--relation",
        choices=["add_remove", "replace"],
        default="add_remove",
        help="neighboring relation (default: %(default)s)",
    )
    audit.add_argument("--epsilon", default="1", metavar="ε", help="ε of the density (default: %(default)s)")
    audit.set_defaults(act=_audit)


def _add_make(make: argparse.ArgumentParser) -> None:
    make.add_argument(
        "--kind",
        choices=["density", "count"],
        required=True,
        help="density: the share of a universe that appears; count: a running count",
    )
    make.add_argument("-e", "--epsilon", required=True, metavar="ε", help="privacy cost of the whole stream")
    make.add_argument("--delta", metavar="δ", help="count only; 0 requires pure DP")
    make.add_argument("--universe", metavar="LOW:HIGH", help="density only: range of the possible values")
    make.add_argument(
        "--outputs", type=int, default=1, metavar="N", help="density only: number of answers (default: %(default)s)"
    )
    make.add_argument(
        "--classic", action="store_true", help="density only: use the coin bias ½ + ε/4 of the literature"
    )
    make.add_argument("--horizon", type=int, metavar="T", help="count only: end after T events")
    make.add_argument("--window", type=int, metavar="W", help="count only: count the last W events, without end")
    make.add_argument("--bin", action="append", dest="bins", metavar="NAME", help="count in bins; repeatable")
    make.add_argument("--bound", type=int, default=1, metavar="B", help="sum values from 0 to B (default: %(default)s)")
    make.add_argument("--method", choices=["tree", "root"], help="default: root if δ > 0, otherwise tree")
    make.add_argument("--private-state", action="store_true", help="make the tree's state pan-private, with more noise")
    make.add_argument("--dataset", metavar="NAME", help="dataset of hubbub.yaml to charge")
    make.add_argument("-a", "--analyst", metavar="NAME", help="analyst to charge (default: the only one)")
    make.set_defaults(act=_make)


def run(args: argparse.Namespace, console: Console) -> int:
    """Run the command."""
    return int(args.act(args, console))


def _folder(args: argparse.Namespace) -> Path:
    return Path(args.folder) if args.folder else Path(args.config).parent / "hubbub-streams"


def _find(args: argparse.Namespace) -> Path:
    """Return the folder of a stream, given its name and, if several have that name, its analyst."""
    entry = _entry(args)
    if entry is None:
        raise states.missing(args.name)
    return entry.folder


def _entry(args: argparse.Namespace) -> StreamEntry | None:
    matches = [
        entry
        for entry in all_streams(_folder(args))
        if entry.name == args.name and args.analyst in (None, entry.analyst)
    ]
    if len(matches) > 1:
        analysts = ", ".join(entry.analyst or "nobody" for entry in matches)
        raise StreamError(
            "HB663", f"Several analysts have a stream called {args.name}: {analysts}.", "Choose one: --analyst NAME."
        )
    return matches[0] if matches else None


def _end(args: argparse.Namespace, console: Console) -> int:
    entry, root = _entry(args), _folder(args)
    analyst = entry.analyst if entry is not None else args.analyst
    if analyst is None:
        purchase.erase_stream(root, args.name)
    else:
        purchase.end(root, analyst, args.name)
    console.print(f"Ended {escape(args.name)} and erased its state. Its charge stays in the ledger.")
    return 0


def _make(args: argparse.Namespace, console: Console) -> int:
    universe = None if args.universe is None else _universe(args.universe)
    if args.dataset is None:
        delta = Fraction(0) if args.delta in (None, "0") else numbers.delta(args.delta)
        method = args.method or ("root" if delta and not args.private_state else "tree")
        terms = Terms(
            name=args.name,
            kind=args.kind,
            epsilon=numbers.epsilon(args.epsilon),
            delta=delta,
            universe=universe,
            outputs=args.outputs,
            classic=args.classic,
            horizon=args.horizon,
            window=args.window,
            bins=None if args.bins is None else tuple(args.bins),
            bound=args.bound,
            method=method,
            private_state=args.private_state,
        )
        with create_stream(_folder(args), terms, system()) as stream:
            _show(stream, console)
        console.print("The stream belongs to no dataset: nothing was charged to a ledger.")
        return 0
    if args.folder:
        raise QueryError(
            "HB530", "The streams of a dataset are stored next to hubbub.yaml.", "Remove --folder or --dataset."
        )
    with open_session(args.config, analyst=args.analyst) as session:
        charge = session.stream(
            args.dataset,
            args.name,
            kind=args.kind,
            universe=universe,
            outputs=args.outputs,
            classic=args.classic,
            horizon=args.horizon,
            window=args.window,
            bins=args.bins,
            bound=args.bound,
            method=args.method,
            private_state=args.private_state,
            epsilon=args.epsilon,
            delta=args.delta,
        )
        entry = find_stream(_folder(args), session.analyst, args.name)
    if entry is None:
        raise states.missing(args.name)
    with open_stream(entry.folder, args.name) as stream:
        _show(stream, console)
    verb = "Already charged" if charge.replayed else "Charged"
    console.print(f"{verb} ε = {brief(charge.epsilon)} to {escape(args.dataset)}, once for all answers of the stream.")
    return 0


def _universe(text: str) -> tuple[int, int]:
    low, _, high = text.partition(":")
    try:
        return int(low), int(high)
    except ValueError:
        raise QueryError("HB530", f"{text!r} is not a range.", "Write such as --universe 0:99999.") from None


def _feed(args: argparse.Namespace, console: Console) -> int:
    path = None if args.tail is None else Path(args.tail)
    file = sys.stdin.fileno() if path is None else arrivals.open_file(path)
    # a file that replaces another one has another inode: it counts as a new feeder and is read from its first line
    feeder = args.feeder or ("stdin" if path is None else f"{path.absolute()} {path.stat().st_ino}")
    read, skipped = arrivals.feed_lines(
        _find(args),
        args.name,
        file,
        feeder=feeder,
        resume=args.resume or path is not None,
        follow=args.follow,
        source=system(),
    )
    console.print(f"{read} events read" + (f", {skipped} lines skipped." if skipped else "."))
    return 0


def _answer(args: argparse.Namespace, console: Console) -> int:
    with open_stream(_find(args), args.name) as stream:
        stream.draw_answer(system())
        _print(stream, args, console)
    return 0


def _read(args: argparse.Namespace, console: Console) -> int:
    with open_stream(_find(args), args.name) as stream:
        if args.all:
            _print_all(stream, args, console)
        else:
            _print(stream, args, console)
    return 0


def _print_all(stream: Stream, args: argparse.Namespace, console: Console) -> None:
    if args.format is None and args.output is None and not args.json:
        args.format = "csv"
    names: tuple[str, ...] = ("answer", "density")
    lines: list[tuple[output.Cell, ...]]
    if stream.terms.kind == "density":
        lines = list(enumerate(stream.answers(), 1))
    else:
        series = stream.series()
        names = ("arrival", *(stream.terms.bins or ("count",)))
        first = (stream.arrivals or 0) - len(series) + 1
        lines = [(number, *row) for number, row in enumerate(series.round(3).tolist(), first)]
    form = [dict(zip(names, line, strict=True)) for line in lines]
    texts = [tuple(map(str, line)) for line in lines]
    output.rows(names, lines, form, args, console, lambda where: where.print(terminal.table(names, texts)))


def _print(stream: Stream, args: argparse.Namespace, console: Console) -> None:
    names = ("estimate", "value", "low", "high")
    lines = [(each.name, float(each.value), float(each.low), float(each.high)) for each in stream.values()]
    output.rows(names, lines, stream.to_json(), args, console, lambda where: _show(stream, where))


def _show(stream: Stream, console: Console) -> None:
    events = "" if stream.arrivals is None else f"{stream.arrivals} events, "
    console.print(f"[bold]{escape(stream.terms.name)}[/]  {events}ε = {brief(stream.terms.epsilon)}")
    for line in stream.terms.derivation:
        console.print(f"  {escape(line)}")
    if stream.values():
        shown = ((e.name, f"{e.value:.6g}", f"{e.low:.6g}", f"{e.high:.6g}") for e in stream.values())
        console.print(terminal.table(("estimate", "value", "95% from", "to"), shown, right=(1, 2, 3)))


def _list(args: argparse.Namespace, console: Console) -> int:
    names = ("stream", "analyst", "dataset")
    lines = [(entry.name, entry.analyst, entry.dataset) for entry in all_streams(_folder(args))]

    def show(where: Console) -> None:
        for name, analyst, dataset in lines:
            where.print(name if analyst is None else f"{name}  ({analyst}, {dataset})", markup=False)

    output.rows(names, lines, [dict(zip(names, line, strict=True)) for line in lines], args, console, show)
    return 0


def _audit(args: argparse.Namespace, console: Console) -> int:
    """Enumerate one intrusion and the answer, for streams over two elements."""
    relation, epsilon = Relation(args.relation), numbers.epsilon(args.epsilon)
    density = Density.from_epsilon(size=2, epsilon=epsilon, outputs=1, elements=relation.units_changed)
    rows = [
        ("density (hubbub)", brief(epsilon), worst_snapshot(density, length=_LENGTH, relation=relation)),
        ("Count-Min sketch", "none", worst_snapshot(CountMin(2), length=_LENGTH, relation=relation)),
        ("reservoir sample", "none", worst_snapshot(Reservoir(2), length=_LENGTH, relation=relation)),
    ]
    shown = ((name, stated, f"{float(worst.bounds[1]):.6g}") for name, stated, worst in rows)
    console.print(terminal.table(("state and answer of", "ε stated", "ε measured"), shown, right=(1, 2)))
    console.print(
        f"Enumerated: all pairs of neighboring streams ({relation.value}) with {_LENGTH} events over two elements,"
        " one intrusion at each moment, and the answer."
    )
    return 0 if rows[0][2].bounds[1] <= epsilon + Fraction(1, 10**20) else 1
