"""A run's folder and its run.json: made alone, written whole, read back, refused in a sentence."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.backends import backend_names
from profkit.core import run_folder as run
from profkit.core.codec import LARGEST_VALUE, json_text
from profkit.core.errors import MachineError, UnreadableReport, UsageError
from profkit.core.types import Fact, Profile, Reading, RunDocument, Scope, Source, Summary, Workload
from tests import documents, schemas

WHEN = datetime(2026, 11, 20, 5, 47, 0, tzinfo=timezone.utc)
VALIDATOR = jsonschema.Draft202012Validator(schemas.run())


def strict(text: str) -> object:
    """Parse as strict readers do: NaN and Infinity are no JSON."""

    def refuse(name: str) -> object:
        raise AssertionError(f"{name} in run.json")

    return json.loads(text, parse_constant=refuse)


# ---------------------------------------------------------------- the folder


def test_a_folder_is_named_by_time_workload_and_backend(tmp_path: Path) -> None:
    folder = run.create_run_folder(tmp_path / "reports", "gated_mlp", "cpu", WHEN)
    assert folder == tmp_path / "reports" / "20261120-054700-gated_mlp-cpu"
    assert sorted(p.name for p in folder.iterdir()) == ["artifacts", "logs"]


@pytest.mark.parametrize(
    ("name", "cleaned"),
    [
        ("gated_mlp", "gated_mlp"),
        ("../../etc/passwd", "etc-passwd"),
        ("a b;rm -rf $HOME", "a-b-rm-rf-HOME"),
        ("", "run"),
        ("...", "run"),
        ("\x00\n\x1b[31m", "31m"),
        ("été", "été"),
        ("x" * 500, "x" * 100),
        ("é" * 500, "é" * 50),
        ("\udcff", "run"),
        ("-rf", "rf"),
    ],
)
def test_a_name_cannot_leave_the_folder_or_break_the_terminal(name: str, cleaned: str) -> None:
    assert run.clean_name(name) == cleaned


def test_a_run_that_is_written_again_and_again_is_the_same_and_only_what_changed_is_encoded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    document = replace(documents.document(), summaries=(Summary("time", ()),))
    encoded: list[str] = []
    field_text = run.field_text

    def noted(name: str, value: object) -> str:
        encoded.append(name)
        return field_text(name, value)

    monkeypatch.setattr(run, "field_text", noted)
    writer, other = run.RunWriter(tmp_path), tmp_path / "other"
    other.mkdir()
    changes: list[dict[str, object]] = [
        {},
        {"state": "failed", "failure": "x"},
        {"summaries": (), "name": "y"},
    ]
    for change in changes:
        document = replace(document, **change)
        encoded.clear()
        writer.write(document)
        if change:
            assert set(encoded) == {"schema", *change}
        run.write_run(other, document)
        assert (tmp_path / "run.json").read_bytes() == (other / "run.json").read_bytes()


def test_a_base_that_is_a_file_is_wrong_usage(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for base in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="not a folder"):
            run.create_run_folder(base, "x", "cpu", WHEN)


# ---------------------------------------------------------------- writing


def test_what_is_written_reads_back_the_same(tmp_path: Path) -> None:
    document = documents.document()
    assert run.write_run(tmp_path, document) == tmp_path / "run.json"
    assert run.read_run(tmp_path) == document
    assert run.read_run(tmp_path / "run.json") == document
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_the_document_has_the_contracts_shape() -> None:
    data = run.run_to_json(documents.document())
    assert list(data)[:4] == ["schema", "state", "name", "backend"]
    assert data["schema"] == "profkit.run/6"
    assert data["workload"]["command"] == list(documents.COMMAND)  # type: ignore[index, call-overload]
    unavailable = data["readings"][1]  # type: ignore[index]
    assert unavailable == {
        "metric": "ipc",
        "value": None,
        "unit": "",
        "quality": "unavailable",
        "scope": {"kind": "run", "name": None, "id": None},
        "source": {"tool": "valgrind", "counter": None, "artifact": None, "formula": None},
        "reason": {
            "code": "text",
            "numbers": {},
            "names": {"text": "no hardware counters in this virtual machine"},
            "parts": [],
        },
        "share": None,
        "fix": None,
        "doubt": None,
    }
    VALIDATOR.validate(data)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_number_that_is_none_is_written_as_null(bad: float) -> None:
    document = replace(documents.empty(), profiles=(Profile("x", "s", bad, ()),))
    data = strict(json_text(run.run_to_json(document)))
    assert isinstance(data, dict)
    assert data["profiles"][0]["total"] is None
    VALIDATOR.validate(data)
    assert math.isnan(run.run_from_json(data).profiles[0].total)


def test_a_full_disk_is_said_and_leaves_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.write_run(tmp_path, documents.empty())

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(
        MachineError, match=r"No space left on device; what was written before is whole"
    ) as caught:
        run.write_run(tmp_path, documents.document())
    assert "df -h" in (caught.value.fix or "")
    monkeypatch.undo()
    assert run.read_run(tmp_path) == documents.empty()
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]


def test_an_interrupt_in_the_middle_leaves_what_was_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.write_run(tmp_path, documents.empty())

    def stop(descriptor: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", stop)
    with pytest.raises(KeyboardInterrupt):
        run.write_run(tmp_path, documents.document())
    assert [p.name for p in tmp_path.iterdir()] == ["run.json"]
    assert run.read_run(tmp_path).state == "running"


# ---------------------------------------------------------------- reading


def valid(**changes: object) -> str:
    return json.dumps({**run.run_to_json(documents.empty()), **changes})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "not whole JSON"),
        ("  \n", "not whole JSON"),
        (valid()[:-20], "not whole JSON"),
        ("[]", "the top is not an object"),
        ("{}", "schema is None"),
        ('{"schema": 1}', "schema is 1"),
        ('{"schema": "other/1"}', "'other/1'"),
        (valid(schema="profkit.run/7"), "newer profkit"),
        (valid(schema="profkit.run/1"), "older profkit"),
        (valid(name=3), "name is 3, not a text"),
        (valid(state="done"), "state is 'done', not running or complete"),
        (valid(passes={}), "passes is dict, not a list"),
        (valid(passes=[3]), r"passes\[0\] is 3, not an object"),
        (valid(passes=[{"name": "timing"}]), r"passes\[0\].tool is missing"),
        (valid(summaries={"time": 3}), r"summaries\[0\] is 3"),
        (valid(workload=None), "workload is None"),
        (valid(tools={"perf": 6}), "tools.'perf' is 6"),
        (valid().replace('"notes": []', '"notes": [NaN]'), r"notes\[0\] is nan"),
        (valid(profiles=[{"total": 1, "title": "", "unit": ""}]).replace("1,", "1e999,"), "inf, not a finite"),
        (valid(profiles=[{"total": 1e151, "title": "", "unit": ""}]), r"total is 1e\+151, not a finite number"),
        (valid(notes=[], profiles=[{"total": 10**400, "title": "", "unit": ""}]), "finite"),
        (valid(gpus=[{"name": "x", "index": 1 << 64}]), "64 bits"),
        (valid(profiles=[{"total": 10**400, "title": "", "unit": ""}]), "finite number"),
        (valid().replace('"notes": []', '"notes": [' + "9" * 5000 + "]"), "not whole JSON|not an object"),
        ('{"schema": "profkit.run/6", "x": ' + "[" * 200000, "not whole JSON"),
        (
            valid(readings=[{"metric": "ipc", "value": None, "unit": "", "quality": "measured",
                             "scope": {"kind": "run"}, "source": {"tool": "perf"}}]),
            "has a value or is unavailable",
        ),
    ],
)  # fmt: skip
def test_a_file_that_is_no_run_is_refused_in_a_sentence(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "run.json").write_text(text)
    with pytest.raises(UnreadableReport, match=says) as caught:
        run.read_run(tmp_path)
    assert str(tmp_path / "run.json") in caught.value.message
    assert len(caught.value.message) < 300 + len(str(tmp_path))


def test_a_run_of_an_older_version_is_refused_with_the_line_of_a_new_one() -> None:
    with pytest.raises(UnreadableReport, match=r"older profkit \(profkit.run/1; this one reads") as caught:
        run.run_from_json({"schema": "profkit.run/1"})
    assert caught.value.fix == "profkit profile -- COMMAND"


def test_what_is_not_there_or_not_text_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    os.mkfifo(tmp_path / "fifo")
    for path, says in (
        (tmp_path, "holds no run.json"),
        (tmp_path / "nothing", "not a file"),
        (tmp_path / "binary", "not whole JSON"),
        (tmp_path / "fifo", "not a file"),
    ):
        with pytest.raises(UnreadableReport, match=says):
            run.read_run(path)
        assert not run.is_run(path)


def test_fields_from_elsewhere_are_passed_over_and_absent_ones_take_their_default() -> None:
    minimal = {
        "schema": "profkit.run/6",
        "state": "complete",
        "name": "x",
        "backend": "cpu",
        "workload": {"command": ["true"], "since_version_9": 1},
        "new": {"deep": [1]},
        "passes": [
            {"name": "timing", "tool": None, "state": "finished", "reason": None, "seconds": 4}
        ],
        "readings": [
            {"metric": "ipc", "value": 2, "unit": "", "quality": "measured", "reason": None,
             "scope": {"kind": "run"}, "source": {"tool": "perf"}, "colour": "red"}
        ],
        "summaries": {"time": {"readings": []}},
        "verdicts": [],
    }  # fmt: skip
    document = run.run_from_json(minimal)
    assert document.workload == Workload(("true",), "x", "")
    assert document.summaries == (Summary("time", ()),)
    assert document.readings == (Reading("ipc", 2.0, "", "measured", Scope("run"), Source("perf")),)
    assert document.passes[0].seconds == 4.0


# ---------------------------------------------------------------- any document

st.register_type_strategy(str, st.text(max_size=8))
NUMBERS = st.floats(-LARGEST_VALUE, LARGEST_VALUE)
st.register_type_strategy(float, NUMBERS)
st.register_type_strategy(int, st.integers(-(1 << 64), (1 << 64) - 1))
PRESENT = st.sampled_from(["measured", "simulated", "estimated", "multiplexed"])
SOURCES = st.builds(Source, st.text(max_size=5))
SCOPES = st.builds(Scope, st.sampled_from(["run", "region", "function"]))
st.register_type_strategy(
    Reading,
    st.one_of(
        st.builds(Reading, st.text(max_size=5), NUMBERS, st.just("%"), PRESENT, SCOPES, SOURCES),
        st.builds(
            Reading,
            st.text(max_size=5),
            st.none(),
            st.just("%"),
            st.just("unavailable"),
            SCOPES,
            SOURCES,
            st.builds(Fact, st.text(min_size=1, max_size=9), parts=st.just(())),
        ),
    ),
)
DOCUMENTS = st.builds(
    RunDocument,
    backend=st.sampled_from(backend_names()),
    plan=st.none(),
    **{
        field: st.lists(st.from_type(kind), max_size=1).map(tuple)
        for field, kind in {
            "passes": schemas.model.PassResult,
            "timings": schemas.model.Timing,
            "counters": schemas.model.Counter,
            "readings": Reading,
            "profiles": Profile,
            "verdicts": schemas.model.Verdict,
        }.items()
    },
    summaries=st.lists(st.from_type(Summary), max_size=2, unique_by=lambda s: s.concern).map(tuple),
)


@pytest.mark.thorough
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(DOCUMENTS)
def test_any_document_is_valid_and_comes_back_as_it_was(document: RunDocument) -> None:
    data = strict(json_text(run.run_to_json(document)))
    VALIDATOR.validate(data)
    assert run.run_from_json(data) == document


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_a_document_with_one_value_replaced_is_read_or_refused_never_a_traceback(data: st.DataObject) -> None:
    tree = json.loads(json_text(run.run_to_json(documents.document())))
    node, key = tree, "schema"
    while isinstance(node, (dict, list)) and node:
        holder = node
        key = data.draw(st.sampled_from(sorted(node) if isinstance(node, dict) else range(len(node))))
        node = node[key]
        if data.draw(st.integers(0, 4)) == 0:
            break
    holder[key] = data.draw(
        st.one_of(
            st.none(),
            st.booleans(),
            st.integers(),
            st.floats(),
            st.text(max_size=3),
            st.just([]),
            st.just({}),
        )
    )
    with contextlib.suppress(UnreadableReport):
        run.run_from_json(tree)


def test_a_run_is_its_owners_alone_also_where_its_workload_removed_the_folder(tmp_path: Path) -> None:
    folder = run.create_run_folder(tmp_path, "w", "cpu", WHEN)
    for _ in range(2):
        file = run.write_run(folder, documents.document())
        assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)
        shutil.rmtree(folder)
