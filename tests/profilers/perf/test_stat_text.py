"""What perf stat prints for people, by the grammar of perf 4 to 7."""

import pytest

from profkit.core.errors import UnreadableReport
from profkit.profilers.perf.stat_text import looks_like_stat_text, read_stat_text
from tests.profilers.perf.counters import told

TABLE = """
epoch 1: 5 apples, loss 0.25

 Performance counter stats for 'python train.py' (3 runs):

             63.40 msec task-clock:u                     #    0.602 CPUs utilized            ( +-  2.34% )
                28      context-switches                 #  441.672 /sec
        80,114,687      cycles:u                         #    1.264 GHz              ( +-  0.12% )  (64.00%)
                 0      stalled-cycles-frontend          #    0.00% frontend cycles idle     (70.12%)
        42,830,765      instructions                     #    0.53  insn per cycle
   <not supported>      LLC-loads
     <not counted>      branches                                                             (0.00%)
              1.50 Joules power/energy-pkg/
              2.25 MiB  uncore_imc/cas_count_read/
                        #     70.1 %  tma_backend_bound

         0.0105300 +- 0.0000450 seconds time elapsed  ( +-  0.43% )

       0.001243000 seconds user
       0.000000000 seconds sys

5 pears after the end
"""


def read(tmp_path, text):
    path = tmp_path / "log"
    path.write_text(text)
    return read_stat_text(path)


def test_the_table_is_read_out_of_a_log(tmp_path):
    assert looks_like_stat_text(TABLE.encode())
    assert told(read(tmp_path, TABLE)) == {
        "task-clock": 63.40,
        "context-switches": 28,
        "cycles": 80114687,
        "stalled-cycles-frontend": "hard-zero",
        "instructions": 42830765,
        "LLC-loads": "not-supported",
        "branches": "not-counted",
        "energy-pkg": 1.5,
        "cas_count_read": 2.25,
        "duration_time": pytest.approx(10_530_000),
        "user_time": pytest.approx(1_243_000),
        "system_time": 0,
    }


def test_the_share_of_a_multiplexed_event_is_the_printed_one(tmp_path):
    cycles = next(c for c in read(tmp_path, TABLE).counters if c.name == "cycles")
    assert (cycles.state, cycles.share) == ("multiplexed", 0.64)


@pytest.mark.parametrize(
    "number", ["80,114,687", "80.114.687", "80'114'687", "80\u202f114\u202f687", "80114687"]
)
def test_thousands_may_be_grouped_as_any_locale_does(tmp_path, number):
    assert told(read(tmp_path, f" Performance counter stats for 'x':\n\n   {number}      cycles\n")) == {
        "cycles": 80114687
    }


@pytest.mark.parametrize(
    ("line", "event", "value"),
    [
        ("          63,40 msec task-clock    #    0,602 CPUs utilized", "task-clock", 63.40),
        (
            "          63.404040      task-clock (msec)         #    0.602 CPUs utilized",
            "task-clock",
            63.40404,
        ),
        ("      1.234,56 msec task-clock", "task-clock", 1234.56),
        ("      1,234.56 msec task-clock", "task-clock", 1234.56),
        (
            "S0-D0-C0           2              32.95 msec task-clock    #    0.541 CPUs utilized",
            "task-clock",
            32.95,
        ),
        ("CPU0                              32.95 msec task-clock", "task-clock", 32.95),
        (
            "     1.000100000              32.95 msec task-clock    #    0.541 CPUs utilized",
            "task-clock",
            32.95,
        ),
        ("  python3-4711             32.95 msec task-clock", "task-clock", 32.95),
        ("        5      cpu_core/cycles/u", "cycles", 5),
    ],
)
def test_a_line_is_read_in_every_shape(tmp_path, line, event, value):
    assert told(read(tmp_path, f" Performance counter stats for 'system wide':\n\n{line}\n")) == {
        event: value
    }


def test_cores_and_intervals_are_summed(tmp_path):
    rows = "#           time             counts unit events\n"
    rows += (
        "     1.000100000                  5      cycles\n     2.000200000                  7      cycles\n"
    )
    report = read(tmp_path, rows)
    assert (told(report), report.facts["intervals"]) == ({"cycles": 12}, "2")
    cores = " Performance counter stats for 'x':\n\n"
    cores += "S0-D0-C0      2     5      cycles\nS0-D0-C1      2     7      cycles\n"
    assert told(read(tmp_path, cores)) == {"cycles": 12}


@pytest.mark.parametrize("text", ["", "5 apples\n", " Performance counter stats for 'x':\n\n", "x" * 5000])
def test_what_holds_no_table_is_refused_in_a_sentence(tmp_path, text):
    with pytest.raises(UnreadableReport):
        read(tmp_path, text)
