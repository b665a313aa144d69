"""Writing of generation.json, schema 'profkit.generation/4': a generation of kernels with its scores."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import cast

from profkit.analysis.evaluation.scores import MeanSpeedup
from profkit.analysis.generation import GenerationScores, generation_scores
from profkit.core.codec import json_text, to_plain_data
from profkit.core.files.regular import read_start
from profkit.core.types import GenerationDocument, Json
from profkit.kernels.evaluation.document import mean_fields

SCHEMA = "profkit.generation/4"
FILE = "generation.json"
_HEAD = 200  # bytes: in which the schema stands


def generation_text(document: GenerationDocument, folder: Path | None = None) -> str:
    """Return the document as JSON text; `folder` is where its other files lie."""
    return json_text(generation_json(document, folder))


def generation_json(document: GenerationDocument, folder: Path | None = None) -> dict[str, Json]:
    """Return the document as plain data: the request, its scores, its operations with their attempts."""
    body = cast("dict[str, Json]", to_plain_data(document))
    operations = body.pop("operations")
    return {
        "schema": SCHEMA,
        **({"folder": str(folder)} if folder is not None else {}),
        **body,
        **_scores(generation_scores(document)),
        "operations": operations,
    }


def _scores(scores: GenerationScores) -> dict[str, Json]:
    """Return the fields of the scores."""
    return {
        "solved": scores.solved,
        "attempts": scores.attempts,
        "words": to_plain_data(scores.words),
        **_mean("geomean", scores.geomean),
        **_mean("geomean_with_fallback", scores.geomean_with_fallback),
        "statuses": to_plain_data(scores.statuses),
    }


def _mean(name: str, mean: MeanSpeedup | None) -> dict[str, Json]:
    """Return the fields of a mean under `name`, and the number of its speed-ups."""
    return {**mean_fields(name, mean), f"{name}_n": mean.n if mean is not None else 0}


def is_generation(path: Path) -> bool:
    """Return whether a folder holds the file, or a file begins like one; never raises."""
    with contextlib.suppress(OSError):
        file = path / FILE if path.is_dir() else path
        return b'"profkit.generation/' in read_start(file, _HEAD)
    return False
