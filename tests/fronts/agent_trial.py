"""Three programs with a slow line each; an agent finds it, changes it and proves the change, by the SDK's own client.

All three: python -m tests.fronts.agent_trial
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from profkit.fronts.answers import MAX_CHARACTERS
from tests.conftest import ROOT
from tests.git_repository import git

ENVIRONMENT = {"PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}


@dataclass(frozen=True)
class Planted:
    """The time goes into line `line`; with `fast` in place of the line `slow` the program does the same."""

    name: str
    text: str
    slow: str
    fast: str
    line: int


LOOKUP = Planted(
    "lookup",
    "def known(words, all_words):\n"
    "    count = 0\n"
    "    for word in words:\n"
    "        count += word in all_words\n"
    "    return count\n\n\n"
    "def main():\n"
    "    all_words = [str(n) for n in range(4000)]\n"
    "    words = [str(n) for n in range(3000, 7000)]\n"
    "    print(known(words, all_words))\n\n\n"
    "main()\n",
    "    all_words = [str(n) for n in range(4000)]",
    "    all_words = {str(n) for n in range(4000)}",
    4,
)
SORTED = Planted(
    "best",
    "def best(values):\n"
    "    found = []\n"
    "    for n in range(1, 400):\n"
    "        found.append(sorted(values, key=lambda value: -value)[0])\n"
    "    return found\n\n\n"
    "print(len(best(list(range(3000)))))\n",
    "        found.append(sorted(values, key=lambda value: -value)[0])",
    "        found.append(max(values))",
    4,
)
SLEEP = Planted(
    "poll",
    "import time\n\n\n"
    "def ready(n):\n"
    "    while n > 0:\n"
    "        time.sleep(0.05)\n"
    "        n -= 1\n\n\n"
    "ready(12)\n",
    "        time.sleep(0.05)",
    "        time.sleep(0.001)",
    6,
)
PLANTED = (LOOKUP, SORTED, SLEEP)


def project(folder: Path, text: str) -> Path:
    """A repository with the program committed."""
    folder.mkdir()
    (folder / "app.py").write_text(text)
    (folder / ".gitignore").write_text("reports/\n__pycache__/\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", "one")
    return folder


def connected(root: Path, *options: str) -> Client:
    line = ["-m", "profkit", "mcp", str(root), *options]
    return Client(StdioServerParameters(command=sys.executable, args=line, env=ENVIRONMENT))


def text_in(result: Any) -> str:
    return str(result.content[0].text)


async def find_change_prove(planted: Planted, root: Path) -> str:
    """What the comparison says in the end. Raises AssertionError where a step fails."""
    command, told = ["python", "app.py"], []

    async def tell(done: float, total: float | None, message: str | None) -> None:
        told.append(message)

    async with connected(root, "--budget", "60") as client:
        found = await client.call_tool("profile", {"command": command, "budget": 15}, progress_callback=tell)
        assert told[0] == "runs python app.py for about 15 s"  # before it ran
        assert len(text_in(found)) <= MAX_CHARACTERS
        run = found.structured_content
        first = run["insights"][0]
        assert (first["untrusted"]["file"], first["line"]) == ("app.py", planted.line)
        assert run["hot_spots"][0]["line"] == planted.line
        assert first["at_most"] > 0.5
        (root / "app.py").write_text(planted.text.replace(planted.slow, planted.fast))
        proof = await client.call_tool("compare", {"command": command, "budget": 10, "metric": "time.median"})
        assert proof.structured_content["outcome"] == "improved", text_in(proof)
        rest = await client.call_tool("summarize", {"path": run["id"], "part": "readings"})
        assert {"metric", "value", "unit"} <= rest.structured_content["readings"][0].keys()
        judged = await client.call_tool("check", {"path": run["id"]})
        assert judged.structured_content["verdicts"][0]["verdict"] in ("fail", "unknown")
        return str(proof.structured_content["sentence"])


if __name__ == "__main__":
    for one in PLANTED:
        with tempfile.TemporaryDirectory() as place:
            begin = time.monotonic()
            said = asyncio.run(find_change_prove(one, project(Path(place, "p"), one.text)))
            print(f"{one.name}: line {one.line} found; {said} ({time.monotonic() - begin:.0f} s)")
