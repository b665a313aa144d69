"""What of perf's can be read, most telling form first."""

from __future__ import annotations

from profkit.tools.formats import Format
from profkit.tools.perf import convert_json, data, report_text, script, stat_csv, stat_json, stat_text

FORMATS = (
    Format("perf-data", "perf", "perf.data", data.looks_like, script.read_script, data.conversion_argv),
    Format("perf-stat-json", "perf", "perf stat -j", stat_json.looks_like, stat_json.read_stat_json),
    Format(
        "perf-json",
        "perf",
        "perf data convert --to-json",
        convert_json.looks_like,
        convert_json.read_convert_json,
    ),
    Format("perf-stat-csv", "perf", "perf stat -x", stat_csv.looks_like, stat_csv.read_stat_csv),
    Format("perf-stat-text", "perf", "perf stat", stat_text.looks_like, stat_text.read_stat_text),
    Format(
        "perf-report", "perf", "perf report --stdio", report_text.looks_like, report_text.read_report_text
    ),
    Format("perf-script", "perf", "perf script", script.looks_like, script.read_script),
)
