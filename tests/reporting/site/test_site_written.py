"""How a site is written: into a folder of its own, whole at every moment, and never through a link."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, UsageError
from profkit.core.files import safe_folder
from profkit.core.types import HistorySummary
from profkit.reporting.site.folder import MARKER, prepare_folder, write_site
from profkit.reporting.site.pages import SiteOptions, page_ids, site_files
from tests.reporting.site.conftest import write


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def is_usable(folder: Path) -> bool:
    """Whether every workload of the overview has its page."""
    for page in folder.rglob("*.html"):
        content = page.read_text()
        wanted = [page.parent / name for name in re.findall(r'href="\./(workload/[^"#]+)', content)]
        if not all(path.is_file() for path in wanted):
            return False
    return True


def without_attention(summary: HistorySummary) -> HistorySummary:
    return replace(
        summary,
        series=tuple(s for s in summary.series if s.trend.series.key.workload != "attention forward"),
        entries=tuple(e for e in summary.entries if e.workload != "attention forward"),
    )


def test_the_overview_is_the_last_file(summary: HistorySummary) -> None:
    names = [name for name, _ in site_files(summary, SiteOptions())]
    assert names[-1] == "index.html"
    assert all(name.startswith("workload/") for name in names[:-1])


def test_a_site_is_replaced_and_what_is_not_ours_stays(summary: HistorySummary, tmp_path: Path) -> None:
    folder = write(tmp_path / "site", summary)
    (folder / "CNAME").write_text("example.org")
    (folder / "workload" / "Notes of mine.txt").write_text("mine")
    assert list(folder.glob("workload/attention*"))
    write(folder, without_attention(summary))
    assert not list(folder.glob("*/attention*"))
    assert (folder / "CNAME").read_text() == "example.org"
    assert (folder / "workload" / "Notes of mine.txt").read_text() == "mine"
    assert is_usable(folder)


def test_the_same_history_gives_the_same_bytes(summary: HistorySummary, tmp_path: Path) -> None:
    one, other = write(tmp_path / "one", summary), write(tmp_path / "other", summary)
    assert files_of(one) == files_of(other)
    write(one, summary)
    assert files_of(one) == files_of(other)


@pytest.mark.parametrize("stop", range(0, 7, 2))
def test_what_stops_the_writing_leaves_pages_that_can_be_used(
    stop: int, summary: HistorySummary, tmp_path: Path
) -> None:
    folder = write(tmp_path / "site", summary)
    before = (folder / "index.html").read_bytes()

    def cut() -> Iterator[tuple[str, str]]:
        for number, file in enumerate(site_files(without_attention(summary), SiteOptions("another"))):
            if number == stop:
                raise KeyboardInterrupt
            yield file

    made = prepare_folder(folder)
    with pytest.raises(KeyboardInterrupt):
        write_site(made, cut())
    assert is_usable(folder)
    assert (folder / "index.html").read_bytes() == before
    assert not list(folder.rglob("*.tmp"))
    write(folder, without_attention(summary))
    assert is_usable(folder)
    assert not list(folder.glob("*/attention*"))


def test_a_folder_with_other_files_is_refused_and_nothing_in_it_changes(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / "index.html").write_text("mine")
    before = files_of(tmp_path)
    with pytest.raises(
        UsageError, match=r"holds other files, and no site: index\.html, thesis\.tex"
    ) as refused:
        prepare_folder(tmp_path)
    assert refused.value.fix == "--to a new folder, or an empty one"
    assert files_of(tmp_path) == before


def test_a_marker_of_somebody_else_makes_no_site(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years of work")
    (tmp_path / MARKER).write_text("something else")
    with pytest.raises(UsageError, match="no site"):
        prepare_folder(tmp_path)


def test_a_checkout_for_publishing_counts_as_empty(summary: HistorySummary, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "CNAME").write_text("example.org")
    assert is_usable(write(tmp_path, summary))
    assert (tmp_path / "CNAME").read_text() == "example.org"


def test_a_file_is_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for target in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(UsageError, match="is not a folder"):
            prepare_folder(target)


def test_no_link_inside_is_followed(
    summary: HistorySummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = write(tmp_path / "site", summary), tmp_path / "other"
    other.mkdir()
    (other / "gated_mlp.html").write_text("not yours")
    for file in (folder / "workload").iterdir():
        file.unlink()
    (folder / "workload").rmdir()
    (folder / "workload").symlink_to(other)
    monkeypatch.setattr(safe_folder, "_made", {})  # as in the next process
    with pytest.raises(MachineError, match="a link has taken its place"):
        write(folder, summary)
    assert files_of(other) == {"gated_mlp.html": b"not yours"}


def test_a_link_in_place_of_a_page_is_replaced_and_not_followed(
    summary: HistorySummary, tmp_path: Path
) -> None:
    folder, other = write(tmp_path / "site", summary), tmp_path / "secret"
    other.write_text("not yours")
    for name in ("index.html", "workload/gated_mlp.html", MARKER):
        (folder / name).unlink()
        (folder / name).symlink_to(other)
    with pytest.raises(UsageError):  # a marker that is a link marks nothing
        write(folder, summary)
    (folder / MARKER).unlink()
    write(tmp_path / "new", summary)
    (folder / MARKER).write_bytes((tmp_path / "new" / MARKER).read_bytes())
    write(folder, summary)
    assert other.read_text() == "not yours"
    assert not (folder / "index.html").is_symlink()


def test_under_sudo_the_pages_are_the_callers(
    summary: HistorySummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    handed: list[Path] = []
    monkeypatch.setattr(
        "profkit.reporting.site.folder.chown_to_sudo_user", lambda *paths: handed.extend(paths)
    )
    write(tmp_path / "a" / "b" / "site", summary)
    site = tmp_path / "a" / "b" / "site"
    assert handed == [site, site.parent, site.parent.parent, site]


def test_a_folder_that_is_exchanged_for_a_link_is_not_written_into(
    summary: HistorySummary, tmp_path: Path
) -> None:
    folder, other = write(tmp_path / "site", summary), tmp_path / "other"
    other.mkdir()
    made = prepare_folder(folder)
    folder.rename(tmp_path / "moved")
    folder.symlink_to(other)
    with pytest.raises(MachineError, match="a link has taken its place"):
        write_site(made, site_files(summary, SiteOptions()))
    assert files_of(other) == {}


def test_a_link_that_the_user_names_is_where_the_site_is(summary: HistorySummary, tmp_path: Path) -> None:
    (tmp_path / "published").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "published")
    write(tmp_path / "link", summary)
    assert is_usable(tmp_path / "published")
    assert (tmp_path / "link").is_symlink()


def test_each_workload_has_a_page_of_its_own_whatever_it_is_called() -> None:
    names = [
        "a",
        "A",
        "a b",
        "a-b",
        "../../etc/passwd",
        "",
        "-",
        "é",
        "index",
        "con",
        "x" * 300,
        "x" * 301,
        "a/b",
        "\udcff",
    ]
    made = page_ids(names)
    assert len({name.lower() for name in made.values()}) == len(names)
    assert all(re.fullmatch(r"[a-z0-9_][a-z0-9_-]{0,70}", name) for name in made.values())
    assert made["a"] == "a"
    assert page_ids(["A"])["A"] == made["A"]  # whatever others there are
