"""Files of series as people have them, and as nobody should: values out, or one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from profkit.core.errors import UnreadableReport
from profkit.regression.trends import read_series_file


def written(folder: Path, content: str | bytes, name: str = "series.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("1.5\n2\n3e-3\n", (1.5, 2, 0.003)),
        ("\n\n1\n\n2\n", (1, 2)),
        ("# nightly\n1\n# throttled\n2\n", (1, 2)),
        ("seconds\n1\n2\n", (1, 2)),
        ("1\r\n2\r\n", (1, 2)),
        ("\ufeff1\n2\n", (1, 2)),
        ("1\nNaN\n\n3\n", (1, None, 3)),
        ("1\nnan\ninf\nn/a\n2\n", (1, None, None, None, 2)),
    ],
)
def test_a_series_is_read_however_it_is_written(tmp_path: Path, content: str, values: object) -> None:
    assert tuple(read_series_file(written(tmp_path, content)).values()) == values


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no value"),
        (b"seconds\n", "holds no value"),
        (b"SQLite format 3\0\1\2", "line 1: .* is not a number"),
        (b'{"change_points": [1]}', "is not a number"),
        (b"1\n2\nthree\n4\n", "line 3: 'three' is not a number"),
        (b"index,value\n0,1\n", "line 1: 'index,value' is not a number"),
        (b"1_000\n2\n", "line 1: '1_000' is not a number"),
    ],
)
def test_what_is_no_series_is_refused_in_words(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(UnreadableReport, match=said):
        read_series_file(written(tmp_path, content))


def test_what_cannot_be_opened_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReport, match="No such file"):
        read_series_file(tmp_path / "absent.csv")
    with pytest.raises(UnreadableReport, match="cannot be read"):
        read_series_file(tmp_path)
