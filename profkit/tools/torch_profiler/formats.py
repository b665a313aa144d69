"""What of PyTorch's profiler can be read."""

from __future__ import annotations

from profkit.tools.formats import Format, later

_TRACE = "profkit.tools.torch_profiler.chrome_trace"

FORMATS = (
    Format(
        "torch-chrome-trace",
        "torch_profiler",
        "torch.profiler Chrome trace",
        later(_TRACE, "looks_like"),
        later(_TRACE, "read_chrome_trace"),
    ),
)
