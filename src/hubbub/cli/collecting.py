"""The words of `hubbub stream` and `hubbub survey`; what they do is in `streaming` and `surveying`."""

import argparse
from collections.abc import Callable
from typing import Any

Command = Callable[[str, str], Any]
AddConfig = Callable[[argparse.ArgumentParser], None]


def streams(parser: argparse.ArgumentParser, command: Command, config: AddConfig) -> None:
    """Add the words of `hubbub stream`."""
    parts = parser.add_subparsers(dest="what", required=True, metavar="what")
    make = parts.add_parser("make", help="begin a stream; of a dataset, it is charged once for all that it will say")
    make.add_argument("name")
    make.add_argument("--kind", choices=["density", "count"], required=True)
    make.add_argument("-e", "--epsilon", required=True, metavar="ε", help="what all arrivals and answers cost together")
    make.add_argument("--delta", metavar="δ", help="for a count; 0 insists on none")
    make.add_argument("--universe", metavar="LOW:HIGH", help="of a density: the numbers that may arrive")
    make.add_argument("--outputs", type=int, default=1, metavar="N", help="of a density: so many answers (default 1)")
    make.add_argument("--classic", action="store_true", help="of a density: the coin ½ + ε/4 of the literature")
    make.add_argument("--horizon", type=int, metavar="T", help="of a count: it ends after so many arrivals")
    make.add_argument("--window", type=int, metavar="W", help="of a count: over the last so many arrivals, for ever")
    make.add_argument("--bin", action="append", dest="bins", metavar="NAME", help="count in bins; once for each")
    make.add_argument("--bound", type=int, default=1, metavar="B", help="add up numbers from 0 to B (default 1)")
    make.add_argument("--method", choices=["tree", "root"], help="default: root where a δ is allowed, else tree")
    make.add_argument("--private-state", action="store_true", help="a tree whose state survives a look (more noise)")
    make.add_argument("--dataset", metavar="NAME", help="charge it to this dataset of hubbub.yaml")
    make.add_argument("-a", "--analyst", metavar="NAME", help="whose budget pays (default: the only analyst)")
    feed = parts.add_parser("feed", help="take lines, one arrival each, from standard input or a file")
    feed.add_argument("name")
    feed.add_argument("--tail", metavar="FILE", help="this file, from where an earlier run ended")
    feed.add_argument("--follow", action="store_true", help="go on waiting for more, until stopped")
    feed.add_argument(
        "--resume", action="store_true", help="pass over lines that an earlier run took (--tail always does)"
    )
    feed.add_argument("--feeder", metavar="NAME", help="who counts these lines (default: the file, or stdin)")
    answer = parts.add_parser("answer", help="draw one of a density's answers, and show it")
    answer.add_argument("name")
    read = parts.add_parser("read", help="show what a stream says now; nothing is drawn or charged")
    read.add_argument("name")
    read.add_argument("--all", action="store_true", help="every answer so far, as CSV")
    for part in (answer, read):
        part.add_argument("--json", action="store_true")
    listing = parts.add_parser("list", help="name the streams")
    end = parts.add_parser("end", help="end a stream: its state is erased, and its charge stands")
    end.add_argument("name")
    for part in (feed, answer, read, end):
        part.add_argument("-a", "--analyst", metavar="NAME", help="whose stream, where several have one of this name")
    for part in (make, feed, answer, read, listing, end):
        config(part)
        part.add_argument("--folder", metavar="PATH", help="where streams are (default hubbub-streams by hubbub.yaml)")
        part.set_defaults(run=command("hubbub.cli.streaming", "stream"))
    audit = parts.add_parser("audit", help="what a look into the state reveals, exactly: ours beside two sketches")
    audit.add_argument("--relation", choices=["add_remove", "replace"], default="add_remove", help="what neighbors are")
    audit.add_argument("--epsilon", default="1", metavar="ε", help="of the density (default 1)")
    audit.set_defaults(run=command("hubbub.cli.streaming", "stream"))


def surveys(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add the words of `hubbub survey`."""
    parts = parser.add_subparsers(dest="what", required=True, metavar="what")
    init = parts.add_parser("init", help="write a questionnaire to begin with")
    check = parts.add_parser("check", help="what it costs to answer, and how exact the estimates will be")
    check.add_argument("--people", type=int, default=1000, metavar="N", help="how many will answer (default 1000)")
    page = parts.add_parser("page", help="write a static page that randomizes in the browser before it sends")
    page.add_argument("--output", default="survey.html", metavar="PATH", help="default survey.html")
    page.add_argument("--to", metavar="URL", help="where it sends responses (without: they are shown to be copied)")
    answer = parts.add_parser("answer", help="randomize answers here, and print what may be sent")
    answer.add_argument("--set", action="append", default=[], metavar="NAME=ANSWER", help="boxes: NAME=one,two")
    gather = parts.add_parser("collect", help="serve the page, and keep the responses")
    gather.add_argument("--into", default="responses.jsonl", metavar="FILE")
    gather.add_argument("--host", default="127.0.0.1", metavar="ADDRESS")
    gather.add_argument("--port", type=int, default=8322, metavar="N")
    estimate = parts.add_parser("estimate", help="how many people truly have which answer, with intervals")
    for part in (init, check, page, answer, gather, estimate):
        part.add_argument("file", nargs="?", default="survey.yaml", metavar="FILE", help="default survey.yaml")
        part.set_defaults(run=command("hubbub.cli.surveying", "survey"))
    estimate.add_argument("responses", nargs="?", default="responses.jsonl", metavar="RESPONSES")
    estimate.add_argument("--joint", metavar="NAME,NAME", help="a table of several questions at once")
    estimate.add_argument("--csv", action="store_true")
    for part in (init, page):
        part.add_argument("--force", action="store_true", help="replace a file that is there")
