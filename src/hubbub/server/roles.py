"""Who may do what: one table, which the service asks before everything it does.

Routes and pages are thin; what they may do is decided here and nowhere else. Beyond the role, an analyst sees only what
is the analyst's own: the methods that this concerns say so.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from hubbub.errors import AccessError
from hubbub.server.accounts import Principal
from hubbub.server.state import Role

_EVERYBODY: frozenset[Role] = frozenset({"owner", "analyst", "auditor"})
_ASKING: frozenset[Role] = frozenset({"analyst"})
_GOVERNING: frozenset[Role] = frozenset({"owner"})
_WATCHING: frozenset[Role] = frozenset({"owner", "auditor"})
_FEEDING: frozenset[Role] = frozenset({"owner", "feeder"})
_ENDING: frozenset[Role] = frozenset({"owner", "analyst"})

#: Each method of the service with the roles that may call it. A method that is not here can be called by nobody.
ROLES: Mapping[str, frozenset[Role]] = {
    # what concerns oneself
    "me": _EVERYBODY,
    "meaning": _EVERYBODY,
    "datasets": _EVERYBODY,
    "describe": _EVERYBODY,
    "budget": _EVERYBODY,
    "releases": _EVERYBODY,
    "release": _EVERYBODY,
    "requests": _EVERYBODY,
    # asking
    "estimate": _ASKING,
    "explain": _ASKING,
    "ask": _ASKING,
    "enqueue": _ASKING,
    "job": _ASKING,
    "wait": _ASKING,
    "progress": _ASKING,
    "cancel": _ASKING,
    "request": _ASKING,
    # streams: what an analyst paid for, and the owner or a feeder feeds; a feeder can do nothing else
    "streams": _EVERYBODY,
    "stream": _EVERYBODY,
    "begin_stream": _ASKING,
    "answer_stream": _ASKING,
    "feed_stream": _FEEDING,
    "end_stream": _ENDING,
    # attacks: on tables that are made up or sent along, never on a dataset
    "attacks": _EVERYBODY,
    "begin_attack": _EVERYBODY,
    "attack_runs": _EVERYBODY,
    "attack_run": _EVERYBODY,
    "cancel_attack": _EVERYBODY,
    # watching
    "history": _WATCHING,
    "verify": _WATCHING,
    "figures": _WATCHING,
    "analysts": _WATCHING,
    "groups": _WATCHING,
    # governing; hubbub.yaml may hold the address of a database with its password
    "config": _GOVERNING,
    "add_analyst": _GOVERNING,
    "remove_analyst": _GOVERNING,
    "set_group": _GOVERNING,
    "remove_group": _GOVERNING,
    "tokens": _GOVERNING,
    "issue": _GOVERNING,
    "revoke": _GOVERNING,
    "check": _GOVERNING,
    "apply": _GOVERNING,
    "grant": _GOVERNING,
    "refuse": _GOVERNING,
    "review": _GOVERNING,
}

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")


def allowed(method: Callable[Concatenate[S, Principal, P], R]) -> Callable[Concatenate[S, Principal, P], R]:
    """Let only the roles of the table call a method."""
    name = getattr(method, "__name__", "")

    @wraps(method)
    def guarded(self: S, principal: Principal, /, *args: P.args, **options: P.kwargs) -> R:
        if principal.role not in ROLES.get(name, frozenset()):
            raise AccessError("HB710", f"the role {principal.role} may not do this.", "Ask the owner of the data.")
        return method(self, principal, *args, **options)

    return guarded
