"""Tables of exports: what each cell is, whatever wrote it; what is damaged or hostile is refused, never read wrong."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace import tables
from profkit.profilers.xctrace.tables import read_tables
from profkit.profilers.xctrace.toc import Backtrace, Process, StackFrame, read_toc
from tests.conftest import ROOT
from tests.xctrace_tables import EMPTY, Spec, duration, export, label, node, number, process, text, time

HOST, OTHER = process("host", 17), process("Window (Server)", 420)
SPAN = (("start", "start-time"), ("duration", "duration"))
GPU = (*SPAN, ("process", "process"), ("label", "formatted-label"))
COLUMNS = (("start", "start-time"), ("process", "process"), ("label", "formatted-label"))
ROWS = [
    [time(n), process(f"p{n % 3}", n % 3), label(text("string", f"é{n % 2}"), duration(n))] for n in range(12)
]
WHOLE = export(node("metal-gpu-intervals", COLUMNS, ROWS))


def written(tmp_path: Path, *nodes: str) -> Path:
    path = tmp_path / "any name.xml"
    path.write_bytes(export(*nodes))
    return path


def read(path: Path, *wanted: str) -> list[tuple[object, ...]]:
    return [row for table in read_tables(path) for row in table.rows(wanted)]


def refused(path: Path, content: bytes) -> str:
    """Why it is refused, without the name of the file."""
    path.write_bytes(content)
    with pytest.raises(UnreadableReport) as caught:
        read(path, "start", "process", "label")
    assert str(path) in caught.value.message
    assert caught.value.fix
    return caught.value.message.replace(str(path), "")


def read_plainly(path: Path) -> list[list[tuple[str | None, str | None]]]:
    """Tag and shown text of every cell, by ElementTree alone; None for a sentinel."""
    known: dict[str, ElementTree.Element] = {}
    rows = []
    for table in ElementTree.parse(path).iter("node"):
        for row in table.iter("row"):
            known |= {one.get("id", ""): one for one in row.iter() if one.get("id")}
            cells = [known[cell.get("ref", "")] if cell.get("ref") else cell for cell in row]
            rows.append([(None, None) if c.tag == "sentinel" else (c.tag, c.get("fmt")) for c in cells])
    return rows


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces so small that a file has many of them."""
    monkeypatch.setattr(tables, "CHUNK", 3000)


# ---------------------------------------------------------------- values


def test_references_sentinels_and_what_is_first_said_in_another_cell(tmp_path: Path) -> None:
    rows = [
        [time(5), duration(1500), None, label(text("string", "by "), HOST)],
        [time(9), duration(1500), HOST, label(text("string", "by "), HOST)],
        [time(9), duration(5), OTHER, None],
    ]
    path = written(tmp_path, node("metal-gpu-intervals", GPU, rows))
    assert read(path, "start", "process", "duration", "label", "gone", "duration/@fmt") == [
        (5, None, 1500, "by  host (17)", None, "1.50 µs"),
        (9, Process("host", 17), 1500, "by  host (17)", None, "1.50 µs"),
        (9, Process("Window (Server)", 420), 5, None, None, "0.01 µs"),
    ]
    assert read(path, "process") == [(None,), (Process("host", 17),), (Process("Window (Server)", 420),)]


def test_a_stack_is_its_frames_innermost_first(tmp_path: Path) -> None:
    binary = Spec(
        "binary", attributes=(("name", "a.out"), ("UUID", "F3"), ("load-addr", "0x1000"), ("path", "/tmp/a"))
    )
    inner = Spec("frame", parts=(binary,), attributes=(("name", "f<int>()"), ("addr", "0x1010")))
    outer = Spec("frame", attributes=(("name", "0x99"), ("addr", "0x99")))
    stacks = [[Spec("backtrace", parts=(inner, outer))], [None], [Spec("backtrace", parts=(outer, inner))]]
    found = read(written(tmp_path, node("time-profile", (("stack", "backtrace"),), stacks)), "stack")
    first, other = StackFrame("f<int>()", "a.out"), StackFrame("0x99")
    assert found == [(Backtrace((first, other)),), (None,), (Backtrace((other, first)),)]


def test_numbers_that_are_none_are_no_values_and_counts_stay_whole(tmp_path: Path) -> None:
    columns = (("a", "percent"), ("b", "uint64"), ("c", "made-up-in-2030"))
    unknown = text("made-up-in-2030", "5")
    shares: tuple[object, ...] = (0.5, "nan", "n/a", "inf", "", "1e-3")
    rows = [[number("percent", share), number("uint64", 2**64 - 1), unknown] for share in shares]  # type: ignore[arg-type]
    found = read(written(tmp_path, node("t", columns, rows)), "a", "b", "c")
    assert [row[0] for row in found] == [0.5, None, None, None, None, 0.001]
    assert found[0][1:] == (2**64 - 1, "5")


@pytest.mark.parametrize("value", ["9" * 5000, "1_0", "12 34", "zwölf", "0x10", "٣", "1" * 21])
def test_what_is_no_number_where_one_belongs_is_refused(tmp_path: Path, value: str) -> None:
    rows = [[time(5)], [Spec("start-time", value, "x")]]
    with pytest.raises(UnreadableReport, match=r"holds (whole )?numbers"):
        read(written(tmp_path, node("t", (("start", "start-time"),), rows)), "start")


# ---------------------------------------------------------------- several tables


def test_several_tables_of_one_file(tmp_path: Path) -> None:
    first = node("tick", SPAN[:1], [[time(n)] for n in range(300)], position=4)
    second = node("other", (("n", "uint32"), *SPAN[:1]), [[number("uint32", 8), time(3)]])
    nothing = node("empty", (("n", "uint32"),), [], run=3, position=7)
    path = written(tmp_path, first, second, nothing)
    assert [(t.schema, t.run) for t in read_tables(path)] == [("tick", 1), ("other", 1), ("empty", 3)]
    assert [list(t.rows(["start"])) for t in read_tables(path) if t.schema != "tick"] == [[(3,)], []]
    assert read(written(tmp_path, node(None, (), [[time(1)]])), "start") == []


# ---------------------------------------------------------------- against what is known of the file


def test_recorded_tables_are_read_as_a_plain_parser_reads_them() -> None:
    count = 0
    for path in sorted((ROOT / "tests" / "data" / "xctrace" / "m1").glob("*.xml")):
        if path.name == "toc.xml":
            continue
        for table in read_tables(path):
            shown = list(table.rows([f"{column.mnemonic}/@fmt" for column in table.columns]))
            assert shown == [tuple(fmt for _, fmt in row) for row in read_plainly(path)]
            count += len(shown)
    assert count == 722


# ---------------------------------------------------------------- ids


def test_an_id_that_is_said_twice_is_refused(tmp_path: Path) -> None:
    content = export(node("t", (("n", "uint32"),), [[number("uint32", n)] for n in (5, 6, 7, 5, 6)]))
    assert "id 2 is repeated" in refused(tmp_path / "x.xml", content.replace(b'id="3"', b'id="2"'))


def test_references_to_what_was_not_said_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    whole = export(
        node("t", (("process", "process"), ("n", "uint32")), [[process("a", 1), number("uint32", 7)]])
    )
    for reference in ("999", "99999999999999999999999", "-1", "x", "٣"):
        row = f'</row><row><process ref="{reference}"/><uint32 ref="4"/></row>'
        said = refused(path, whole.replace(b"</row>", row.encode()))
        assert said == f": damaged: <process> refers to id {reference}, which no earlier element has"


# ---------------------------------------------------------------- cut off, damaged, hostile


def test_a_file_cut_off_at_any_byte_says_so(tmp_path: Path, small_pieces: None) -> None:
    path, end = tmp_path / "x.xml", WHOLE.rindex(b">")
    for cut in range(40, end, 29):
        assert refused(path, WHOLE[:cut]) == ": cut off: the export ends in the middle"
    path.write_bytes(WHOLE[: end + 1])
    assert len(read(path, "start")) == 12


BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@pytest.mark.parametrize(
    "doctype", [BOMB, OUTSIDE, b'<!DOCTYPE trace-query-result SYSTEM "http://example.org/x.dtd">']
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le-bom", "utf-8-sig"])
def test_a_document_type_is_refused_in_any_encoding(doctype: bytes, encoding: str, tmp_path: Path) -> None:
    begin = '<?xml version="1.0"?>' + doctype.decode()
    content = begin + WHOLE.decode().partition("?>")[2].replace("é0", "&a;")
    data = content.encode(encoding) if "bom" not in encoding else b"\xff\xfe" + content.encode("utf-16-le")
    assert "DOCTYPE" in refused(tmp_path / "x.xml", data)


def test_elements_in_one_another_without_end_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    one = export(node("t", (("process", "process"),), [[HOST]]))
    deep = b"<thread>" * 300 + b"</thread>" * 300
    refused(path, re.sub(rb"<process id.*</process>", deep, one))
    refused(path, b"<trace-query-result>" * 40_000)
    refused(path, b"<trace-query-result><node>" + b"<a>" * 40_000)
    refused(path, WHOLE.replace(b"<row>", b"<row>" * 40_000, 1))


def test_a_row_or_a_value_without_end_is_refused_before_it_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tables, "MAX_PENDING", 100_000)
    path, begin = tmp_path / "x.xml", WHOLE[: WHOLE.index(b"<row>")]
    for row in (b'<row><start-time id="1" fmt="' + b"x" * 5_000_000,
                b'<row><start-time id="1">' + b"1" * 5_000_000 + b"</start-time>"):  # fmt: skip
        assert "one piece of it is over" in refused(path, begin + row + WHOLE[len(begin) :])


@pytest.mark.parametrize("bad", [b"\0", b"\xff", b"&nothing;", b"&#0;", b"<", b"</row></row>"])
def test_what_is_no_xml_is_refused_with_its_line(bad: bytes, tmp_path: Path) -> None:
    at = WHOLE.rindex(b"</duration>")
    said = refused(tmp_path / "x.xml", WHOLE[:at] + bad + WHOLE[at:])
    assert re.match(r": not well-formed XML at line \d+: ", said)


@pytest.mark.parametrize(
    "content", [b"", b"   ", b"hello", b"\0" * 100, b"<html/>", b"<trace-toc/>", b"{}", EMPTY[:40]]
)
def test_what_is_no_export_is_refused(content: bytes, tmp_path: Path) -> None:
    refused(tmp_path / "x.xml", content)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b'<?xml version="1.0"?>' + BOMB + b"<trace-toc>&b;</trace-toc>", "DOCTYPE"),
        (b"<trace-toc>" + b"<a>" * 40_000, "cut off"),
        (b"<trace-toc><run number='1'><info>", "cut off"),
        (b"<html/>", "begins with <html>"),
    ],
)
def test_a_table_of_contents_that_is_hostile_or_cut_off_is_refused(
    content: bytes, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "toc.xml"
    path.write_bytes(content)
    with pytest.raises(UnreadableReport, match=reason) as caught:
        read_toc(path)
    assert caught.value.fix
    assert str(path) in caught.value.message
