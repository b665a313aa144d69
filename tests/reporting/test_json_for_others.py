"""JSON that is printed or uploaded: commands as others may see them, forms of secrets masked, and all else as it is."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from profkit.core.run_folder import run_from_json, run_to_json
from profkit.core.types import BisectDocument, BisectOptions, BisectSearch, PairsCommand, PassPlan, Plan, Step
from profkit.kernels.evaluation.document import evaluation_json
from profkit.regression.nightly.workflow import night_to_text
from profkit.reporting import json as documents_as_json
from profkit.reporting.json import for_others, run, run_fields
from profkit.runtime.passes.shown_command import HARMLESS, MASK
from tests import documents, gpu_documents, metal_documents
from tests.evaluation_documents import every_status
from tests.regression.nightly.test_night_reports import night, workload

COMMAND = ("python", "train.py", "--batch-size", "8", "--run-name", "blau haus", "hunter2")
SHOWN = ["python", "train.py", "--batch-size", "8", "--run-name", MASK, MASK]


def test_a_run_is_printed_with_what_is_harmless_of_its_command_also_in_the_lines_of_tools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    step = Step(
        "trace", ("perf", "record", "-e", "cycles:u", "--", *COMMAND), after=(("perf", "script", "hunter2"),)
    )
    whole = replace(
        documents.document(),
        workload=replace(documents.document().workload, command=COMMAND),
        plan=Plan("cpu", "standard", (PassPlan("trace", "perf", (step,)),)),
        facts={"command": "python 'blau haus' --size 3", "clocks": "base"},
    )
    printed = json.loads(run(whole))
    assert printed["workload"]["command"] == SHOWN
    (shown,) = printed["plan"]["passes"][0]["steps"]
    assert shown["argv"] == ["perf", "record", "-e", "cycles:u", "--", *SHOWN]
    assert shown["after"] == [["perf", "script", MASK]]
    assert printed["facts"] == {"command": f"python {MASK} --size 3", "clocks": "base"}
    assert run_from_json(printed).workload.name == whole.workload.name
    monkeypatch.setenv(HARMLESS, "all")
    assert json.loads(run(whole)) == run_to_json(whole)


@pytest.mark.parametrize(
    "whole", [documents.document(), gpu_documents.run(), metal_documents.run()], ids=["cpu", "cuda", "mps"]
)
def test_a_run_without_a_secret_is_printed_as_it_is(whole: Any) -> None:
    assert run_fields(whole) == run_to_json(whole)


def test_an_evaluation_without_a_secret_is_printed_as_it_is() -> None:
    body = evaluation_json(every_status())
    assert for_others(body) == body


def test_a_night_and_a_bisection_tell_what_is_harmless_of_their_commands() -> None:
    how = PairsCommand(COMMAND, ("make", "hunter2"), ("SIZE=3", "A_NAME=blau haus"))
    told = json.loads(night_to_text(night(workload("w", "regressed", in_pairs=how))))["workloads"][0][
        "in_pairs"
    ]
    assert told == {"command": SHOWN, "setup": ["make", MASK], "env": ["SIZE=3", f"A_NAME={MASK}"]}
    search = BisectDocument(
        "",
        COMMAND,
        "make hunter2",
        ".",
        "a",
        "b",
        BisectOptions(1.0, 0.1, 1.0, None),
        BisectSearch("a" * 40, ()),
    )
    printed = json.loads(documents_as_json.document(search))
    assert (printed["command"], printed["setup"]) == (SHOWN, f"make {MASK}")


def test_a_token_is_masked_in_every_text_and_key_of_a_document() -> None:
    token = "gh" + "p_" + "a1B2" * 9
    text = json.dumps(
        for_others({"failure": f"no {token}", token: [{"name": token}], "argv": [token], "n": [1, [token]]})
    )
    assert token not in text
    assert text.count(MASK) == 5
