"""What a device did, as times: activities and host calls in, a `GpuTrace` out.

Nothing here depends on a tool. Columns are numpy's, times whole nanoseconds on one clock, whichever the recording had.
"""
