"""The page about assistants: its table names the tools, and its Python runs."""

import os
import re
import subprocess
import sys
from pathlib import Path

from hubbub.cli import main
from hubbub.mcp.prompts import PROMPTS
from hubbub.mcp.tools import TOOLS

PAGE = (Path(__file__).parents[2] / "docs" / "mcp.md").read_text()


def test_the_page_names_every_tool_and_prompt() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == list(TOOLS)
    assert all(f"`{name}`" in PAGE for name in PROMPTS)


def test_the_python_of_the_page_runs(tmp_path: Path) -> None:
    assert main(["demo", "--into", str(tmp_path / "demo")]) == 0
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", code.replace('command="hubbub"', f'command="{Path(sys.executable).parent}/hubbub"')],
        cwd=tmp_path / "demo",
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "95% interval" in done.stdout
