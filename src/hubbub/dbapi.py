"""DB-API 2.0 (PEP 249) for pandas, polars and other tools; the implementation is in `hubbub.client.dbapi`."""

from hubbub.client.dbapi import *  # noqa: F403
