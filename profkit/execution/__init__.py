"""Where work runs: worker processes that may crash, hang or exceed their memory, and a journal that survives it.

- `job`: what is done. A job is JSON in, and exactly one `JobOutcome` out.
- `worker`: the inside of a worker process, and what a worker function must do.
- `child`: a process that is asked through a pipe: start it, notice how it ended, kill its process tree.
- `client`: the other side of a worker: send it a job, and read what it says.
- `pool`: several workers, for instance one for each device, that share a queue of jobs.
- `journal`: outcomes on disk, line by line, so that an interrupted campaign can be resumed.

Nothing here knows what the jobs are.
"""
