"""The service's commands: serve it, and say who may use it."""

import os
import sys
from argparse import Namespace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from hubbub.accounting.filters import Budget
from hubbub.answers import terminal
from hubbub.config import Config, load
from hubbub.core import numbers
from hubbub.core.numbers import brief
from hubbub.curator.opening import broken, concerns, exposed
from hubbub.errors import ConfigError, ParameterError
from hubbub.server.accounts import Accounts, seconds
from hubbub.server.state import State, Token


def serve(options: Namespace, console: Console) -> int:
    """Serve hubbub.yaml until it is told to stop."""
    try:
        from hubbub.server.app import serve as run
        from hubbub.server.service import Service
    except ModuleNotFoundError as error:
        raise ConfigError(
            "HB431",
            f"the server needs the library {error.name}, which is not installed here.",
            "pip install 'hubbub[server]'",
        ) from error
    os.umask(0o077)  # for what libraries write: copies of data, logs of databases
    config = load(Path(options.config))
    closed = exposed(config)
    service = Service.open(Path(options.config), host=options.host, port=options.port)
    try:
        for path in closed:
            console.print(f"Others had rights on {escape(str(path))}; they were taken away.")
        for text in concerns(config):
            console.print(f"[yellow]Consider[/]  {escape(text)}")
        # with port 0 the system chooses one, which is known when the server listens: its log says it
        where = service.settings.url if service.settings.port else f"a free port of {service.settings.host}: see below"
        console.print(f"hubbub serves [bold]{escape(options.config)}[/] at {escape(where)}")
        if not any(token.role == "owner" and _good(token) for token in service.state.tokens.list()):
            console.print("Nobody can govern it yet. Make the owner's token: hubbub analyst token NAME --role owner")
        sys.stdout.flush()
        run(service)
    finally:
        service.close()
    return 0


def analyst(options: Namespace, console: Console) -> int:
    """Add, remove and list analysts; give and revoke tokens."""
    path = Path(options.config)
    config = load(path)
    state = State.open(config)
    try:
        accounts = Accounts(state, analysts=lambda: load(path).policy.analysts)
        accounts.withdraw()
        if options.what == "list":
            _list(config, state, console)
        elif options.what == "add":
            _add(options, path, console)
        elif options.what == "remove":
            _remove(options, path, state, console)
        elif options.what == "token":
            _token(options, accounts)
        else:
            accounts.revoke(options.name)
            console.print(f"The token {escape(options.name)} is revoked, and every session that began with it.")
    finally:
        state.close()
    return 0


def _add(options: Namespace, path: Path, console: Console) -> None:
    from hubbub.server import editing

    caps = {}
    for text in options.cap:
        dataset, equals, epsilon = text.rpartition("=")
        if not equals:
            raise ParameterError("HB145", f"{text!r} is not a cap.", "Write such as --cap visits=0.5")
        caps[dataset] = Budget(numbers.epsilon(epsilon, f"--cap {dataset}"), Fraction(0))
    editing.edit(path, editing.put_analyst(options.name, caps), accept=_unbroken)
    name = escape(options.name)
    console.print(f"{name} is in {escape(str(path))}. Give a token: hubbub analyst token {name}")


def _unbroken(config: Config) -> None:
    """Refuse a hubbub.yaml that the ledger could not go on under."""
    for problem in broken(config):
        raise problem


def _remove(options: Namespace, path: Path, state: State, console: Console) -> None:
    from hubbub.server import editing

    # the tokens first: if the rest fails, nobody comes in who should not
    revoked = state.tokens.revoke_all(options.name, "analyst", seconds())
    editing.edit(path, editing.remove_analyst(options.name))
    console.print(
        f"{escape(options.name)} is removed, and {revoked} of their tokens revoked. What was spent stays spent."
    )


def _token(options: Namespace, accounts: Accounts) -> None:
    issued = accounts.issue(options.name, options.role, options.days, options.stream)
    print(issued.text)  # noqa: T201 - alone on standard output, so that it can be piped
    words = f"For the {options.role} {options.name}, until {_day(issued.token.expires)}. It is not kept: copy it now."
    Console(stderr=True, highlight=False).print(escape(words))


def _list(config: Config, state: State, console: Console) -> None:
    people = [
        (name, dataset, brief(cap.budget.epsilon))
        for name, caps in config.policy.analysts.items()
        for dataset, cap in [*caps.items()]
    ]
    bare = [(name, "", "") for name, caps in config.policy.analysts.items() if not caps]
    console.print(terminal.table(("analyst", "dataset", "ε"), [*people, *bare], right=(2,)))
    console.print()
    console.print(
        terminal.table(
            ("token", "of", "role", "made", "good until", "last used"),
            [
                (t.id, t.name, t.role, _day(t.created), _day(t.expires) if _good(t) else _why(t), t.used or "never")
                for t in state.tokens.list()
            ],
        )
    )


def _good(token: Token) -> bool:
    return token.revoked is None and token.expires > seconds()


def _why(token: Token) -> str:
    return "expired" if token.revoked is None else f"revoked {_day(token.revoked)}"


def _day(time: int) -> str:
    return datetime.fromtimestamp(time, UTC).date().isoformat()
