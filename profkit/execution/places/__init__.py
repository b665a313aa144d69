"""Run work on other machines: a place is a command prefix that starts a shell there.

Its two pipes carry the rest.

- `kinds`: the values of `--on` as command prefixes. `modal_shell` and `ray_shell` are profkit's own such programs.
- `boot`: what runs there first, before profkit is there: it unpacks what is sent.
- `files`: what is sent, profkit itself and the workload's files; and what comes back, none of it outside its folder.
- `connection`: this side: start, send what is missing, ask, read the answers.
- `there`: the other side, once profkit is there: progress, files and the result go back.

Nothing listens on a network. Requests and answers are JSON, an object a line.
"""
