"""An nsys export is scrubbed: no planted secret is left in its bytes, and what was measured is what it was."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.nsys.scrub import scrub
from profkit.profilers.redact import Redactor, RemovedText
from tests.conftest import ROOT

SECRET = "Pl4ntedS3cret"
UUID = "7d1b1c9e-1111-2222-3333-444455556666"
HEX = SECRET.encode().hex()
RECORDED = sorted((ROOT / "tests" / "data" / "cuda").rglob("*.sqlite"))

# A small export by the grammar of nsys 2025, with a column or two of each kind.
TABLES: dict[str, tuple[str, list[tuple[object, ...]]]] = {
    "StringIds": ("id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL", []),
    "ThreadNames": ("nameId INTEGER NOT NULL, -- REFERENCES StringIds(id)\n globalTid INTEGER", [(50, 1)]),
    "ProcessStreams": ("globalPid INTEGER, filenameId INTEGER, contentId INTEGER", [(1, 51, 52)]),
    "ANALYSIS_FILE": (
        "id INTEGER, filename TEXT, contentId INTEGER, globalPid INTEGER",
        [(1, f"/x/{SECRET}.log", 52, 1)],
    ),
    "TARGET_INFO_SYSTEM_ENV": (
        "globalVid INTEGER, devStateName TEXT, name TEXT, nameEnum INTEGER, value TEXT",
        [
            (1, "Local (CLI)", "CpuCores", 1, "16"),
            (1, "Local (CLI)", "Hostname", 619, f"host-{SECRET}"),
            (1, "Local (CLI)", "DeviceEnvironment", 610, f"HF_TOKEN={SECRET};HOME=/home/{SECRET};A={SECRET}=b"),
            (1, "Local (CLI)", "SomethingNew", 999, SECRET),
            (1, f"ann@{SECRET}", "IsX86BasedDevice", 506, "1"),
            (1, "Local (CLI)", "GpuInfo", 897, f'{{"Uuid":"{UUID}","p":"/d/{SECRET}/x"}}'),
        ],
    ),
    "TARGET_INFO_NIC_INFO": ("GUID TEXT, name TEXT", [("0xaabbccdd", "mlx5_0"), (SECRET, "mlx5_1")]),
    "TARGET_INFO_GPU": (
        "id INTEGER, name TEXT, uuid TEXT, busLocation TEXT, smCount INTEGER",
        [(0, "NVIDIA H200", UUID, "0000:00:06.0", 132)],
    ),
    "META_DATA_CAPTURE": (
        "name TEXT, value TEXT",
        [
            ("PROCESS_0:COMMAND", f"/opt/{SECRET}/python"),
            ("PROCESS_0:ARGUMENT_1", f"--key={SECRET}"),
            ("PROCESS_0:WORKING_DIR", f"/home/{SECRET}"),
            ("PROCESS_0:ENVIRONMENT_VARIABLE", f'API_KEY="{SECRET}"'),
            ("PROCESS_0:USER_NAME", SECRET),
            ("PROCESS_0:COLLECT_NVTX_TRACE", "true"),
            ("CAPTURE_EVENT_TYPE", "Cuda"),
            ("DEVICE_ID", SECRET),
            ("NEW_THING", f"{SECRET.lower()} 1"),
        ],
    ),
    "META_DATA_EXPORT": (
        "name TEXT, value TEXT",
        [
            ("EXPORT_SCHEMA_VERSION", "3.20.3"),
            ("EXPORT_HOST", SECRET),
            ("EXPORT_PARAM_INPUT_FILE", f"/{SECRET}/a.nsys-rep"),
        ],
    ),
    "EXPORT_META_DATA": (  # as it was called up to schema 3.1
        "name TEXT, value TEXT",
        [("EXPORT_PRODUCT_VERSION", "2022.4.1.21"), ("EXPORT_PARAM_INPUT_FILE", f"/{SECRET}/a.nsys-rep")],
    ),
    "PROCESSES": ("globalPid INTEGER, pid INTEGER, name TEXT", [(1, 77, f"{SECRET}-daemon")]),
    "DIAGNOSTIC_EVENT": (
        "timestamp INTEGER, severity INTEGER, text TEXT",
        [
            (1, 1, "Number of CUDA events collected: \t288."),
            (2, 1, f"Process was launched by the profiler, see /tmp/{SECRET}/pid_1_stdout.log and stderr.log"),
            (3, 2, f"{SECRET} was seen"),
        ],
    ),
    "NVTX_EVENTS": (
        "start INTEGER, eventType INTEGER, text TEXT, textId INTEGER, jsonText TEXT, binaryData TEXT",
        [
            (1, 59, "forward", None, None, None),
            (2, 59, None, 12, None, None),
            (3, 59, f"load /home/{SECRET}/data.bin with {SECRET}", None, f'{{"k":"/home/{SECRET}/y.z"}}', HEX),
        ],
    ),
    "CUPTI_ACTIVITY_KIND_KERNEL": (
        "start INT, end INT, demangledName INTEGER, -- REFERENCES StringIds(id)\n shortName INTEGER, gridX INT",
        [(10, 20, 10, 11, 132), (30, 45, 10, 11, 132)],
    ),
    "CUPTI_ACTIVITY_KIND_RUNTIME": ("start INTEGER, end INTEGER, nameId INTEGER", [(1, 2, 13)]),
    "SOMEBODYS_OWN": ("note TEXT, filePath TEXT", [(SECRET, f"/{SECRET}")]),
}  # fmt: skip
STRINGS = {
    10: "void silu_mul<float>(float*)",
    11: "silu_mul",
    12: "backward",
    13: "cudaLaunchKernel_v7000",
    50: f"{SECRET}-thread",
    51: f"/tmp/{SECRET}/stdout.log",
    52: f"printed {SECRET}",
    60: f"HF_TOKEN={SECRET}\n" * 40,
}


@pytest.fixture
def export(tmp_path: Path) -> Path:
    path = tmp_path / "out.sqlite"
    with closing(sqlite3.connect(path)) as base:
        for name, (columns, rows) in TABLES.items():
            base.execute(f"CREATE TABLE {name} ({columns})")
            for row in rows:
                base.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
        base.executemany("INSERT INTO StringIds VALUES (?, ?)", STRINGS.items())
        base.execute("CREATE INDEX i ON META_DATA_CAPTURE (value)")
        base.execute("CREATE TABLE gone (value TEXT)")
        base.executemany("INSERT INTO gone VALUES (?)", [(SECRET * 100,)] * 50)
        base.execute("DROP TABLE gone")  # its pages are free, and still full
        base.execute("ANALYZE")
        base.commit()
    return path


def cleaned(path: Path) -> tuple[Path, dict[str, RemovedText]]:
    redactor = Redactor()
    output = path.with_name("clean.sqlite")
    scrub(path, output, redactor)
    return output, {one.kind: one for one in redactor.removed()}


def rows(path: Path, query: str) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as base:
        return base.execute(query).fetchall()


def test_the_export_itself_is_full_of_it(export: Path) -> None:
    """Guards the tests below: with nothing planted, nothing would be found."""
    assert export.read_bytes().count(SECRET.encode()) > 60


def test_no_planted_secret_is_left_in_any_byte(export: Path) -> None:
    output, _ = cleaned(export)
    raw = output.read_bytes().lower()
    for form in (SECRET, SECRET.encode().hex(), "7d1b1c9e", "aabbccdd"):
        assert form.lower().encode() not in raw


def test_what_was_measured_and_what_was_named_stays(export: Path) -> None:
    output, _ = cleaned(export)
    for query in (
        "SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL",
        "SELECT k.start, s.value FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.demangledName",
        "SELECT r.start, s.value FROM CUPTI_ACTIVITY_KIND_RUNTIME r JOIN StringIds s ON s.id = r.nameId",
        "SELECT n.text, s.value FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = n.textId WHERE start < 3",
        "SELECT name, sql FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name",
        "SELECT * FROM META_DATA_EXPORT WHERE name = 'EXPORT_SCHEMA_VERSION'",
        "SELECT * FROM EXPORT_META_DATA WHERE name = 'EXPORT_PRODUCT_VERSION'",
        "SELECT * FROM META_DATA_CAPTURE WHERE value IN ('true', 'Cuda')",
        "SELECT * FROM TARGET_INFO_SYSTEM_ENV WHERE name = 'CpuCores'",
        "SELECT name, smCount FROM TARGET_INFO_GPU",
        "SELECT * FROM DIAGNOSTIC_EVENT WHERE timestamp = 1",
        "SELECT pid FROM PROCESSES",
    ):
        assert rows(output, query) == rows(export, query), query
    assert rows(output, "PRAGMA integrity_check") == [("ok",)]


def test_a_range_keeps_what_is_not_private_in_its_name(export: Path) -> None:
    output, _ = cleaned(export)
    assert rows(output, "SELECT text FROM NVTX_EVENTS WHERE start = 3") == [
        ("load /folder-1/data.bin with <token>",)
    ]


def test_the_list_says_how_much_of_what_was_there(export: Path) -> None:
    _, removed = cleaned(export)
    assert removed["environment variables"].count >= 3 + 40 + 1
    for kind in (
        "command line",
        "host name",
        "user name",
        "paths",
        "names of processes and threads",
        "identities of devices",
    ):
        assert removed[kind].count >= 1, kind
    assert SECRET not in str(removed)


def test_the_source_is_not_touched_and_nothing_else_is_left(export: Path) -> None:
    before = export.read_bytes()
    cleaned(export)
    assert export.read_bytes() == before
    assert sorted(path.name for path in export.parent.iterdir()) == ["clean.sqlite", "out.sqlite"]


def test_what_a_write_ahead_log_holds_is_scrubbed_too(export: Path) -> None:
    with closing(sqlite3.connect(export)) as base:
        base.execute("PRAGMA journal_mode = WAL")
        base.execute("PRAGMA wal_autocheckpoint = 0")
        base.execute("INSERT INTO PROCESSES VALUES (2, 78, ?)", (f"{SECRET}-late",))
        base.commit()
        output, _ = cleaned(export)
    assert rows(output, "SELECT count(*) FROM PROCESSES") == [(2,)]
    assert SECRET.encode() not in output.read_bytes()


def test_a_trigger_in_the_file_does_not_run(export: Path) -> None:
    with closing(sqlite3.connect(export)) as base:
        base.execute("CREATE TABLE caught (value TEXT)")
        base.execute(
            "CREATE TRIGGER t BEFORE UPDATE ON META_DATA_CAPTURE BEGIN INSERT INTO caught VALUES (old.value); END"
        )
        base.commit()
    output, _ = cleaned(export)
    assert rows(output, "SELECT count(*) FROM caught") == [(0,)]


@pytest.mark.parametrize(
    "content", [b"SQLite format 3\0" + b"\0" * 200, b"SQLite format 3\0" + b"\x10" * 5000]
)
def test_a_damaged_file_is_refused_and_nothing_is_left(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "out.sqlite"
    path.write_bytes(content)
    with pytest.raises(UnreadableReport, match="cannot be read"):
        cleaned(path)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["out.sqlite"]


def test_columns_and_tables_of_other_versions_are_no_obstacle(tmp_path: Path) -> None:
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as base:
        base.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        base.execute("CREATE TABLE TARGET_INFO_SYSTEM_ENV (nameId INTEGER, valueId INTEGER)")
        base.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT)")
        base.executemany(
            "INSERT INTO StringIds VALUES (?, ?)", [(1, "kernel_a"), (2, "Hostname"), (3, SECRET)]
        )
        base.execute("INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES (2, 3)")
        base.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 2, 1)")
        base.commit()
    output, _ = cleaned(path)
    assert SECRET.encode() not in output.read_bytes()
    assert rows(output, "SELECT value FROM StringIds WHERE id = 1") == [("kernel_a",)]


# Places of a real export that may hold anything, and the tables that keep names and figures of the device.
KEPT = ("ENUM_", "CUPTI_", "NVTX_", "CUDA_", "TARGET_INFO_GPU", "TARGET_INFO_SESSION", "ANALYSIS_DETAILS")
PRIVATE = "name IN ('DeviceEnvironment', 'Hostname', 'TargetInstallDir', 'SystemUID', 'NicInfo')"
SHAPES = (
    "{0}",
    "TOKEN={0}",
    "/home/{0}/x/{0}.log",
    '{{"key": "{0}"}}',
    "see {0} at /srv/{0}/y",
    "{0}@host.example.org",
    "A=1;B={0};C=/opt/{0}",
)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_in_any_private_place_of_a_recorded_export_goes(
    path: Path, shape: str, tmp_path: Path
) -> None:
    copy = tmp_path / "out.sqlite"
    planted = 0
    with closing(sqlite3.connect(copy)) as base:
        with closing(sqlite3.connect(path)) as original:
            original.backup(base)
        for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            if table.startswith(KEPT):
                continue
            for _, column, kind, *_ in base.execute(f"PRAGMA table_info({table})").fetchall():
                if "TEXT" not in kind or column == "name" or table in ("StringIds", "META_DATA_EXPORT"):
                    continue
                where = PRIVATE if table == "TARGET_INFO_SYSTEM_ENV" and column == "value" else "1"
                planted += base.execute(
                    f'UPDATE {table} SET "{column}" = ? WHERE {where}', (shape.format(SECRET),)
                ).rowcount
        base.execute("INSERT INTO StringIds SELECT max(id) + 1, ? FROM StringIds", (shape.format(SECRET),))
        base.commit()
    assert planted > 50
    output, removed = cleaned(copy)
    assert SECRET.encode() not in output.read_bytes()
    assert SECRET not in str(removed)
    kernels = "SELECT * FROM CUPTI_ACTIVITY_KIND_KERNEL"
    if rows(copy, "SELECT 1 FROM sqlite_master WHERE name = 'CUPTI_ACTIVITY_KIND_KERNEL'"):
        assert rows(output, kernels) == rows(path, kernels)


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_text_stays_in_columns_that_are_allowed_by_name_and_in_no_other(path: Path, tmp_path: Path) -> None:
    """Also in columns of numbers, where SQLite takes any text, and in tables and columns of a later version."""
    copy = tmp_path / "out.sqlite"
    kept = {
        ("NVTX_EVENTS", "text"),
        ("NVTX_EVENTS", "jsonText"),
        ("TARGET_INFO_GPU", "chipName"),
        ("StringIds", "value"),
    }
    kept |= {("TARGET_INFO_SYSTEM_ENV", "value"), ("META_DATA_EXPORT", "value")}  # by the name beside it
    kept |= {("TARGET_INFO_GPU", "name"), ("TARGET_INFO_SYSTEM_ENV", "name"), ("NVTX_EVENTS", "binaryData")}
    with closing(sqlite3.connect(copy)) as base:
        with closing(sqlite3.connect(path)) as original:
            original.backup(base)
        for table in ("CUPTI_ACTIVITY_KIND_LATER", "NVTX_LATER", "GENERIC_EVENT_SOURCES", "GPU_LATER"):
            base.execute(f"CREATE TABLE {table} (start INTEGER, data TEXT, comment, note BLOB)")
            base.execute(f"INSERT INTO {table} VALUES (1, 'a', 'b', 'c')")
        planted = 0
        for (table,) in base.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
            for _, column, *_, key in base.execute(f"PRAGMA table_info({table})").fetchall():
                named = table.startswith(("META_", "ENUM_")) and column in ("name", "label")
                if (table, column) not in kept and not named and not key:
                    planted += base.execute(f'UPDATE {table} SET "{column}" = ?', (f"of {SECRET}",)).rowcount
        base.commit()
    assert planted > 200
    output, _ = cleaned(copy)
    assert SECRET.encode() not in output.read_bytes()


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_a_recorded_export_keeps_every_text_of_its_own(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "in.sqlite"
    copy.write_bytes(path.read_bytes())
    output, _ = cleaned(copy)
    for table, column in (
        ("TARGET_INFO_GPU", "name"),
        ("TARGET_INFO_GPU", "busLocation"),
        ("ENUM_CUDA_MEM_KIND", "label"),
    ):
        if rows(copy, f"SELECT 1 FROM sqlite_master WHERE name = '{table}'"):
            assert rows(copy, f"SELECT {column} FROM {table}") == rows(
                output, f"SELECT {column} FROM {table}"
            )
    texts = "SELECT value FROM StringIds WHERE value != ''"
    assert rows(copy, texts) == rows(output, texts)
