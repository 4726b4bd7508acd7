"""Resources: data sheets of the datasets, and earlier releases. Reading them is free.

Tested in tests/mcp/test_tools.py.
"""

import json
import re
from urllib.parse import quote, unquote

import mcp_types as types

from hubbub.errors import AssistantError
from hubbub.mcp import answers
from hubbub.mcp.backend import Backend
from hubbub.mcp.quote import bounded

_DATASET = re.compile(r"hubbub://datasets/([^/?#]{1,600})")
_RELEASE = re.compile(r"hubbub://releases/([0-9]{1,18})")
#: Earlier releases that a client is told about; it can read others by their number.
_LISTED = 50

TEMPLATES = [
    types.ResourceTemplate(
        uri_template="hubbub://datasets/{name}", name="dataset", title="Data sheet", mime_type="application/json"
    ),
    types.ResourceTemplate(
        uri_template="hubbub://releases/{number}", name="release", title="Earlier answer", mime_type="application/json"
    ),
]


async def listed(backend: Backend) -> list[types.Resource]:
    """List the data sheets, and the newest releases."""
    sheets = [
        types.Resource(
            uri=f"hubbub://datasets/{quote(name, safe='')}", name=bounded(name), mime_type="application/json"
        )
        for name in await backend.datasets()
    ]
    past = [each for each in await backend.releases(_LISTED) if each.released]
    return sheets + [
        types.Resource(
            uri=f"hubbub://releases/{each.id}",
            name=f"release {each.id}",
            description=bounded(each.query),
            mime_type="application/json",
        )
        for each in past
    ]


async def read(backend: Backend, uri: str) -> str:
    """Read a resource as JSON."""
    if match := _DATASET.fullmatch(uri):
        name = unquote(match[1])
        form, words = answers.dataset(await backend.describe(name), name)
    elif match := _RELEASE.fullmatch(uri):
        form, words = answers.release(await backend.release(int(match[1])), charged=False)
    else:
        raise AssistantError(
            "HB834", "There is no such resource.", "Use hubbub://datasets/NAME or hubbub://releases/NUMBER."
        )
    return json.dumps({**form, "in_words": words}, ensure_ascii=False)
