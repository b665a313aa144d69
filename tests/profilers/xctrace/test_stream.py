"""Tables of exports: what each cell is, whatever the version that wrote it; and the quick way is the careful one."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.xctrace import definitions, fast_columns, quick, stream
from profkit.profilers.xctrace.stream import tables, tables_carefully
from profkit.profilers.xctrace.table import Table
from profkit.profilers.xctrace.values import Backtrace, Binary, Frame, Process, Thread
from tests.xctrace_tables import (
    COUNTER_COLUMNS,
    COUNTERS,
    EMPTY,
    Numbering,
    Spec,
    counter_rows,
    duration,
    export,
    grow,
    label,
    node,
    number,
    process,
    text,
    thread,
    time,
)

WAYS = pytest.mark.parametrize("way", [tables, tables_carefully], ids=["quick", "careful"])
Way = Callable[[Path], "object"]
GPU = (
    ("start", "start-time"),
    ("duration", "duration"),
    ("process", "process"),
    ("label", "formatted-label"),
)
HOST, OTHER = process("host", 17), process("Window (Server)", 420)


def written(tmp_path: Path, *nodes: str) -> Path:
    path = tmp_path / "any name.xml"
    path.write_bytes(export(*nodes))
    return path


def read(way: Way, path: Path, *wanted: str) -> list[tuple[object, ...]]:
    return [row for table in way(path) for row in table.rows(wanted)]  # type: ignore[attr-defined]


def everything(way: Way, path: Path, *more: str) -> object:
    """All that can be wanted of a file, or that it cannot be read."""
    try:
        found = []
        for table in way(path):  # type: ignore[attr-defined]
            names = [column.mnemonic for column in table.columns]
            wanted = (*names, *(f"{name}/@fmt" for name in names), *more, "there-is-no-such-column")
            found.append((table.schema, table.columns, table.run, table.position, list(table.rows(wanted))))
    except UnreadableReport:
        return "refused"  # where two things are wrong, the ways may differ in which they meet first
    return found


@pytest.fixture
def no_fallback(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("not read the quick way")

    monkeypatch.setattr(stream._Quickly, "_skipped", refuse)


@WAYS
def test_references_sentinels_and_what_is_first_said_in_another_cell(way: Way, tmp_path: Path) -> None:
    rows = [
        [time(5), duration(1500), None, label(text("string", "by "), HOST)],
        [time(9), duration(1500), HOST, label(text("string", "by "), HOST)],
        [time(9), duration(5), OTHER, None],
    ]
    path = written(tmp_path, node("metal-gpu-intervals", GPU, rows))
    found = read(way, path, "start", "process", "duration", "label", "gone", "duration/@fmt")
    assert found == [
        (5, None, 1500, "by  host (17)", None, "1.50 µs"),
        (9, Process("host", 17), 1500, "by  host (17)", None, "1.50 µs"),
        (9, Process("Window (Server)", 420), 5, None, None, "0.01 µs"),
    ]


@WAYS
def test_equal_processes_and_threads_are_one_object(way: Way, tmp_path: Path) -> None:
    columns = (("thread", "thread"), ("process", "process"))
    path = written(tmp_path, node("t", columns, [[thread("Main Thread", 18, HOST), HOST]] * 3))
    found = read(way, path, "thread", "process")
    assert found[0] == (Thread("Main Thread", 18, Process("host", 17)), Process("host", 17))
    assert all(row[0] is found[0][0] and row[1] is found[0][1] for row in found)
    assert found[0][0].process is found[0][1]  # type: ignore[attr-defined]


def test_a_thread_without_a_name_and_those_of_other_versions() -> None:
    from profkit.profilers.xctrace.cells import Decoder

    def named(shown: str) -> object:
        return Decoder().cell("thread", {"fmt": shown}, "").value

    owner = Process("TestApp", 1001)
    assert named("Main Thread (0x1e9000) (TestApp, pid: 1001)") == Thread("Main Thread", None, owner)
    assert named("Main Thread  0xd43ff (TestApp, pid: 1001)") == Thread("Main Thread", None, owner)
    assert named("0x16df19 (TestApp, pid: 1001)") == Thread("", None, owner)
    assert named("a (b) 0x1 (c (d), pid: 2)") == Thread("a (b)", None, Process("c (d)", 2))


@WAYS
def test_a_stack_is_its_frames_innermost_first(way: Way, tmp_path: Path) -> None:
    binary = Spec(
        "binary", attributes=(("name", "a.out"), ("UUID", "F3"), ("load-addr", "0x1000"), ("path", "/tmp/a"))
    )
    source = Spec("source", parts=(Spec("path", "/tmp/t.c"),), attributes=(("line", "7"),))
    inner = Spec("frame", parts=(binary, source), attributes=(("name", "f<int>()"), ("addr", "0x1010")))
    outer = Spec("frame", attributes=(("name", "0x99"), ("addr", "0x99")))
    stacks = [[Spec("backtrace", parts=(inner, outer))], [None], [Spec("backtrace", parts=(outer, inner))]]
    found = read(way, written(tmp_path, node("time-profile", (("stack", "backtrace"),), stacks)), "stack")
    first = Frame("f<int>()", 0x1010, Binary("a.out", "/tmp/a", "F3", None, 0x1000), "/tmp/t.c", 7)
    assert found == [
        (Backtrace((first, Frame("0x99", 0x99))),),
        (None,),
        (Backtrace((Frame("0x99", 0x99), first)),),
    ]


@WAYS
def test_a_cell_of_any_type_is_told_by_its_own_tag(way: Way, tmp_path: Path) -> None:
    rows = [[number("weight", 7, "7 ns")], [number("pmc-event", 9, "9")], [text("string", "9")], [None]]
    path = written(tmp_path, node("counters-profile", (("weight", "any"),), rows))
    assert read(way, path, "weight", "weight/@fmt") == [(7, "7 ns"), (9, "9"), ("9", "9"), (None, None)]


@WAYS
def test_numbers_that_are_none_are_no_values_and_counts_stay_whole(way: Way, tmp_path: Path) -> None:
    columns = (("a", "percent"), ("b", "uint64"), ("c", "pmc-events"), ("d", "made-up-in-2030"))
    rows = [
        [
            number("percent", value),
            number("uint64", 2**64 - 1),
            Spec("pmc-events", "40 4770", "(40), (4,770)"),
            text("made-up-in-2030", "5"),
        ]
        for value in (0.5, "nan", "n/a", "inf", "", "1e-3")
    ]  # type: ignore[arg-type]
    found = read(way, written(tmp_path, node("t", columns, rows)), "a", "b", "c", "d")
    assert [row[0] for row in found] == [0.5, None, None, None, None, 0.001]
    assert found[0][1:] == (2**64 - 1, (40, 4770), "5")


@WAYS
@pytest.mark.parametrize("value", ["9" * 5000, "1_0", "12 34", "zwölf", "0x10", "٣", "1" * 21])
def test_what_is_no_number_where_one_belongs_is_refused(way: Way, tmp_path: Path, value: str) -> None:
    path = written(
        tmp_path, node("t", (("start", "start-time"),), [[time(5)], [Spec("start-time", value, "x")]])
    )
    with pytest.raises(UnreadableReport, match=r"holds (whole )?numbers"):
        read(way, path, "start")


@WAYS
def test_names_are_given_back_as_they_were_meant(way: Way, tmp_path: Path) -> None:
    names = ["<script>&\"'", "a > b", "&lt;", "ctrl\x85é😀", " ", "", "]]>", "tab\there"]
    rows = [[text("string", name), HOST] for name in names]
    path = written(tmp_path, node("t", (("name", "string"), ("process", "process")), rows))
    assert [row[0] for row in read(way, path, "name")] == names


@WAYS
def test_several_tables_of_one_file_and_a_later_one_without_schema(way: Way, tmp_path: Path) -> None:
    numbering = Numbering()
    first = node("tick", (("start", "start-time"),), [[time(1)]], numbering=numbering, position=4)
    second = node(None, (), [[time(1)], [time(3)]], numbering=numbering, position=9)
    third = node(
        "other",
        (("n", "uint32"), ("start", "start-time")),
        [[number("uint32", 8), time(3)]],
        numbering=numbering,
    )
    nothing = node("empty", (("n", "uint32"),), [], run=3, position=7)
    found = [
        (table.schema, table.run, table.position, list(table.rows(["start"])))
        for table in way(written(tmp_path, first, second, third, nothing))  # type: ignore[attr-defined]
    ]
    assert found == [
        ("tick", 1, 4, [(1,)]),
        ("tick", 1, 9, [(1,), (3,)]),
        ("other", 1, 1, [(3,)]),
        ("empty", 3, 7, []),
    ]


@WAYS
def test_a_later_table_without_schema_that_is_another_is_refused(way: Way, tmp_path: Path) -> None:
    first = node("tick", (("start", "start-time"), ("n", "uint32")), [[time(1), number("uint32", 1)]])
    for row in ([number("uint32", 1), time(1)], [time(1)]):
        path = written(tmp_path, first, node(None, (), [row]))
        with pytest.raises(UnreadableReport, match=r"without a schema|a row with 1 cells in a table of 2"):
            read(way, path, "start")
    alone = written(tmp_path, node(None, (), [[time(1)]]))
    with pytest.raises(UnreadableReport, match="no schema"):
        read(way, alone, "start")


@WAYS
def test_rows_that_nobody_took_are_passed_over(way: Way, tmp_path: Path) -> None:
    nodes = [
        node(f"t{n}", (("start", "start-time"),), [[time(n)], [time(n + 10)]]) for n in range(0, 300, 100)
    ]
    # one numbering each: a later table may begin to count again
    taken = []
    for table in way(written(tmp_path, *nodes)):  # type: ignore[attr-defined]
        if table.schema == "t100":
            taken.append(next(table.rows(["start"])))
        elif table.schema == "t200":
            taken += table.rows(["start"])
    assert taken == [(100,), (200,), (210,)]


@WAYS
def test_an_export_of_nothing_has_no_table(way: Way, tmp_path: Path) -> None:
    path = tmp_path / "x.xml"
    for content in (
        EMPTY,
        b"<trace-query-result/>",
        b"<trace-query-result><node xpath='x'/></trace-query-result>",
    ):
        path.write_bytes(content)
        assert everything(way, path) == []


@pytest.mark.parametrize("hidden", ["<!-- %s -->", "<![CDATA[%s]]>", "<?x %s?>"])
@pytest.mark.parametrize("chunk", [1 << 20, 400])
def test_rows_in_comments_are_none(
    hidden: str, chunk: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "CHUNK", chunk)
    path = written(tmp_path, node("t", (("start", "start-time"),), [[time(n)] for n in range(40)]))
    whole = path.read_text()
    row = '<row><start-time id="990" fmt="x">990</start-time></row>\n'
    for at in (whole.index("<row>"), whole.rindex("<row>"), whole.rindex("</node>")):
        path.write_text(whole[:at] + hidden % (row * 30) + whole[at:])
        assert read(tables, path, "start") == [(n,) for n in range(40)]


def test_a_text_that_looks_like_an_id_is_none(tmp_path: Path) -> None:
    said = Spec("string", 'not id="3" here', "x")
    rows = [[said, label(number("uint32", 8)), None], [text("string", "a"), None, number("uint32", 8)]]
    columns = (("a", "string"), ("l", "formatted-label"), ("n", "uint32"))
    path = written(tmp_path, node("t", columns, rows))
    assert b'id="3" here' in path.read_bytes()
    assert b'<uint32 ref="3"/>' in path.read_bytes()
    assert read(tables, path, "n") == [(None,), (8,)]


@pytest.mark.usefixtures("no_fallback")
def test_indented_exports_and_those_with_windows_line_ends_are_read_the_quick_way(tmp_path: Path) -> None:
    rows = [[time(n), duration(n % 3), HOST, label(OTHER)] for n in range(50)]
    plain = written(tmp_path, node("t", GPU, rows))
    as_it_is = everything(tables, plain)
    for indent, end in (("\n        ", "\n"), ("", "\r\n"), ("\n\t", "\r\n")):
        path = tmp_path / "other.xml"
        path.write_bytes(export(node("t", GPU, rows, indent=indent)).replace(b"\n", end.encode()))
        assert everything(tables, path) == as_it_is


@pytest.mark.usefixtures("no_fallback")
def test_values_that_were_forgotten_are_found_again_in_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (definitions, fast_columns):
        monkeypatch.setattr(module, "KEPT", 40)
    monkeypatch.setattr(definitions, "BLOCK", 900)
    monkeypatch.setattr(quick, "CHUNK", 3000)
    chance = random.Random(3)
    rows = [
        [
            time(n),
            duration(chance.randrange(400)),
            process(f"p{chance.randrange(90)}", 5),
            label(text("string", f"{n % 70}"), duration(n)),
        ]
        for n in range(1500)
    ]
    path = written(tmp_path, node("t", GPU, rows))
    found = read(tables, path, "start", "duration", "duration/@fmt", "process", "label", "label/*")
    assert [(row[0], row[1], row[3].name, row[5][1]) for row in found] == [  # type: ignore[attr-defined, index]
        (int(s.text), int(d.text), p.fmt.rpartition(" ")[0], n) for n, (s, d, p, _) in enumerate(rows)
    ]


@pytest.mark.usefixtures("no_fallback")
def test_a_table_of_counters_is_read_the_quick_way(tmp_path: Path) -> None:
    rows = list(counter_rows(200))
    path = written(tmp_path, node("metal-gpu-counter-intervals", COUNTER_COLUMNS, rows))
    found = read(tables, path, "name", "percent-value", "value", "percent-value/@fmt", "duration")
    assert found == [(r[3].text, float(r[6].text), float(r[5].text), r[6].fmt, int(r[1].text)) for r in rows]  # type: ignore[union-attr]
    assert len(found) == 200 * len(COUNTERS)


def test_recorded_tables_are_read_the_quick_way_and_as_the_careful_one_does(
    fixtures: Path, no_fallback: None
) -> None:
    count = 0
    for path in sorted((fixtures / "xctrace").glob("*/*.xml")):
        if path.name != "toc.xml":
            for more in ((), ("stack/*", "process/*", "event-label/*")):
                found = everything(tables, path, *more)
                assert found == everything(tables_carefully, path, *more)
            assert isinstance(found, list)
            count += sum(len(one[4]) for one in found)
    assert count == 8252


def test_a_grown_table_has_the_recorded_rows_again_and_again(fixtures: Path, tmp_path: Path) -> None:
    source = fixtures / "xctrace" / "m1-metal-system-trace" / "metal-gpu-state-intervals.xml"
    rows = grow(source, tmp_path / "grown.xml", 1_500_000)
    wanted = ("duration", "state", "label", "gpu")
    recorded, grown = read(tables, source, *wanted), read(tables, tmp_path / "grown.xml", *wanted)
    assert len(grown) == rows >= 3 * len(recorded)
    assert grown == recorded * (rows // len(recorded))
    starts = [row[0] for row in read(tables, tmp_path / "grown.xml", "start")]
    assert starts == sorted(starts)  # type: ignore[type-var]


def _at_random(chance: random.Random) -> bytes:
    """An export as xctrace writes it, or nearly."""
    tags = [
        "start-time",
        "duration",
        "uint32",
        "string",
        "process",
        "thread",
        "formatted-label",
        "percent",
        "any",
        "new-tag",
    ]
    columns = [(f"c{n}", chance.choice(tags)) for n in range(chance.randrange(1, 6))]

    def cell(tag: str) -> Spec | None:
        if chance.random() < 0.15:
            return None
        small = chance.randrange(12)
        if tag == "any":
            tag = chance.choice(tags[:-2])
        if tag in ("start-time", "duration", "uint32"):
            return number(tag, small, f"{small} x")
        if tag == "percent":
            return number(tag, small / 8, f"{small / 8} %")
        if tag == "process":
            return process(f"p&{small}", small)
        if tag == "thread":
            return thread("T", small, process(f"p&{small % 3}", small % 3))
        if tag == "formatted-label":
            return label(*(cell(chance.choice(tags[:6])) for _ in range(chance.randrange(3))))
        return text(tag, chance.choice(["", " ", "a", "<b>", "é", "x" * 40, "1"]))

    nodes = []
    numbering = Numbering()
    for _ in range(chance.randrange(1, 3)):
        rows = [[cell(tag) for _, tag in columns] for _ in range(chance.randrange(40))]
        if chance.random() < 0.3:
            numbering = Numbering()
        nodes.append(node("t", columns, rows, numbering=numbering, indent=chance.choice(["", "", "\n  "])))
    made = export(*nodes)
    if chance.random() < 0.4:  # damage it
        for _ in range(chance.randrange(1, 3)):
            at = chance.randrange(len(made))
            strange = [
                b"<!-- <row> -->",
                b"<![CDATA[</row>]]>",
                b"<?x?>",
                b"<row/>",
                b"<row>",
                b"</row>",
                b"&lt;",
            ]
            strange += [b"&x;", b'"', b"<", b"\0", b' id="3"', b"<a>", b"\r\n", b"<sentinel/>", b"9"]
            made = made[:at] + chance.choice([b"", *strange]) + made[at + chance.choice([0, 0, 1, 30]) :]
    return made


@pytest.mark.parametrize("seed", range(6))
def test_the_quick_way_gives_what_the_careful_way_does(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quick, "CHUNK", 700)
    monkeypatch.setattr(definitions, "BLOCK", 200)
    chance = random.Random(seed)
    path = tmp_path / "x.xml"
    whole = 0
    for _ in range(60):
        path.write_bytes(_at_random(chance))
        found, expected = everything(tables, path, "c0/*"), everything(tables_carefully, path, "c0/*")
        assert found == expected, path.read_text(errors="replace")
        whole += isinstance(found, list)
    assert 25 < whole < 60


def test_the_attributes_of_a_table_are_those_of_its_entry_in_the_table_of_contents(fixtures: Path) -> None:
    from profkit.profilers.xctrace.toc import read_toc

    folder = fixtures / "xctrace" / "m1-metal-system-trace"
    runs = read_toc(folder / "toc.xml")
    table: Table = next(tables(folder / "time-profile.xml", runs))
    assert (table.run, table.position, table.attributes["target-pid"]) == (1, 85, "SINGLE")
    other = next(tables(fixtures / "xctrace" / "xcode27" / "time-sample.xml", runs))
    assert other.attributes == {}  # of run 3, which this table of contents does not have
