"""Other machines: a place is a command prefix that starts a shell there; all else goes through its two pipes.

- `place`: what `--on` says, as command prefixes. `ssh`, `containers`, `slurm`, `modal` and `ray_cluster` each know
  one kind; `modal_shell` and `ray_shell` are programs of ours that are such a prefix.
- `boot`: what runs there first, before profkit is there: a store of files by their SHA-256.
- `files`: what is sent: profkit itself, its libraries, and the workload's files.
- `connection`: this side: start, send what is missing, ask, read what comes.
- `received`: files that come back, none of them outside of its folder.
- `there`: the other side, once profkit is there: progress, files and the result go back.

Nothing listens on a network, and what crosses it is JSON, one object a line.
"""
