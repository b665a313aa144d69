"""Other machines: a place is a command prefix that starts a shell there; all else goes through its two pipes.

- `kinds`: what `--on` says, as command prefixes. `modal_shell` and `ray_shell` are programs of ours that are one.
- `boot`: what runs there first, before profkit is there: it unpacks what is sent.
- `files`: what is sent, profkit itself and the workload's files; and what comes back, none of it outside its folder.
- `connection`: this side: start, send what is missing, ask, read what comes.
- `there`: the other side, once profkit is there: progress, files and the result go back.

Nothing listens on a network. What is asked and answered is JSON, an object a line.
"""
