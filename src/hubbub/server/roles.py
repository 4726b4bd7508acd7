"""Which roles may call a method of the service: `@allowed("owner", "auditor")` at the method itself.

Routes and pages make no access decisions of their own. Beyond the role, analysts see only their own queries, releases,
and budgets; the methods concerned say so.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from hubbub.errors import AccessError
from hubbub.server.accounts import Principal
from hubbub.server.state import Role

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
Method = Callable[Concatenate[S, Principal, P], R]


def allowed(*roles: Role) -> Callable[[Method[S, P, R]], Method[S, P, R]]:
    """Let only these roles call a method; other principals get HB710."""

    def decorate(method: Method[S, P, R]) -> Method[S, P, R]:
        @wraps(method)
        def guarded(self: S, principal: Principal, /, *args: P.args, **options: P.kwargs) -> R:
            if principal.role not in roles:
                raise AccessError(
                    "HB710", f"The role {principal.role} is not allowed to do this.", "Ask the data owner to do it."
                )
            return method(self, principal, *args, **options)

        guarded.roles = frozenset(roles)  # type: ignore[attr-defined]
        return guarded

    return decorate


def roles_of(method: Callable[..., Any]) -> frozenset[Role]:
    """Return the roles that may call a method of the service; none if the method is not decorated."""
    roles: frozenset[Role] = getattr(method, "roles", frozenset())
    return roles
