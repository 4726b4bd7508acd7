"""DB-API 2.0 (PEP 249): `import hubbub.client.dbapi`. The implementation is in `hubbub.client.dbapi`."""

from hubbub.client.dbapi import *  # noqa: F403
