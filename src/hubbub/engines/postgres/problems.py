"""Explain failures of PostgreSQL before a charge, without the server's message: it may quote values or a password.

Tested in tests/engines/test_postgres_problems.py.
"""

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import psycopg


def explain_error(error: "psycopg.Error") -> tuple[str, str]:
    """Return the reason and the remedy, without addresses and names, because analysts see them."""
    for states, why, remedy in _STATES:
        if error.sqlstate is not None and error.sqlstate.startswith(states):
            return why, remedy
    if error.sqlstate is not None:
        return f"the server reported {error.sqlstate}", "Check the server log."
    cause = _cause(error)
    return (cause[1], cause[2]) if cause is not None else (_UNREACHABLE, "Check its address, and that it is running.")


def explain_connection(error: "psycopg.Error", address: str) -> tuple[str, str]:
    """Return the reason and the remedy for the data owner, with host, port, role and database, never the password."""
    why, remedy = explain_error(error)
    if error.sqlstate is not None:
        return why, remedy
    import psycopg
    from psycopg import conninfo

    try:
        given = {key: str(value) for key, value in conninfo.conninfo_to_dict(address).items() if value is not None}
    except psycopg.Error:
        # libpq quotes the part that it cannot read, which may be the password
        return "the address is malformed", "Write special characters as %XX (a space as %20), and check the parameters."
    tried = error.pgconn
    host = tried.host.decode() if tried is not None and tried.host else given.get("host", "localhost")
    host = host.rpartition("@")[2]  # what precedes an @ is the end of a password in which it was not escaped
    port = tried.port.decode() if tried is not None and tried.port else given.get("port", "5432")
    user = tried.user.decode() if tried is not None and tried.user else given.get("user", "")
    database = tried.db.decode() if tried is not None and tried.db else given.get("dbname", "")
    return f"{why} (host {host}, port {port}, role {user}, database {database})", remedy


def _cause(error: "psycopg.Error") -> tuple[str, str, str] | None:
    """Find the cause of a failed connection, for which libpq gives a text and no code."""
    text = str(error)
    return next((cause for cause in _CAUSES if re.search(cause[0], text)), None)


_UNREACHABLE = "the server is unreachable"
#: Patterns of libpq's messages, the most specific first.
_CAUSES = (
    (
        "no password supplied",
        "the server requires a password and none was given",
        "Put the password into ~/.pgpass of the user that runs hubbub.",
    ),
    (
        "(password|SCRAM|GSSAPI|LDAP|PAM|Peer|Ident|certificate) authentication failed|SASL authentication failed",
        "the server rejected the password or identity of the role",
        "Check the role in the source, its password in ~/.pgpass, and pg_hba.conf on the server.",
    ),
    (
        r"no pg_hba\.conf entry.*no encryption",
        "the server has no pg_hba.conf entry for an unencrypted connection of this role",
        "Append ?sslmode=require to the source, or add an entry to pg_hba.conf.",
    ),
    (
        r"no pg_hba\.conf entry|pg_hba\.conf rejects",
        "the server has no pg_hba.conf entry for this role, database and client address",
        "Add an entry to pg_hba.conf on the server and reload it.",
    ),
    ('role ".*" does not exist', "the role does not exist", "Check the user in the source."),
    (
        'database ".*" does not exist|no such database',
        "the database does not exist",
        "Check the database name in the source.",
    ),
    (
        "server does not support (SSL|TLS)",
        "the server does not offer TLS, which sslmode requires",
        "Enable ssl on the server, or remove sslmode from the source.",
    ),
    (
        "certificate verify failed|root certificate|does not match host name|unable to get local issuer",
        "TLS failed: the certificate of the server is not trusted or is for another host",
        "Append &sslrootcert=… with the CA of the server, and use the host name of its certificate.",
    ),
    (
        "SSL|TLS|certificate",
        "TLS failed while the connection was opened",
        "Check sslmode, sslcert and sslkey in the source, and the TLS settings of the server.",
    ),
    (
        "failed to resolve host|could not translate host name|Name or service not known",
        "the server is unreachable: its host name cannot be resolved",
        "Check the host in the source, and DNS.",
    ),
    (
        "not in hot standby mode|session is (not )?read-only|server is in hot standby mode",
        "no server of the address has the role that target_session_attrs requires",
        "Change target_session_attrs in the source, or check which server is the primary.",
    ),
    (
        "too many connections|remaining connection slots|no more connections allowed|query_wait_timeout",
        "the server accepts no more connections",
        "Try again later, or increase max_connections.",
    ),
    (
        "the database system is|cannot connect now",
        "the server is starting, stopping or recovering",
        "Try again later.",
    ),
    (
        "Connection refused|No such file or directory",
        "the server is unreachable: nothing listens at its host and port",
        "Check host and port in the source, and that the server is running and listens there.",
    ),
    (
        "timeout|timed out|No route to host|Network is unreachable",
        "the server is unreachable: it did not answer in time",
        "Check host and port in the source, and the firewall.",
    ),
)
#: Explanations by the first characters of SQLSTATE.
_STATES = (
    ("42501", "the role has no SELECT privilege", "Grant SELECT on the table to the role."),
    ("28", "authentication failed", "Check the role, the password, and pg_hba.conf on the server."),
    ("3D000", "the database does not exist", "Check the database name in the source."),
    ("40001", "the standby canceled the query to replay changes", "Try again, or set hot_standby_feedback = on."),
    ("57014", "the server timed out", "Try again later, or increase engine.seconds."),
    ("55P03", "another session has locked the table", "Try again later."),
    (
        "08P01",
        "the connection pool rejects transactions or parameters",
        "Use a pool with pool_mode = transaction or session, or connect to the server itself.",
    ),
    (("53300", "57P03"), "the server accepts no more connections", "Try again later, or increase max_connections."),
    (("08", "57P"), _UNREACHABLE, "Check its address, and that it is running."),
)
