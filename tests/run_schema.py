"""The JSON Schema of run.json, worked out from the model's types.

`python -m tests.run_schema` writes profkit/core/schema/run.schema.json; a test holds the two together.
"""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from pathlib import Path
from typing import Any

from profkit.backends import backend_names
from profkit.core import types as model
from profkit.core.run_folder import SCHEMA

PUBLISHED = Path(__file__).resolve().parent.parent / "profkit" / "core" / "schema" / "run.schema.json"
# A number that is none (NaN) is written as null, so that a bad sample costs no run.
_SCALARS: dict[Any, Any] = {
    str: {"type": "string"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": ["number", "null"]},
}


def schema() -> dict[str, Any]:
    """The whole schema, draft 2020-12."""
    kinds: dict[str, Any] = {}
    top = _object(model.RunDocument, kinds)
    top["properties"] = {
        "schema": {"const": SCHEMA},
        **top["properties"],
        "summaries": {
            "description": "keyed by concern",
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/Summary"},
        },
    }
    top["required"] = ["schema", "name", "backend", "state", "workload", "passes", "readings", "summaries",
                       "verdicts"]  # fmt: skip
    kinds["Reading"]["if"] = {"properties": {"quality": {"const": "unavailable"}}}
    kinds["Reading"]["then"] = {
        "description": "a reading that is not there has no value, and says why",
        "properties": {"value": {"type": "null"}, "reason": {"type": "string", "minLength": 1}},
        "required": ["reason"],
    }
    kinds["Reading"]["else"] = {"properties": {"value": {"type": "number"}}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{SCHEMA}: one profiled run",
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


def text() -> str:
    """The schema as the published file holds it."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    PUBLISHED.write_text(text(), encoding="utf-8")
