"""What a device did, as times: activities and host calls in, a `GpuTrace` out.

Of no tool's words. Columns are numpy's, times whole nanoseconds on one clock, whichever the recording had.
"""
