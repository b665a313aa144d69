"""The list of formats: complete, and paid for only as far as it is read."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.formats import Format, all_formats, sniff


@pytest.mark.parametrize("candidate", tuple(all_formats()), ids=lambda candidate: candidate.name)
def test_every_format_in_the_list_has_a_sniffer_and_a_reader(candidate: Format, tmp_path: Path) -> None:
    assert candidate.looks_like(b"neither one nor the other\n") is False
    with pytest.raises(UnreadableReport, match="nowhere"):
        candidate.read(tmp_path / "nowhere")
    assert candidate.convert is None or candidate.convert(tmp_path / "in", tmp_path / "out")


def test_readers_that_come_after_the_one_that_fits_are_not_imported(tmp_path: Path) -> None:
    report = tmp_path / "stat.csv"
    report.write_text("602000000||instructions|101520000|100.00|2.00|insn per cycle\n")
    program = (
        "import sys; from pathlib import Path; from profkit.profilers.formats import sniff\n"
        f"print(sniff(Path({str(report)!r})).name)\n"
        "print(*(name for name in sys.modules if name.startswith('profkit.profilers.')))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    name, modules = done.stdout.splitlines()
    assert name == "perf-stat-csv"
    assert "profkit.profilers.perf.stat_csv" in modules.split()
    for later in ("profkit.profilers.perf.script", "profkit.profilers.valgrind.callgrind_file"):
        assert later not in modules.split()


def test_a_pointer_of_git_lfs_is_told_from_the_report_that_it_stands_for(tmp_path: Path) -> None:
    pointer = tmp_path / "my report.sqlite"
    pointer.write_text("version https://git-lfs.github.com/spec/v1\noid sha256:a1c2af0d\nsize 552960\n")
    with pytest.raises(UnreadableReport, match="pointer of Git LFS") as caught:
        sniff(pointer)
    assert caught.value.fix == "git lfs pull --include 'my report.sqlite'"
