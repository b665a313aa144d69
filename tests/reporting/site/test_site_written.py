"""How a site is written: into a folder of its own, whole at every moment, and never through a link."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from profkit.core.errors import MachineError, UsageError
from profkit.core.files import safe_folder
from profkit.core.types import HistorySummary
from profkit.reporting.site import pages
from profkit.reporting.site.data import Shared, call, quantise, workload_data
from profkit.reporting.site.folder import MARKER, prepare_folder, write_site
from profkit.reporting.site.pages import SiteOptions, page_ids, site_files
from profkit.reporting.site.runs import runs_of
from tests.reporting.site.conftest import write

SRC = re.compile(r'(?:src|href)="((?:\.\./)?data/[^"]+)"')


def files_of(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def is_usable(folder: Path) -> bool:
    """Whether every page finds what it loads, and every workload of the overview its page."""
    for page in folder.rglob("*.html"):
        content = page.read_text()
        wanted = [page.parent / name for name in SRC.findall(content)]
        wanted += [page.parent / name for name in re.findall(r'href="(workload/[^"#]+)', content)]
        if not all(path.is_file() for path in wanted):
            return False
    return True


def without_attention(summary: HistorySummary) -> HistorySummary:
    return replace(
        summary,
        series=tuple(s for s in summary.series if s.trend.series.key.workload != "attention forward"),
        entries=tuple(e for e in summary.entries if e.workload != "attention forward"),
    )


def test_the_overview_is_the_last_file_and_data_comes_before_the_pages_that_load_it(
    summary: HistorySummary,
) -> None:
    names = [name for name, _ in site_files(summary, SiteOptions())]
    assert names[-1] == "index.html"
    kinds = [name.split("/")[0] for name in names]
    assert max(i for i, kind in enumerate(kinds) if kind == "data") < kinds.index("workload")


@pytest.mark.parametrize(("pack", "most"), [(0, 1), (100_000_000, 7)])
def test_small_workloads_share_a_file_and_each_page_loads_the_one_with_its_own(
    pack: int, most: int, summary: HistorySummary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PACK", pack)
    files = dict(site_files(summary, SiteOptions()))
    held = []
    for name, content in files.items():
        if (found := re.search(r' data-workload="([^"]+)"', content)) is None:
            continue
        data = files[SRC.findall(content)[-1].removeprefix("../")]
        assert f'"id":"{found[1]}"' in data, name
        held.append(data.count("profkitSite.workload("))
    assert held == [most] * 7


def test_a_site_is_replaced_and_what_is_not_ours_stays(summary: HistorySummary, tmp_path: Path) -> None:
    folder = write(tmp_path / "site", summary)
    (folder / "CNAME").write_text("example.org")
    (folder / "workload" / "Notes of mine.txt").write_text("mine")
    assert list(folder.glob("workload/attention*"))
    write(folder, without_attention(summary))
    assert not list(folder.glob("*/attention*"))
    assert (folder / "CNAME").read_text() == "example.org"
    assert (folder / "workload" / "Notes of mine.txt").read_text() == "mine"
    assert len(list(folder.glob("data/site-data-*.js"))) == 1
    assert is_usable(folder)


def test_the_same_history_gives_the_same_bytes(summary: HistorySummary, tmp_path: Path) -> None:
    one, other = write(tmp_path / "one", summary), write(tmp_path / "other", summary)
    assert files_of(one) == files_of(other)
    write(one, summary)
    assert files_of(one) == files_of(other)


@pytest.mark.parametrize("stop", range(0, 11, 2))
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


@pytest.mark.parametrize("inside", ["workload", "data"])
def test_no_link_inside_is_followed(
    inside: str, summary: HistorySummary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, other = write(tmp_path / "site", summary), tmp_path / "other"
    other.mkdir()
    (other / "gated_mlp.html").write_text("not yours")
    for file in (folder / inside).iterdir():
        file.unlink()
    (folder / inside).rmdir()
    (folder / inside).symlink_to(other)
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


# ---------------------------------------------------------------- data


@pytest.mark.parametrize(
    "values",
    [
        [4.1234567e-3, 4.2e-3, 5.1e-3],
        [1e-9, 1.0, 123456.789],
        [8_123_456_789.0, 8_123_456_001.0],
        [0.0, 0.0],
        [-3.25, 7.5, 0.0],
        [1e-300, 1e300],
        [5e-324, 1.0],
        [17.0, 3.0],
        [],
    ],
)
def test_each_value_keeps_five_digits(values: list[float]) -> None:
    exponent, numbers = quantise(values)
    for value, made in zip(values, numbers, strict=True):
        assert isinstance(made, (int, float))
        back = made if exponent is None else made / 10.0**-exponent if exponent < 0 else made * 10.0**exponent
        assert back == pytest.approx(value, rel=5e-5)


def test_what_is_no_number_is_a_gap(summary: HistorySummary) -> None:
    one = next(s for s in summary.series if s.trend.series.key.metric == "instructions")
    points = list(one.trend.series.points)
    points[3], points[4] = replace(points[3], value=math.nan), replace(points[4], value=math.inf)
    series = replace(one.trend.series, points=tuple(points))
    bad = replace(one, trend=replace(one.trend, series=series), level=math.nan)
    runs = runs_of(summary)
    data = workload_data("w", "w", [bad], runs.by_workload["gated_mlp"], Shared(runs.moments), lambda _: None)
    assert isinstance(data, dict)
    (made,) = data["series"]  # type: ignore[misc]
    assert made["v"][2:6].count(None) == 2  # type: ignore[index, call-overload, union-attr]
    assert "level" not in made  # type: ignore[operator]
    assert "NaN" not in call("workload", data)
    assert [name for name, _ in site_files(replace(summary, series=(bad,)), SiteOptions())][
        -1
    ] == "index.html"


def test_no_text_ends_the_call_that_it_stands_in() -> None:
    made = call("share", {"name": "</script>\u2028<!--&\u202e'\"\\"})
    assert made.startswith("profkitSite.share({")
    assert not set("<>&\u2028\u202e\n") & set(made[:-1])


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
