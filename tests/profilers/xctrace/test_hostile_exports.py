"""Exports that are cut off, damaged or made to do harm: one sentence, soon, and never fewer rows without a word."""

from __future__ import annotations

import re
import time as clock
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace import builder, quick
from profkit.profilers.xctrace.stream import tables, tables_carefully
from profkit.profilers.xctrace.table import Table
from profkit.profilers.xctrace.toc import read_toc
from tests.xctrace_tables import EMPTY, Spec, duration, export, label, node, number, process, text, time

WAYS = pytest.mark.parametrize("way", [tables, tables_carefully], ids=["quick", "careful"])
Way = Callable[[Path], Iterator[Table]]
COLUMNS = (("start", "start-time"), ("process", "process"), ("label", "formatted-label"))
ROWS = [
    [time(n), process(f"p{n % 3}", n % 3), label(text("string", f"é{n % 2}"), duration(n))] for n in range(12)
]
WHOLE = export(node("metal-gpu-intervals", COLUMNS, ROWS))


def taken(way: Way, path: Path) -> list[tuple[object, ...]]:
    return [row for table in way(path) for row in table.rows(["start", "process", "label"])]


def refused(way: Way, path: Path, content: bytes) -> str:
    path.write_bytes(content)
    with pytest.raises(UnreadableReport) as caught:
        taken(way, path)
    assert str(path) in caught.value.message
    assert caught.value.fix
    return caught.value.message.replace(str(path), "")


@WAYS
@pytest.mark.parametrize("chunk", [1 << 20, 300])
def test_a_file_cut_off_at_any_byte_says_so_and_how_many_rows_were_whole(
    way: Way, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "CHUNK", chunk)
    path = tmp_path / "x.xml"
    end = WHOLE.rindex(b">")
    for cut in range(40, end, 1 if chunk == 300 and way is tables else 7):
        whole = WHOLE[:cut].count(b"</row>")
        said = refused(way, path, WHOLE[:cut])
        expected = (
            f": cut off after {whole} whole row{'' if whole == 1 else 's'}: the export ends in its middle"
        )
        assert said == expected, WHOLE[cut - 20 : cut]
    path.write_bytes(WHOLE[: end + 1])
    assert len(taken(way, path)) == 12


BOMB = b'<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'
OUTSIDE = b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>'


@WAYS
@pytest.mark.parametrize(
    "doctype", [BOMB, OUTSIDE, b'<!DOCTYPE trace-query-result SYSTEM "http://example.org/x.dtd">']
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le-bom", "utf-8-sig"])
def test_a_document_type_is_refused_in_any_encoding(
    way: Way, doctype: bytes, encoding: str, tmp_path: Path
) -> None:
    declared = '<?xml version="1.0"?>'
    content = (declared + doctype.decode() + WHOLE.decode().partition("?>")[2].replace("é0", "&a;")).lstrip()
    data = (
        content.encode(encoding) if encoding != "utf-16-le-bom" else b"\xff\xfe" + content.encode("utf-16-le")
    )
    assert "DOCTYPE" in refused(way, tmp_path / "x.xml", data)


@WAYS
@pytest.mark.parametrize("place", [b"<row>", b"</row>", b"</node>", b"</trace-query-result>"])
def test_a_document_type_far_into_the_file_is_refused_too(way: Way, place: bytes, tmp_path: Path) -> None:
    at = WHOLE.rindex(place)
    refused(way, tmp_path / "x.xml", WHOLE[:at] + BOMB + WHOLE[at:])
    refused(way, tmp_path / "x.xml", WHOLE[:at] + b"&b;" + WHOLE[at:])


def test_a_table_of_contents_with_a_document_type_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "toc.xml"
    path.write_bytes(b'<?xml version="1.0"?>' + BOMB + b"<trace-toc>&b;</trace-toc>")
    with pytest.raises(UnreadableReport, match="DOCTYPE") as caught:
        read_toc(path)
    assert caught.value.fix
    path.write_bytes(b"<trace-toc>" + b"<a>" * 100_000)
    with pytest.raises(UnreadableReport, match="in one another"):
        read_toc(path)
    path.write_bytes(b"<trace-toc><run number='1'><info>")
    with pytest.raises(UnreadableReport, match="cut off"):
        read_toc(path)


@WAYS
def test_elements_in_one_another_without_end_are_refused(way: Way, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    deep = b"<string>" * 300 + b"</string>" * 300
    assert "in one another" in refused(way, path, WHOLE.replace(b"<row>", b"<row>" + deep, 1))
    refused(way, path, b"<trace-query-result>" * 200_000)
    refused(way, path, b"<trace-query-result><node>" + b"<a>" * 200_000)
    refused(way, path, WHOLE.replace(b"<row>", b"<row>" * 100_000, 1))


@WAYS
def test_columns_without_end_are_refused(way: Way, tmp_path: Path) -> None:
    column = b"<col><mnemonic>a</mnemonic><engineering-type>uint32</engineering-type></col>"
    content = WHOLE.replace(b"</schema>", column * 5000 + b"</schema>")
    assert "4096 columns" in refused(way, tmp_path / "x.xml", content)


@WAYS
def test_a_row_or_a_value_without_end_is_refused_before_it_is_held(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "MOST_ROW", 100_000)
    monkeypatch.setattr("profkit.profilers.xctrace.careful.MOST_TEXT", 100_000)
    monkeypatch.setattr(builder, "MOST_TEXT", 100_000)
    path = tmp_path / "x.xml"
    begin = WHOLE[: WHOLE.index(b"<row>")]
    refused(way, path, begin + b'<row><start-time id="1" fmt="' + b"x" * 5_000_000)
    refused(
        way,
        path,
        begin + b'<row><start-time id="1">' + b"1" * 5_000_000 + b"</start-time>" + WHOLE[len(begin) :],
    )


@WAYS
@pytest.mark.parametrize("bad", [b"\0", b"\xff", b"&nothing;", b"&#0;", b"<", b"</row></row>"])
def test_what_is_no_xml_is_told_with_its_line(way: Way, bad: bytes, tmp_path: Path) -> None:
    at = WHOLE.rindex(b"</duration>")
    said = refused(way, tmp_path / "x.xml", WHOLE[:at] + bad + WHOLE[at:])
    rows = WHOLE[:at].count(b"</row>")
    assert rows > 1
    assert re.match(rf": no well-formed XML at line \d+ after {rows} whole rows: ", said)


@WAYS
def test_references_to_what_was_not_said_are_refused(way: Way, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    columns = (("process", "process"), ("n", "uint32"))

    def table(row: str) -> bytes:
        return export(node("t", columns, [[process("a", 1), number("uint32", 7)]])).replace(
            b"</row>", f"</row><row>{row}</row>".encode()
        )

    for reference in ("999", "99999999999999999999999", "-1", "x", "", "٣"):
        said = refused(way, path, table(f'<process ref="{reference}"/><uint32 ref="4"/>'))
        assert said == f": damaged: <process> refers to id {reference}, which was not said before"
    circle = '<process id="9" fmt="a"><process ref="9"/></process><uint32 ref="4"/>'
    assert "id 9" in refused(way, path, table(circle))


@WAYS
def test_a_row_of_another_width_is_refused(way: Way, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    for cells, more in ((2, ROWS[5][:2]), (4, [*ROWS[5], number("uint32", 1)]), (0, [])):
        content = export(node("t", COLUMNS, [*ROWS[:5], more, *ROWS[6:]]))
        assert refused(way, path, content) == f": damaged: a row with {cells} cells in a table of 3 columns"


@WAYS
def test_an_id_that_is_said_twice_is_what_was_said_last(way: Way, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    content = export(node("t", (("n", "uint32"),), [[number("uint32", n)] for n in (5, 6, 7, 5, 6)]))
    path.write_bytes(content.replace(b'id="3"', b'id="2"'))
    assert [row for table in way(path) for row in table.rows(["n"])] == [(5,), (6,), (7,), (5,), (7,)]


@WAYS
@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be-bom", "latin-1", "utf-8-sig"])
def test_other_encodings_are_read(way: Way, encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    path.write_bytes(WHOLE)
    plain = taken(way, path)
    declared = "latin-1" if encoding == "latin-1" else "utf-16" if "16" in encoding else "utf-8"
    declared = "iso-8859-1" if declared == "latin-1" else declared
    content = WHOLE.decode().replace('version="1.0"', f'version="1.0" encoding="{declared}"')
    data = (
        b"\xfe\xff" + content.encode("utf-16-be") if encoding == "utf-16-be-bom" else content.encode(encoding)
    )
    path.write_bytes(data)
    assert taken(way, path) == plain


@WAYS
@pytest.mark.parametrize(
    "content", [b"", b"   ", b"hello", b"\0" * 100, b"<html/>", b"<trace-toc/>", b"{}", EMPTY[:40]]
)
def test_what_is_no_export_is_refused(way: Way, content: bytes, tmp_path: Path) -> None:
    refused(way, tmp_path / "x.xml", content)


def test_a_file_that_is_not_there_and_one_that_may_not_be_read(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReport, match="cannot be read"):
        list(tables(tmp_path / "nowhere.xml"))


def test_what_is_hostile_is_refused_soon(tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    begun = clock.process_time()
    first = b'<row><start-time id="1" fmt="0">0</start-time><process id="2" fmt="a (1)"/><sentinel/></row>'
    unknown = b'<row><start-time ref="%d"/><process ref="%d"/><sentinel/></row>'
    many = b"".join(unknown % (n, n) for n in range(5, 20_000))
    refused(tables, path, WHOLE[: WHOLE.index(b"<row>")] + first + many)
    unmatched = b"<row>" + b"<start-time " * 50_000
    refused(tables, path, WHOLE[: WHOLE.index(b"<row>")] + unmatched)
    almost = Spec("formatted-label", parts=tuple(text("string", f"{n}") for n in range(3000)))
    content = export(node("t", (("a", "formatted-label"), ("b", "uint32")), [[almost, time(1)]] * 3))
    path.write_bytes(content)
    assert len([row for table in tables(path) for row in table.rows(["a"])]) == 3
    assert clock.process_time() - begun < 5
