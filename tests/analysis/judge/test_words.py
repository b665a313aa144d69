"""The sentences of the rules: each is found under its own name, and has nothing left to fill in when it is shown."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from string import Formatter
from typing import Any

import pytest
import yaml

import profkit
from profkit.analysis.judge.rules.native.functions import native_functions
from profkit.analysis.judge.rules.spot_functions import TABLE as PYTHON_FUNCTIONS
from profkit.analysis.judge.words import texts_by_language, words
from profkit.core.tables import load_yaml

PACKAGE = Path(profkit.__file__).parent
RULES = sorted((PACKAGE / "analysis" / "judge").rglob("*.py"))
TABLES = sorted(PACKAGE.rglob("*.yaml"))
LANGUAGES = texts_by_language()


def blanks(text: str) -> set[str]:
    """Return the names that a text has in braces; code has other things there (`{{x: y}}`, the shell's `${x}`)."""
    try:
        names = {name for _, name, _, _ in Formatter().parse(text) if name is not None}
    except ValueError:
        return set()
    return {name for name in names if name.isidentifier()}


def calls(name: str) -> Iterator[tuple[Path, ast.Call, ast.AST | None]]:
    """Yield the calls of a function in the rules, each with what calls `.format` on it, if anything does."""
    for path in RULES:
        tree = ast.parse(path.read_text())
        formats = {
            id(node.func.value): node
            for node in ast.walk(tree)
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "format"
        }
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == name:
                yield path, node, formats.get(id(node))


def keys_of(argument: ast.expr) -> list[str]:
    """Return the names of texts that an argument of `words` may be: all that fit where a part of it is computed."""
    if isinstance(argument, ast.Constant):
        return [argument.value]
    if isinstance(argument, ast.IfExp):
        return [*keys_of(argument.body), *keys_of(argument.orelse)]
    if not isinstance(argument, ast.JoinedStr):
        return []
    pattern = re.compile("".join(_part(part) for part in argument.values))
    return [key for texts in LANGUAGES.values() for key in texts if pattern.fullmatch(key)]


def _part(part: ast.expr) -> str:
    """Return the pattern of a part of a name: the texts that a condition chooses between, anything for a variable."""
    if isinstance(part, ast.Constant):
        return re.escape(part.value)
    inner = part.value if isinstance(part, ast.FormattedValue) else part
    if isinstance(inner, ast.IfExp) and (texts := keys_of(inner)):
        return f"({'|'.join(map(re.escape, texts))})"
    return ".*"


def _uses() -> Iterator[tuple[str, str, str, bool, set[str | None] | None]]:
    """Yield the uses of each text: where, its language and name, whether that is written out, and the names given."""
    for path, call, filled in calls("words"):
        language = (
            call.args[1].value if len(call.args) > 1 and isinstance(call.args[1], ast.Constant) else "cuda"
        )
        given = {keyword.arg for keyword in filled.keywords} if isinstance(filled, ast.Call) else None
        keys = keys_of(call.args[0])
        for key in keys:
            yield f"{path.name}:{call.lineno}", language, key, len(keys) == 1, given


def test_each_text_with_blanks_is_filled_where_it_is_used() -> None:
    uses = list(_uses())
    formatted = {(language, key) for _, language, key, _, given in uses if given is not None}
    assert len(uses) > 150
    for where, language, key, exact, given in uses:
        text = LANGUAGES[language].get(key, "")
        # A name with a computed part may stand for texts of another place, which fills them there.
        if exact or given is not None or (language, key) not in formatted:
            assert blanks(text) <= (given or set()), f"{where} leaves {blanks(text)} in {key!r}"
        # A brace that is doubled for `format` would be shown twice without it.
        assert (language, key) in formatted or not re.search(r"\{\{|\}\}", text), f"{where}: {key!r}"


def test_each_text_of_a_host_with_blanks_is_used() -> None:
    filled = {key for _, language, key, _, given in _uses() if language == "host" and given is not None}
    assert {key for key, text in LANGUAGES["host"].items() if blanks(text)} <= filled


def test_a_rule_that_gives_no_change_has_a_text_without_blanks() -> None:
    for path, call, _ in calls("say"):
        rule = call.args[1] if len(call.args) > 1 else None
        if any(keyword.arg == "change" for keyword in call.keywords):
            continue
        for key in keys_of(rule) if rule is not None else ():
            assert not blanks(words(key, "host")), f"{path.name}:{call.lineno} leaves blanks in {key!r}"


def test_the_rows_of_costly_functions_have_no_blanks() -> None:
    rows = [vars(row) for row in native_functions()] + list(load_yaml(PYTHON_FUNCTIONS))
    for row in rows:
        for text in (row["title"], row["change"]):
            assert not re.search(r"\{\w+\}", text), text


class _Once(yaml.SafeLoader):
    """A loader that refuses a name that is given twice: YAML's own takes the last one without a word."""


def _once(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[Any, Any]:
    names = [key.value for key, _ in node.value]
    twice = {name for name in names if names.count(name) > 1}
    assert not twice, f"{node.start_mark.name} has {twice} twice, and the first one is lost"
    return dict(loader.construct_mapping(node, deep=True))


_Once.add_constructor("tag:yaml.org,2002:map", _once)


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_no_table_has_a_name_twice(table: Path) -> None:
    with table.open() as file:
        yaml.load(file, Loader=_Once)
