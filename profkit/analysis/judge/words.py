"""The advice on what to change, in the words of the language that a kernel or a program is written in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from profkit.analysis.evidence import Language, RunEvidence
from profkit.core.tables import load_yaml

OF_PROGRAMS = ("torch", "program", "collective", "host")  # the words that are not about kernels


@lru_cache(maxsize=1)
def texts_by_language() -> Mapping[str, Mapping[str, str]]:
    """Return every change by its language and its name."""
    files = (load_yaml(Path(__file__).with_name(name)) for name in ("words.yaml", "words_program.yaml"))
    return {kind: texts for file in files for kind, texts in file.items()}


def change_texts() -> tuple[str, ...]:
    """Return the names of all changes, and what each says: texts that no program and no report can have written."""
    return tuple(text for texts in texts_by_language().values() for item in texts.items() for text in item)


def words(name: str, language: str = "cuda") -> str:
    """Return the change of this name, in the words of `language`; where it has none, those for any other rule."""
    texts = texts_by_language()[language]
    return texts[name] if name in texts else texts["otherwise"]


def change_in(language: Language, rule: str, change: str) -> str:
    """Return the change of a rule for a kernel that was written in `language`."""
    return change if language == "cuda" else words(rule, language)


def words_for(run: RunEvidence, name: str) -> str:
    """Return the change of this name for the program's framework; where that is not known, for all of them."""
    return words(f"{name}.{run.framework}", "program")
