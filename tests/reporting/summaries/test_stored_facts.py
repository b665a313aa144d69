"""run.json holds values; what is said of a concern is made when it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from profkit.core.run_folder import run_to_json
from profkit.core.types import RunDocument
from profkit.profiling.summarize import judge_document, targets_for
from tests import documents
from tests import gpu_documents as gpu
from tests import metal_documents as metal

# Of a reading: why it is as it is, and where it comes from (names of counters, formulas, lines to type).
OWN = ("reason", "cause", "fix", "doubt", "source", "name", "id")


def texts(value: Any) -> Iterator[str]:
    """Every text below, but for what a reading says of itself."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for one in value:
            yield from texts(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            if key not in OWN:
                yield from texts(one)


@pytest.mark.parametrize("document", [documents.document(), gpu.run(), gpu.of_trace(), metal.run()])
def test_a_concern_is_its_readings_and_a_threshold_is_a_value(document: RunDocument) -> None:
    stored: Any = run_to_json(judge_document(document, targets_for(document.backend)))
    assert stored["summaries"]
    for concern in stored["summaries"].values():
        assert set(concern) == {"concern", "readings"}
        assert [text for text in texts(concern) if len(text.split()) > 3] == []
    for verdict in stored["verdicts"]:
        assert set(verdict["threshold"] or ()) in ({"operator", "value", "unit"}, set())
        assert isinstance((verdict["threshold"] or {"value": 0.0})["value"], float)
