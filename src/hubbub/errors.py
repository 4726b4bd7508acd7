"""All errors that hubbub raises.

HubbubError
├── ParameterError    HB1xx  an invalid number or option
├── BudgetError       HB2xx  the request exceeds a privacy budget
├── LedgerError       HB3xx, HB735  the ledger or the data cannot be used or trusted
├── ConfigError       HB4xx, HB730 to HB734, HB736, HB737  hubbub.yaml is invalid
├── QueryError        HB5xx, HB84x  the query is not supported; rejected before anything is charged
├── MechanismError    HB6xx  a mechanism was used outside its guarantee
├── CrowdError        HB62x  invalid points or settings for a crowd sanitizer
├── AuditError        HB63x  an audit cannot be run, signed or read
├── AttackError       HB64x, HB65x  invalid table or settings for an attack
├── StreamError       HB66x, HB531 to HB534  a stream cannot be opened, updated or read
├── AccessError       HB7xx  not authenticated (HB70x), not permitted (HB71x), or rate-limited (HB72x)
├── ServerError       HB8xx  the server cannot be reached, or is not a hubbub server
├── AssistantError    HB83x  a request of an AI assistant is refused
├── DeploymentError   HB88x, HB89x  a deployment cannot be exported, imported or upgraded, or a key cannot be used
├── ReviewError       HB91x  an answer that was charged waits for review or was declined; an invalid decision on one
└── RunError          HB9xx  the query failed after the charge; the message is constant
    └── SpentError    HB901, HB902  a charge that can no longer produce a release

Every error has a stable code, a message that never contains values from the data, and a remedy.
"""


class HubbubError(Exception):
    """Base class: a stable code, a message and a remedy."""

    def __init__(self, code: str, message: str, remedy: str = "") -> None:
        self.code = code
        self.message = message
        self.remedy = remedy
        super().__init__(code, message, remedy)

    def __str__(self) -> str:
        return f"{self.code} {self.message}" + (f"\n      {self.remedy}" if self.remedy else "")


class ParameterError(HubbubError):
    """An invalid number or option."""


class BudgetError(HubbubError):
    """The request exceeds a privacy budget. Nothing was run or charged."""


class LedgerError(HubbubError):
    """The ledger cannot be used or trusted."""


class ConfigError(HubbubError):
    """hubbub.yaml is invalid."""


class MechanismError(HubbubError):
    """A mechanism was used outside its guarantee."""


class CrowdError(HubbubError):
    """Invalid points or settings for a crowd sanitizer."""


class AuditError(HubbubError):
    """An audit cannot be run, signed or read."""


class AttackError(HubbubError):
    """Invalid table or settings for an attack."""


class StreamError(HubbubError):
    """A stream cannot be opened, updated or read."""


class AccessError(HubbubError):
    """The caller is not authenticated, not permitted, or must wait for `wait` seconds."""

    def __init__(self, code: str, message: str, remedy: str = "", wait: int = 0) -> None:
        self.wait = wait
        super().__init__(code, message, remedy)


class ServerError(HubbubError):
    """The server cannot be reached, or is not a hubbub server."""


class AssistantError(HubbubError):
    """A request of an AI assistant is refused. Nothing was run or charged."""


class DeploymentError(HubbubError):
    """A deployment cannot be exported, imported or upgraded, or one of its keys cannot be used."""


class ReviewError(HubbubError):
    """An answer waits for review or was declined, after its charge; or a decision on it is invalid."""


_NEW_KEY = "To get an answer, pay a new charge: pass a new key (key=, or --fresh on the command line)."


class RunError(HubbubError):
    """The query failed after the charge. The message takes no argument, so it cannot depend on the data."""

    def __init__(self) -> None:
        super().__init__(
            "HB900",
            "The query could not be completed. Its charge is not refunded, because the data was read.",
            "Retry the same query without a new key: while the data is unchanged, the retry reuses this charge and its "
            "noise. After the data has changed (a crash of the database server counts as a change), the query is "
            "charged again. If it fails again, contact the data owner, who can see the number of failures.",
        )


class SpentError(RunError):
    """A charge without a release, whose noise cannot be sampled again. The message does not depend on the data."""

    def __init__(self, code: str, message: str, remedy: str) -> None:
        HubbubError.__init__(self, code, message, remedy)

    @classmethod
    def lost(cls) -> "SpentError":
        """Build the error for a charge whose random seed is not on this machine."""
        return cls(
            "HB901",
            "This query was charged earlier, but its noise cannot be sampled here. The charge is not refunded.",
            "Another server may still be computing the answer: retry in a minute. If a crash or a restart ended that "
            f"run, the charge is lost. {_NEW_KEY}",
        )

    @classmethod
    def changed(cls) -> "SpentError":
        """Build the error for a charge whose data or declarations have changed since its first run."""
        return cls(
            "HB902",
            "The data or its declarations changed after this query was charged. The charge is lost: reusing its noise "
            "on other data would reveal the difference.",
            _NEW_KEY,
        )


_UNCHARGED = " Nothing was run or charged."


class QueryError(HubbubError):
    """The query is not supported. Decided from its text and the declarations alone, at no cost.

    HB500 to HB529 come from parsing and binding, later codes from planning. `position` is (line, column) of the
    rejected text, both counted from 1.
    """

    def __init__(self, code: str, message: str, remedy: str = "", position: tuple[int, int] | None = None) -> None:
        self.position = position
        where = f"line {position[0]}, column {position[1]}: " if position else ""
        # an error that says where another one is has its words already
        super().__init__(code, f"{where}{message.removesuffix(_UNCHARGED)}{_UNCHARGED}", remedy)


def engine_missing() -> ParameterError:
    """Build the error for opening data where only the client is installed."""
    return ParameterError(
        "HB184", "Only the hubbub client is installed, which cannot open data.", "Run: pip install hubbub"
    )
