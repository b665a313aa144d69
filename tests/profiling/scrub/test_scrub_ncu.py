"""An .ncu-rep is scrubbed: no planted secret is left in its bytes, and a reader finds the same values."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.ncu.rep import read_ncu_rep
from profkit.profilers.ncu.scrub import scrub
from profkit.profilers.redact import Redactor, RemovedText
from tests.conftest import ROOT
from tests.profilers.ncu.writer import (
    KernelResult,
    Uint32,
    Value,
    block,
    lump,
    number,
    nvtx_state,
    parts,
    report,
    session,
)

SECRET = "Pl4ntedS3cret"
HOME = f"/home/{SECRET}"
RECORDED = sorted((ROOT / "tests" / "data" / "cuda").rglob("*.ncu-rep"))
ENVIRONMENT = (
    f"HF_TOKEN=tok-{SECRET}-x\0MY_NAME=ann-{SECRET}-bell\0LD_LIBRARY_PATH={HOME}/lib:/opt/{SECRET}/lib"
)

EXECUTED = lump(3, f"--key {SECRET}") + lump(4, ENVIRONMENT)

# What a line table of a cubin holds: folders, and files without them, between bytes that mean something else.
CUBIN = (
    b"\x7fELF\x02\x01\x01\x00"
    + b"\x01\x02" * 9
    + f"{HOME}/my net\0{HOME}/inc\0mlp.cu\0".encode()
    + b"\x00\xff" * 30
)
PTX = f'.version 9.0\n.file 1 "{HOME}/my net/mlp.cu"\n// -I{HOME}/inc -DKEY=tok-{SECRET}-x\n.entry k() {{ ret; }}\n'
SOURCE = (
    number(1, 1)
    + lump(2, f"// {HOME}/my net/mlp.cu:3")
    + lump(3, PTX)
    + lump(4, CUBIN)
    + lump(8, lump(1, lump(1, f"{HOME}/my net/mlp.cu") + lump(2, f'#include "{HOME}/inc/x.h"\n'))
           + lump(1, lump(1, "/usr/local/cuda-13.0/targets/x86_64-linux/include/cuda_fp16.hpp")))
)  # fmt: skip
DETAILS = session(
    command=f"/opt/{SECRET}/ncu --clock-control none --cache-control all -o {HOME}/out --metrics "
    f"sm__warps_active.avg.pct_of_peak_sustained_active python3 {HOME}/train.py --key=val-{SECRET}-y",
    more=(
        lump(3, lump(1, "Linux") + lump(5, f"host-{SECRET}") + lump(7, lump(1, "10.9.8.7")))
        + lump(4, lump(1, "Linux") + lump(5, f"host-{SECRET}"))
        + lump(5, lump(1, lump(1, "uuid") + lump(2, "GPU-7d1b1c9e-1111-2222-3333-444455556666")))
        + lump(7, f"seen by {SECRET}")
        + lump(9, lump(1, f"{HOME}/bin/python3") + lump(2, f"{HOME}/my net") + EXECUTED)
        + lump(60, f"a field of tomorrow with {SECRET}")
    ),
)  # fmt: skip
VALUES: dict[str, Value] = {
    "gpu__time_duration.sum": 12800.0,
    "sm__warps_active.avg.pct_of_peak_sustained_active": 82.5,
    "launch__registers_per_thread": Uint32(32),
}


@pytest.fixture
def planted(tmp_path: Path) -> Path:
    stack = lump(1, number(1, 3) + lump(2, f"{HOME}/train.py") + lump(3, "forward"))
    kernel = KernelResult(
        "void silu_mul<float>(float *)",
        VALUES,
        mangled="_Z8silu_mulIfEvPf",
        nvtx=nvtx_state([("forward", "profkit"), (f"load {HOME}/data.bin", None)]),
        more=lump(12, f"about host-{SECRET}")
        + lump(19, lump(5, lump(6, f"{HOME}/my net/mlp.cu") + lump(7, "https://docs.nvidia.com/a/b.html")))
        + lump(32, stack),
    )
    path = tmp_path / "out.ncu-rep"
    path.write_bytes(
        report(block(details=DETAILS), block([kernel], sources=[SOURCE], process=(1, f"{HOME}/bin/p")))
    )
    return path


def cleaned(path: Path, output: Path) -> dict[str, RemovedText]:
    redactor = Redactor()
    scrub(path, output, redactor)
    return {one.kind: one for one in redactor.removed()}


def test_no_planted_secret_is_left_in_any_byte(planted: Path, tmp_path: Path) -> None:
    assert planted.read_bytes().count(SECRET.encode()) > 25
    cleaned(planted, tmp_path / "clean.ncu-rep")
    raw = (tmp_path / "clean.ncu-rep").read_bytes()
    for form in (SECRET, "7d1b1c9e", "10.9.8.7"):
        assert form.encode() not in raw


def test_a_reader_finds_the_same_kernels_and_values(planted: Path, tmp_path: Path) -> None:
    cleaned(planted, tmp_path / "clean.ncu-rep")
    before, after = read_ncu_rep(planted), read_ncu_rep(tmp_path / "clean.ncu-rep")
    assert (after.counters, after.gpus, after.version) == (before.counters, before.gpus, before.version)
    for found in (before, after):
        assert found.trace is not None
    [was], [now] = (found.trace.kernels for found in (before, after) if found.trace is not None)
    assert replace(now, ranges=()) == replace(was, ranges=())
    assert now.ranges[-1] == "forward"
    for fact in ("driver", "CUDA", "clocks", "cache control", "replay", "metrics", "replay passes"):
        assert after.facts.get(fact) == before.facts.get(fact), fact


def test_the_records_keep_their_lengths_and_the_sizes_in_the_headers_hold(
    planted: Path, tmp_path: Path
) -> None:
    cleaned(planted, tmp_path / "clean.ncu-rep")
    before, after = planted.read_bytes(), (tmp_path / "clean.ncu-rep").read_bytes()
    sizes = [
        [(part.kind, part.size) for part in parts(data) if part.kind in ("kernel", "source")]
        for data in (before, after)
    ]
    assert sizes[0] == sizes[1] != []


def test_a_source_file_and_its_line_table_still_name_the_same_folder(planted: Path, tmp_path: Path) -> None:
    cleaned(planted, tmp_path / "clean.ncu-rep")
    raw = (tmp_path / "clean.ncu-rep").read_bytes()
    named = raw[: raw.index(b"/mlp.cu\x12")].rpartition(b"/xxxx/")[2]
    folder = b"/xxxx/" + named
    assert len(folder) == len(f"{HOME}/my net")
    assert folder + b"\0" in raw  # in the line table
    assert b'.file 1 "' + folder + b"/mlp.cu" in raw  # in the PTX
    assert b"cuda-13.0/targets/x86_64-linux/include/cuda_fp16.hpp" in raw


def test_what_is_nobodys_secret_stays(planted: Path, tmp_path: Path) -> None:
    cleaned(planted, tmp_path / "clean.ncu-rep")
    raw = (tmp_path / "clean.ncu-rep").read_bytes()
    for kept in (
        b"ncu --clock-control none --cache-control all --metrics sm__warps_active.avg",
        b"https://docs.nvidia.com/a/b.html",
        b"_Z8silu_mulIfEvPf",
        b"forward",
        b"profkit",
        b"Display Driver Version",
    ):
        assert kept in raw, kept


def test_the_list_says_how_much_of_what_was_there(planted: Path, tmp_path: Path) -> None:
    removed = cleaned(planted, tmp_path / "clean.ncu-rep")
    assert removed["environment variables"].count >= 3
    for kind in (
        "command line",
        "host name",
        "addresses",
        "paths",
        "names of processes and threads",
        "identities of devices",
    ):
        assert removed[kind].count >= 1, kind
    assert SECRET not in str(removed)


@pytest.mark.parametrize("cut", [3, 9, 40, -1, -200])
def test_a_cut_off_report_is_refused_and_nothing_is_left(planted: Path, tmp_path: Path, cut: int) -> None:
    planted.write_bytes(planted.read_bytes()[:cut])
    with pytest.raises(UnreadableReport):
        cleaned(planted, tmp_path / "clean.ncu-rep")
    assert [path.name for path in tmp_path.iterdir()] == ["out.ncu-rep"]


def test_machine_code_that_looks_like_a_path_is_not_touched(tmp_path: Path) -> None:
    code = (
        b"\x7fELF"
        + b"\x00".join([b"/ab/cd", b"\x81/xy/zw\x90", b"\xff/abcd/efghij\xfe"])
        + struct.pack("<d", 1.5)
    )
    path = tmp_path / "out.ncu-rep"
    path.write_bytes(report(block(details=session()), block([], sources=[number(1, 1) + lump(4, code)])))
    cleaned(path, tmp_path / "clean.ncu-rep")
    assert code in (tmp_path / "clean.ncu-rep").read_bytes()


# As line tables hold them: folders that end with NUL, then files with numbers between, which may look like letters.
HOMES = (
    "/home/jq", "/home/jq/a", "/home/jq/b/c", "/Users/jq/k", "/root/jq", "/home/jüq/net", "/home/ann jq/net (2)",
    "C:/Users/jq", "C:/Users/jq/k", r"C:\Users\jq\src", r"C:\\Users\\jq\\inc", "D:/work/jq/kernels", r"D:\work\jq\inc",
)  # fmt: skip


@pytest.mark.parametrize("before", ["\0", "\x01", "k.cu\0\x01\x7fw"])
@pytest.mark.parametrize("home", HOMES)
def test_a_short_home_and_one_of_windows_are_found_in_a_line_table(
    tmp_path: Path, home: str, before: str
) -> None:
    if home.startswith("D:") and before.endswith("w"):
        pytest.skip("a letter before a drive that may be any: machine code looks so")
    table = b"\x7fELF\x02\x01\x00" + f"{before}{home}\0k.cu\0".encode() + b"\x00\xff\x80" * 9
    path = tmp_path / "out.ncu-rep"
    path.write_bytes(report(block(details=session()), block([], sources=[number(1, 1) + lump(4, table)])))
    removed = cleaned(path, tmp_path / "clean.ncu-rep")
    raw = (tmp_path / "clean.ncu-rep").read_bytes()
    assert b"jq" not in raw
    assert len(raw) - raw.index(b"\x7fELF") == len(table)
    assert b"\0k.cu\0" in raw
    assert removed["paths"].count == 1


def test_a_windows_source_and_its_line_table_still_name_the_same_folder(tmp_path: Path) -> None:
    """The compiler writes forward slashes, Nsight Compute backward ones, and PTX doubles them."""
    source = (
        number(1, 1)
        + lump(3, '.file 1 "C:\\\\Users\\\\ann\\\\my net\\\\mlp.cu"\n')
        + lump(4, b"\x7fELF\x02\x01\x00" + b"\0C:/Users/ann/my net\0mlp.cu\0" + b"\x00\xff" * 9)
        + lump(8, lump(1, lump(1, r"C:\Users\ann\my net\mlp.cu")))
    )
    path = tmp_path / "out.ncu-rep"
    path.write_bytes(report(block(details=session()), block([], sources=[source])))
    cleaned(path, tmp_path / "clean.ncu-rep")
    raw = (tmp_path / "clean.ncu-rep").read_bytes()
    for kept in (
        rb"xx\xxxxx\xxx\xxxxx1\mlp.cu",
        b"\0xx/xxxxx/xxx/xxxxx1\0",
        b'"xx\\\\xxxxx\\\\xxx\\\\xxxxx1\\\\mlp.cu"',
    ):
        assert kept in raw, kept


def dump(path: Path) -> list[object]:
    """Everything that NVIDIA's own package tells of a report's kernels."""
    ncu_report = pytest.importorskip("ncu_report")
    context = ncu_report.load_report(str(path))
    told: list[object] = []
    for index in range(context.num_ranges()):
        found = context.range_by_idx(index)
        for number_ in range(found.num_actions()):
            action = found.action_by_idx(number_)
            values = {
                name: (metric.kind(), str(metric.value()), metric.num_instances())
                for name in action.metric_names()
                if (metric := action.metric_by_name(name)) is not None
            }
            told.append((action.name(), values))
    return told


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_nvidias_own_package_reads_the_same_from_a_scrubbed_recording(path: Path, tmp_path: Path) -> None:
    cleaned(path, tmp_path / "clean.ncu-rep")
    assert dump(path) == dump(tmp_path / "clean.ncu-rep")


def test_nvidias_own_package_opens_a_scrubbed_report_with_everything_in_it(
    planted: Path, tmp_path: Path
) -> None:
    cleaned(planted, tmp_path / "clean.ncu-rep")
    assert dump(planted) == dump(tmp_path / "clean.ncu-rep") != []


FORMS = (
    "/u/jq/k.cu", "/jq/k.cu", "/data/jq b/k.cu", r"D:\p\jq\k.cu", "C:/jq/k.cu", r"\\srv\jq\x\k.cu", "../jq/ml/k.cu",
    "jq/ml/k.cu", "s3://bucket/jq/x", "nas01:/jq/data/x", "password: jqjqjqjq", "--api-key jqjqjqjq",
    "Authorization: Bearer jqjqjqjq", "https://git.acme.example/jq", "jq-7.cluster.local",
)  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_goes_from_source_text_and_from_a_binary_and_nothing_moves(
    tmp_path: Path, form: str
) -> None:
    binary = b"\x7fELF\x02\x01\x00\0" + form.encode() + b"\0" + b"\x00\xff\x80" * 9
    texts = (
        lump(3, f'// see {form} ok\nint token = ids[i]; // "aten/src/ATen/native/cuda/Loops.cuh"\n'),
        lump(4, binary),
    )
    path = tmp_path / "out.ncu-rep"
    path.write_bytes(report(block(details=session()), block([], sources=[number(1, 1) + b"".join(texts)])))
    cleaned(path, tmp_path / "clean.ncu-rep")
    raw = (tmp_path / "clean.ncu-rep").read_bytes()
    assert b"jq" not in raw
    assert b'int token = ids[i]; // "aten/src/ATen/native/cuda/Loops.cuh"' in raw
    assert len(raw) - raw.index(b"\x7fELF") == len(binary)
