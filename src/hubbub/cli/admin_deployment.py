"""`hubbub admin export`, `import`, `migrate` and `rotate-key`: whole deployments and their keys.

Tested in tests/deployment/test_commands.py.
"""

import argparse
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape

from hubbub.answers import terminal
from hubbub.cli import options, output
from hubbub.cli.progress import working
from hubbub.config import Config
from hubbub.curator.opening import open_curator
from hubbub.errors import ConfigError, DeploymentError, ParameterError

_SECRETS = "file with a passphrase, under which the keys of the installation"


def add_actions(actions: "argparse._SubParsersAction[Any]") -> None:
    """Add the actions to `hubbub admin`."""
    exported = actions.add_parser(
        "export",
        help="write a whole deployment to a folder or a .tar.gz file",
        description="Write hubbub.yaml, the ledger with all answers, accounts, saved questions, schedules and data "
        "versions to one archive, as of one moment; servers may run. The data is not in it. Without --move it is a "
        "copy: an import of it needs a witness, or somebody who vouches that the original is gone. With --move, the "
        "original is closed first: the whole of every budget is written off there, and goes on where the archive is "
        "imported.",
        epilog="examples:\n  hubbub admin export monday.tar.gz\n"
        '  hubbub admin export hospital.tar.gz --move --by olga --reason "new machine" --yes --secrets passphrase',
        formatter_class=options.Help,
    )
    exported.add_argument("target", metavar="ARCHIVE", help="new folder, or new file that ends in .tar.gz")
    exported.add_argument("--move", action="store_true", help="close the original, so that only the import can spend")
    exported.add_argument("--by", help="who moves it, with --move; recorded in the ledger")
    exported.add_argument("--reason", help="why, with --move; recorded in the ledger")
    exported.add_argument("--yes", action="store_true", help="confirm --move")
    exported.add_argument(
        "--secrets", metavar="FILE", help=f"{_SECRETS} are included, encrypted, and with --move the streams"
    )
    exported.set_defaults(act=_export)
    imported = actions.add_parser(
        "import",
        help="verify an archive and set the deployment up in a new place",
        description="Verify an archive (every file, the whole ledger) and set the deployment up in a folder that has "
        "none. Put the data where its hubbub.yaml expects it, before or afterwards. An import is refused where the "
        "same ledger may be spent twice: where an anchor or a ledger is already, where the witness knows of entries "
        "that the archive lacks, and of a copy whose original nobody vouches for. Without a witness, two machines "
        "that import the same archive do not know of each other.",
        epilog='examples:\n  hubbub admin import hospital.tar.gz --into /var/lib/hubbub --by olga --reason "moved"\n'
        "  hubbub admin import hospital.tar.gz --into . --database postgresql://hubbub@db/hubbub --anchor "
        '/var/lib/hubbub-anchor/ledger.anchor --by olga --reason "to PostgreSQL"',
        formatter_class=options.Help,
    )
    imported.add_argument("source", metavar="ARCHIVE", help="folder or .tar.gz file written by `hubbub admin export`")
    imported.add_argument("--into", metavar="FOLDER", default=".", help="folder of the new hubbub.yaml (default: .)")
    imported.add_argument("--by", required=True, help="who imports it; recorded in the ledger")
    imported.add_argument("--reason", required=True, help="why; recorded in the ledger")
    imported.add_argument("--fingerprint", metavar="HEX", help="refuse any archive but the one with this fingerprint")
    imported.add_argument("--database", metavar="PLACE", help="file or postgresql:// address for the ledger here")
    imported.add_argument("--anchor", metavar="FILE", help="place of the ledger's anchor here")
    imported.add_argument("--secrets", metavar="FILE", help=f"{_SECRETS} were encrypted")
    imported.add_argument(
        "--original-is-gone", action="store_true", help="vouch that the original of a copy is used no more"
    )
    imported.set_defaults(act=import_)
    migrated = actions.add_parser(
        "migrate",
        help="show what this version would change in the stored formats, or change it",
        description="List every stored part with its format now and after a start of this version. With --dry-run "
        "nothing is written; the exit code is 1 if this version refuses a part.",
        epilog="examples:\n  hubbub admin migrate --dry-run\n  hubbub admin migrate --yes",
        formatter_class=options.Help,
    )
    migrated.add_argument("--dry-run", action="store_true", help="only show it")
    migrated.add_argument("--yes", action="store_true", help="confirm: after a backup, with all servers stopped")
    output.add_output(migrated)
    migrated.set_defaults(act=_migrate)
    rotated = actions.add_parser(
        "rotate-key",
        help="replace the key that signs sessions, or the key that signs reports",
        description="Put a new key first in the file of the server's keys. Running servers use it within a second, "
        "without a restart; the old key is accepted as long as a session can last (12 hours), so nobody is signed "
        "out. Reports that were signed with an old key of --audit stay valid under audit.pub. Noise, contribution "
        "bounds and replays depend on no key that can be rotated.",
        epilog="examples:\n  hubbub admin rotate-key\n  hubbub admin rotate-key --leaked\n"
        "  hubbub admin rotate-key --audit",
        formatter_class=options.Help,
    )
    rotated.add_argument("--leaked", action="store_true", help="accept old keys no more: everybody signs in again")
    rotated.add_argument("--file", metavar="FILE", help="file of the server's keys (default: the one that it uses)")
    rotated.add_argument("--audit", action="store_true", help="replace audit.key, which signs reports, instead")
    rotated.set_defaults(act=_rotate)
    for action in (exported, migrated, rotated):
        options.add_config(action)


def _export(args: argparse.Namespace, config: Config, console: Console) -> None:
    from hubbub.deployment.export import Move, export
    from hubbub.deployment.sealed import read_passphrase

    if args.move and not (args.by and args.reason):
        raise ParameterError("HB125", "A move needs a name and a reason.", "Pass --by and --reason; both are recorded.")
    if args.move and not args.yes:
        raise ParameterError(
            "HB135",
            "This closes the deployment here: the whole of every budget is written off, in the name of "
            f"{args.by!r}. Nothing was done.",
            "Pass --yes to confirm. The archive holds the budgets as they are now; keep it safe until it is imported.",
        )
    move = Move(args.by, args.reason) if args.move else None
    passphrase = None if args.secrets is None else read_passphrase(Path(args.secrets))
    with working("exporting the deployment"):
        manifest = export(config, Path(args.target), move=move, passphrase=passphrase)
    console.print(f"Exported to [bold]{escape(args.target)}[/]: {manifest.sequence} entries of the ledger, verified.")
    console.print(f"Fingerprint: {manifest.fingerprint}", soft_wrap=True)
    console.print("Not in the archive: " + ", ".join(manifest.left_out) + ".")
    if manifest.ended is not None:
        console.print(f"Entry {manifest.ended[0]} closed the ledger here: nothing is left to spend under its caps.")
    console.print("The archive has every query with its literals and every answer: protect it as you protect these.")


def import_(args: argparse.Namespace, console: Console) -> None:
    """Import an archive; there is no hubbub.yaml yet."""
    from hubbub.deployment.arrival import Arrival, import_archive
    from hubbub.deployment.sealed import read_passphrase

    arrival = Arrival(
        source=Path(args.source),
        folder=Path(args.into),
        by=args.by,
        reason=args.reason,
        fingerprint=args.fingerprint,
        database=args.database,
        anchor=args.anchor,
        passphrase=None if args.secrets is None else read_passphrase(Path(args.secrets)),
        original_is_gone=args.original_is_gone,
    )
    with working("verifying and importing the deployment"):
        manifest = import_archive(arrival)
    console.print(f"Imported into [bold]{escape(args.into)}[/]: {manifest.sequence} entries of the ledger, verified.")
    console.print(f"Entry {manifest.sequence + 1} records who imported it. Next: put the data in its place, then run")
    console.print(f"  hubbub check --config {escape(str(Path(args.into) / 'hubbub.yaml'))}", soft_wrap=True)
    if args.fingerprint is None:
        console.print(
            "[yellow]Warning[/]  The archive is consistent in itself, but it was not compared with the fingerprint of "
            "its export: --fingerprint."
        )


def _migrate(args: argparse.Namespace, config: Config, console: Console) -> int:
    from hubbub.deployment.formats import stored_parts

    parts = stored_parts(config)
    names = ("part", "format", "after", "change", "meaning")
    rows = [(each.part, each.now, each.after, each.change, each.text) for each in parts]
    refused = any(each.change == "refused" for each in parts)
    changes = sum(each.change in ("migrated", "created") for each in parts)

    def show(where: Console) -> None:
        where.print(terminal.table(names, rows))
        if refused:
            where.print("[bold red]This version refuses a part.[/] Nothing was changed.")
        elif args.dry_run:
            where.print(f"A start would change {changes} of {len(parts)} parts. Nothing was changed.")

    output.rows(names, rows, [dict(zip(names, row, strict=True)) for row in rows], args, console, show)
    if refused or args.dry_run:
        return 1 if refused else 0
    if not args.yes:
        raise ParameterError(
            "HB135",
            "This migrates the stored formats; earlier versions of hubbub then refuse them. Nothing was done.",
            "Stop all servers, take a backup (hubbub admin export), and pass --yes to confirm.",
        )
    from hubbub.server.state import State

    open_curator(config, exclusive=True).close()
    State.open(config).close()
    console.print("All parts have the current formats.")
    return 0


def _rotate(args: argparse.Namespace, config: Config, console: Console) -> None:
    from hubbub.curator.opening import folder_of

    if args.audit:
        from hubbub.audit.report import rotate

        public = rotate(folder_of(config) / "audit.key")
        console.print(f"Reports are signed with a new key. Give [bold]{escape(str(public))}[/] to their readers again:")
        console.print("its first line is the new key; reports with the older keys below it stay valid.")
        return
    try:
        from hubbub.server.service import read_settings
    except ModuleNotFoundError as error:
        raise ConfigError(
            "HB431",
            f"The server needs the library {error.name}, which is not installed.",
            "Run: pip install 'hubbub[server]'",
        ) from error
    from hubbub.server.keyring import rotate as rotate_keys

    path = Path(args.file) if args.file else read_settings(Path(args.config)).secret_path
    if path is None:
        raise DeploymentError(
            "HB893",
            "The server's key comes from a command or from HUBBUB_SECRET, which hubbub cannot change.",
            "Let that source give a list of keys, the new one first, and restart the servers one after the other: "
            "docs/deploy.md shows its form. Or rotate a file: --file FILE.",
        )
    rotate_keys(path, leaked=args.leaked)
    console.print(f"[bold]{escape(str(path))}[/] has a new key, which running servers use within a second.")
    console.print(
        "Old keys are accepted no more: everybody signs in again. Tokens stay valid; revoke those that leaked."
        if args.leaked
        else "The old key is accepted for 12 hours, so nobody is signed out."
    )
