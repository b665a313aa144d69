"""A place that says what it is told to: `python hostile_place.py SAID.json sh`, in the place of a shell.

SAID.json holds what differs from a good place: `hello`, `answers` (texts or messages) once work was started, `stays` to
be asked more, `prints` (to standard error), and `exit`.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any


def main() -> None:
    """Be the place."""
    said = json.loads(Path(sys.argv[1]).read_text())
    search = sys.stdin.buffer.readline().decode()
    print(said.get("prints", ""), file=sys.stderr, flush=True)
    if "exit" in said and "answers" not in said:
        sys.exit(said["exit"])
    nonce = re.findall(r"[0-9a-f]{16}", search)[0]
    print(f"\n{nonce} ready", flush=True)
    sys.stdin.buffer.read(int(sys.stdin.buffer.readline()))
    hello = {
        "event": "hello",
        "python": sys.executable,
        "version": [3, 11, 7],
        "host": "a-machine",
    }
    say({**hello, **said.get("hello", {})})
    request = json.loads(sys.stdin.buffer.readline() or "{}")
    sys.stdin.buffer.read(request.get("code_bytes", 0) + request.get("work_bytes", 0))
    for answer in said.get("answers", []):
        say(answer)
    if said.get("stays"):
        sys.stdin.buffer.read()
    sys.exit(said.get("exit", 0))


def say(message: Any) -> None:
    """One line: a text as it is."""
    sys.stdout.write((message if isinstance(message, str) else json.dumps(message)) + "\n")
    sys.stdout.flush()


main()
