"""Runs a Python workload under an instrument of its own process: `python HOST cprofile|tracemalloc|torch OUT
-- script args`.

Standard library only, and no import of profkit: it runs in whatever interpreter the workload has, of any
version from 3.10 on. In the workload's process this package is called `profkit_pass_host`; `switch` is what
`profkit.region` calls. Its files are not named after the modules they use: this folder is the first on the
module path until `__main__` has removed it.
"""

switch: object = None
"""The instrument of this process: enter(name), exit(name), iteration(index), forget()."""
