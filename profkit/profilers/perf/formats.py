"""What of perf's can be read, most telling form first. A reader is imported when its turn comes."""

from __future__ import annotations

from profkit.profilers.formats import Format, later


def _format(name: str, title: str, module: str, read: str) -> Format:
    module = f"profkit.profilers.perf.{module}"
    return Format(name, "perf", title, later(module, "looks_like"), later(module, read))


FORMATS = (
    Format(
        "perf-data",
        "perf",
        "perf.data",
        later("profkit.profilers.perf.data", "looks_like"),
        later("profkit.profilers.perf.script", "read_script"),
        later("profkit.profilers.perf.convert", "conversion_argv"),
        by_hand="perf script -i {name} > {stem}.txt",
    ),
    _format("perf-stat-json", "perf stat -j", "stat_json", "read_stat_json"),
    _format("perf-json", "perf data convert --to-json", "convert_json", "read_convert_json"),
    _format("perf-stat-csv", "perf stat -x", "stat_csv", "read_stat_csv"),
    _format("perf-stat-text", "perf stat", "stat_text", "read_stat_text"),
    _format("perf-report", "perf report --stdio", "report_text", "read_report_text"),
    _format("perf-script", "perf script", "script", "read_script"),
)
