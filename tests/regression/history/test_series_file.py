"""Files of series as people have them, and as nobody should: values and builds out, or one sentence."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profkit.core.errors import ProfkitError, UnreadableReport, UsageError
from profkit.regression.history.series_file import read_series_file


def written(folder: Path, content: str | bytes, name: str = "series.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize(
    ("content", "values"),
    [
        ("1.5\n2\n3e-3\n", (1.5, 2, 0.003)),
        ("1.5\n2\n3", (1.5, 2, 3)),  # no newline at the end
        ("\n\n1\n\n2\n", (1, 2)),
        ("# nightly\n1\n# throttled\n2\n", (1, 2)),
        ("seconds\n1\n2\n", (1, 2)),
        ("1\r\n2\r\n", (1, 2)),
        ("1\r2\r", (1, 2)),
        ("\ufeff1\n2\n", (1, 2)),
        ("0,1.5\n1,2.5\n", (1.5, 2.5)),
        ("index,value\n0,1.5\n1,2.5\n", (1.5, 2.5)),
        ("value,index\n1.5,0\n2.5,1\n", (1.5, 2.5)),
        ("0;1.5\n1;2.5\n", (1.5, 2.5)),
        ("0\t1.5\n1\t2.5\n", (1.5, 2.5)),
        ("0 1.5\n1   2.5\n", (1.5, 2.5)),
        ('"0","1.5"\n"1","2.5"\n', (1.5, 2.5)),
        ('name,"time, seconds"\n"a ""quoted"", name",1.5\nb,2.5\n', (1.5, 2.5)),
        ("1\nNaN\n\n3\n", (1, None, 3)),
        ("nan\n2\n", (None, 2)),
        ("0,1\n1,\n2,nan\n3,inf\n4,n/a\n5,2\n", (1, None, None, None, None, 2)),
        ("-1\n0\n+2\n", (-1, 0, 2)),
        ("commit,Median (ms)\nabc,1\ndef,2\n", (1, 2)),
        ("time,value\n1700000000,1\n1700086400,2\n", (1, 2)),
    ],
)
def test_a_series_is_read_however_it_is_written(tmp_path: Path, content: str, values: object) -> None:
    assert read_series_file(written(tmp_path, content)).values == values


def test_repeated_builds_become_their_median(tmp_path: Path) -> None:
    text = "Index,GHC,Measurement\n1,510,48\n2,510,50\n3,510,90\n4,511,7\n5,512,1\n6,512,NaN\n7,512,3\n"
    series = read_series_file(written(tmp_path, text))
    assert (series.values, series.labels, series.rows) == ((50, 7, 2), ("510", "511", "512"), (0, 3, 4))
    assert (series.column, series.by) == ("Measurement", "GHC")
    assert "7 rows of 3 different GHC" in series.notes[0]


def test_a_column_that_repeats_itself_is_the_builds_whatever_it_is_called(tmp_path: Path) -> None:
    series = read_series_file(written(tmp_path, "n,snapshot,value\n1,7,10\n2,7,20\n3,8,5\n"))
    assert (series.values, series.by) == ((15, 5), "snapshot")


def test_rows_can_be_taken_each_for_itself(tmp_path: Path) -> None:
    path = written(tmp_path, "Index,GHC,Measurement\n1,510,48\n2,510,50\n")
    assert read_series_file(path, by="none").values == (48, 50)


@pytest.mark.parametrize("column", ["other ms", "Other (ms)", "3"])
def test_a_column_is_chosen_by_its_name_or_number(tmp_path: Path, column: str) -> None:
    path = written(tmp_path, "index,value,Other (ms)\n0,1,10\n1,2,20\n")
    assert read_series_file(path, column if column != "other ms" else "other").values == (10, 20)


def test_a_line_that_was_cut_off_is_left_out_and_told(tmp_path: Path) -> None:
    series = read_series_file(written(tmp_path, "index,value\n0,1\n1,2\n2"))
    assert series.values == (1, 2)
    assert "cut off" in series.notes[0]


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is empty"),
        (b"\n \n# nothing\n", "is empty"),
        (b"index,value\n", "no value below"),
        (b"index,value\n0,nan\n1,\n", "no number in value"),
        (b"nan\nnan\n", "no column of numbers"),
        (b"a,b\nc,d\n", "no column of numbers"),
        (b"SQLite format 3\0\1\2", "binary"),
        (b'{"change_points": [1]}', "JSON"),
        (b"[1, 2, 3]", "JSON"),
        (b"<script>alert(1)</script>", "JSON or markup"),
        (b"1\n2\nthree\n4\n5\n6\n7\n8\n9\n10\n11\n", "line 3: 'three' .* is no number"),
        (b"0,1\n1,2,3\n2,3\n", "line 2: 3 fields where the others have 2"),
        (b"1_000\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n", "line 1: '1_000' .* is no number"),
        (b"3.2ms\n3.3ms\n", "no column of numbers"),
        (b"0,a\n1,b\n2,c\n", "numbers its lines"),
        (b"index,value\n1,nan\n2,x\n3,inf\n", "'x' in value is no number"),
        (b'0,"' + b"x" * 200_000 + b'"\n1,2\n', "line 1: field larger than field limit"),
    ],
)
def test_what_is_no_series_is_refused_in_words(tmp_path: Path, content: bytes, said: str) -> None:
    with pytest.raises(UnreadableReport, match=said):
        read_series_file(written(tmp_path, content))


def test_a_line_of_a_hundred_thousand_digits_is_refused_at_once(tmp_path: Path) -> None:
    path = written(tmp_path, f"1.5\n{'9' * 100_000}x\n")
    begin = time.process_time()
    with pytest.raises(UnreadableReport, match="no column of numbers"):
        read_series_file(path)
    assert time.process_time() - begin < 2  # seconds; minutes where each digit is tried as the last one


def test_what_cannot_be_opened_is_refused_in_words(tmp_path: Path) -> None:
    with pytest.raises(UnreadableReport, match="No such file"):
        read_series_file(tmp_path / "absent.csv")
    with pytest.raises(UnreadableReport, match="is a folder"):
        read_series_file(tmp_path)


def test_a_column_that_is_not_there_names_those_that_are(tmp_path: Path) -> None:
    path = written(tmp_path, "index,value\n0,1\n1,2\n")
    with pytest.raises(UsageError, match="no column 'latency'") as raised:
        read_series_file(path, "latency")
    assert "index, value" in str(raised.value.fix)


@given(
    st.binary(max_size=200) | st.text(max_size=200).map(lambda text: text.encode("utf-8", "surrogatepass"))
)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_bytes_it_is_a_series_or_a_sentence(tmp_path: Path, content: bytes) -> None:
    try:
        series = read_series_file(written(tmp_path, content))
    except ProfkitError:
        return
    assert len(series.values) == len(series.labels) == len(series.rows)
    assert any(value is not None for value in series.values)


def test_a_file_of_more_fields_than_a_series_has_is_refused_before_it_fills_the_memory(
    tmp_path: Path,
) -> None:
    for text in ("1\n" * 1_000_001, "1," * 1_000_001):
        with pytest.raises(UnreadableReport, match="more than 1,000,000 fields") as caught:
            read_series_file(written(tmp_path, text))
        assert caught.value.fix is not None
        assert "tail" in caught.value.fix
