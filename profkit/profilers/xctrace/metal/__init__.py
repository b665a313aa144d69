"""The GPU's side of a recording: Metal System Trace and GPU counters."""
