"""What the pages show to type: blocks of shell and of Python, and the commands inside sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import ROOT

PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")), ROOT / "reports" / "README.md")
# A line of an indented block is a command where it begins like one; the rest are files, JSON and drawings.
STARTS = re.compile(
    r"(?:# |\$ |[A-Z_]+=\S+ )*"
    r"(?:profkit|\./\w+\.sh|wrappers/|sudo|env|docker|perf|nsys|ncu|dcgmi|dyno|apt-get|sysctl|setcap|systemctl|python3?|"
    r"pip|git|unset|echo|update-initramfs|sbatch|crontab|mkdir|cp|cd|mkdocs|pytest|cat)(?: |$)"
)


@dataclass(frozen=True)
class Block:
    """Commands that stand together and are typed one after the other; one of a sentence stands alone."""

    page: str
    lines: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page}: {self.lines[0][:70]}"


def text_of(page: Path) -> str:
    """The page without samples of output."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"<!-- OUTPUT.*?<!-- /OUTPUT -->", "", text, flags=re.DOTALL)


def fenced(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language, without the indentation that a list gives them."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text_of(page), re.MULTILINE | re.DOTALL)
    return ["\n".join(line.removeprefix(indent) for line in body.split("\n")) for indent, body in found]


def blocks() -> list[Block]:
    """Every block of commands, each text once."""
    found: dict[tuple[str, ...], Block] = {}
    for page in PAGES:
        for lines in _of(page):
            if lines:
                found.setdefault(lines, Block(page.relative_to(ROOT).as_posix(), lines))
    return list(found.values())


def _of(page: Path) -> Iterator[tuple[str, ...]]:
    for body in fenced(page, "sh"):
        joined = re.sub(r"\\\n\s*", "", body)
        if "<<" in joined:  # a here-document is one command over several lines
            yield (joined.rstrip(),)
        else:
            yield tuple(line for line in joined.splitlines() if line.strip() and not line.startswith("#!"))
    text = re.sub(r"^ *```.*?^ *```", "", text_of(page), flags=re.DOTALL | re.MULTILINE)
    for block in re.findall(r"(?:^ {4}\S.*\n)+", text, re.MULTILINE):
        lines = [
            re.split(r"\s{3,}", line)[0] for line in re.sub(r"^ {4}", "", block, flags=re.M).splitlines()
        ]
        yield tuple(line for line in lines if STARTS.match(line))
    for line in re.findall(r"(?<!\*)`(profkit [a-z][^`]*)`", text):
        yield (line.replace("\\|", "|"),)
