"""What `mkdocs build` calls: it adds the pages that are written from the program, so that they cannot drift from it."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from mkdocs.structure.files import File, Files

_HERE = Path(__file__).parent


def _module(name: str) -> ModuleType:
    """Import a file of this folder, which is not a package."""
    specification = importlib.util.spec_from_file_location(f"hubbub_site_{name}", _HERE / f"{name}.py")
    if specification is None or specification.loader is None:
        raise ImportError(name)
    module = importlib.util.module_from_spec(specification)
    sys.modules[specification.name] = module
    specification.loader.exec_module(module)
    return module


def on_files(files: Files, *, config: Any) -> Files:
    """Add the generated pages of the reference, and a page for each notebook."""
    for folder in ("reference", "notebooks"):
        for name, text in _module(folder).pages().items():
            files.append(File.generated(config, f"{folder}/{name}.md", content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """List pages for users first in search results: reasons and records come after them."""
    if page.file.src_uri.startswith(("decisions/", "campaigns", "planted", "theorems", "security-history")):
        page.meta["search"] = {"boost": 0.2}
    return markdown
