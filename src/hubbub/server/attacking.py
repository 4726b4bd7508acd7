"""The Attack lab of the service: everybody may run attacks, on nobody's data."""

from hubbub.attacks.catalogue import ATTACKS, Attack
from hubbub.server.accounts import Principal
from hubbub.server.attack_lab import Run, Wanted
from hubbub.server.roles import allowed
from hubbub.server.streaming import Streaming


class Attacking(Streaming):
    """What the service does with attacks. Each sees only what is their own."""

    @allowed
    def attacks(self, principal: Principal) -> tuple[Attack, ...]:
        """List the attacks."""
        return tuple(ATTACKS.values())

    @allowed
    def begin_attack(self, principal: Principal, wanted: Wanted) -> Run:
        """Put a study in line; one at a time for each principal."""
        return self.lab.begin(_whose(principal), wanted)

    @allowed
    def attack_runs(self, principal: Principal) -> tuple[Run, ...]:
        """List one's last studies, the newest first."""
        return self.lab.latest(_whose(principal))

    @allowed
    def attack_run(self, principal: Principal, number: str) -> Run:
        """Say what became of a study."""
        return self.lab.seen(_whose(principal), number)

    @allowed
    def cancel_attack(self, principal: Principal, number: str) -> Run:
        """Stop a study."""
        run = self.lab.find(_whose(principal), number)
        self.lab.cancel(run)
        return run


def _whose(principal: Principal) -> str:
    return f"{principal.role} {principal.name}"
