"""What of PyTorch's profiler can be read."""

from __future__ import annotations

from profkit.profilers.formats import Format, later

_TRACE = "profkit.profilers.torch_profiler.chrome_trace"

FORMATS = (
    Format(
        "torch-chrome-trace",
        "torch_profiler",
        "torch.profiler Chrome trace",
        later(_TRACE, "looks_like"),
        later(_TRACE, "read_chrome_trace"),
    ),
)
