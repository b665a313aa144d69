"""Run work in worker processes that may crash, hang or exceed their memory, with a journal that survives it.

- `worker`: the inside of a worker process, and what a worker function must do.
- `child`: a process that answers through a pipe, as a worker is: started, asked, ended with its process tree.
- `pool`: several workers, for instance one for each device, that share a queue of jobs.
- `journal`: outcomes on disk, line by line, so that an interrupted campaign can be resumed.

Nothing here knows what the jobs are.
"""
