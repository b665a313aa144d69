"""JSON Schemas (draft 2020-12) of the documents, worked out from the model's types.

The site of docs/ publishes them as schema/NAME.schema.json: mkdocs.yml names this file as its hook.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from profkit.backends import backend_names
from profkit.core import types as model
from profkit.core.run_folder import SCHEMA
from profkit.reporting.json import SCHEMAS

# A number that is none (NaN) is written as null, so that a bad sample costs no run.
_SCALARS: dict[Any, Any] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},
}


def run() -> dict[str, Any]:
    """Of run.json, and what `profile --format json` prints."""
    required = (
        "schema",
        "name",
        "backend",
        "state",
        "workload",
        "passes",
        "readings",
        "summaries",
        "verdicts",
    )
    whole = _whole(model.RunDocument, SCHEMA, "one profiled run", required)
    whole["properties"]["summaries"] = {
        "description": "keyed by concern",
        "type": "object",
        "additionalProperties": {"$ref": "#/$defs/Summary"},
    }
    reading = whole["$defs"]["Reading"]
    reading["if"] = {"properties": {"quality": {"const": "unavailable"}}}
    reading["then"] = {
        "description": "a reading that is not there has no value, and says why",
        "properties": {"value": {"type": "null"}, "reason": {"type": "object"}},
        "required": ["reason"],
    }
    reading["else"] = {"properties": {"value": {"type": "number"}}}
    return whole


def comparison() -> dict[str, Any]:
    """Of two runs, as `compare --format json` prints them."""
    return _whole(model.Comparison, SCHEMAS[model.Comparison], "two runs side by side")


def comparisons() -> dict[str, Any]:
    """Of several workloads, as `compare --format json` prints them."""
    title = "several workloads, each between two versions"
    return _whole(model.ComparedSuite, SCHEMAS[model.ComparedSuite], title)


def bisect() -> dict[str, Any]:
    """Of bisect.json, and what `bisect --format json` prints."""
    return _whole(
        model.BisectDocument, SCHEMAS[model.BisectDocument], "the search of the commit that changed a time"
    )


def night() -> dict[str, Any]:
    """Of night.json."""
    required = ("schema", "id", "name", "started", "outcome", "exit_code", "workloads")
    return _whole(model.Night, SCHEMAS[model.Night], "one nightly", required)


ALL: tuple[Callable[[], dict[str, Any]], ...] = (run, comparison, comparisons, bisect, night)


def on_post_build(config: dict[str, Any], **_: object) -> None:
    """Write them into the site that mkdocs has built."""
    folder = Path(config["site_dir"]) / "schema"
    folder.mkdir(exist_ok=True)
    for schema in ALL:
        text = json.dumps(schema(), indent=1) + "\n"
        (folder / f"{schema.__name__}.schema.json").write_text(text, encoding="utf-8")


def _whole(kind: type, name: str, title: str, required: Sequence[str] = ()) -> dict[str, Any]:
    """`required`: the fields that every document has; none: all."""
    kinds: dict[str, Any] = {}
    top = _object(kind, kinds)
    top["properties"] = {"schema": {"const": name}, **top["properties"]}
    top["required"] = list(required or top["properties"])
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{name}: {title}",
        "description": "Fields may be added; a reader passes over what it does not know.",
        **top,
        "$defs": dict(sorted(kinds.items())),
    }


def _object(kind: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    hints = typing.get_type_hints(kind)
    absent = dataclasses.MISSING
    return {
        "description": (kind.__doc__ or "").split("\n\n")[0].replace("\n    ", " "),
        "type": "object",
        "properties": {
            field.name: {"enum": list(backend_names())}
            if field.name == "backend" and kind in (model.RunDocument, model.Plan)
            else _shape(hints[field.name], kinds)
            for field in dataclasses.fields(kind)
        },
        "required": [
            field.name
            for field in dataclasses.fields(kind)
            if field.default is absent and field.default_factory is absent
        ],
    }


def _shape(hint: Any, kinds: dict[str, Any]) -> dict[str, Any]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if hint in _SCALARS:
        return dict(_SCALARS[hint])
    if origin is typing.Literal:
        return {"enum": list(arguments)}
    if origin in (typing.Union, types.UnionType):
        inner = _shape(next(item for item in arguments if item is not type(None)), kinds)
        return inner if inner.get("type") == ["number", "null"] else {"anyOf": [inner, {"type": "null"}]}
    if origin is tuple:
        return {"type": "array", "items": _shape(arguments[0], kinds)}
    if dataclasses.is_dataclass(hint):
        name = hint.__name__  # type: ignore[attr-defined]
        if name not in kinds:
            kinds[name] = {}
            kinds[name] = _object(hint, kinds)
        return {"$ref": f"#/$defs/{name}"}
    return {"type": "object", "additionalProperties": _shape(arguments[1], kinds)}
