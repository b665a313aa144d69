"""Which commands an agent may have run: what starts is a program, a script or a module in a file below one folder.

So whoever looks at the folder can read what ran: the words of a call hold no code of their own. Each program that takes
a file or a further command is known here with the options that may stand before it; all others are refused. It is no
sandbox: a program does what it likes, with its arguments too.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

# The options that may stand before the file; a blank ends a word. The first pattern that fits a program's name counts.
_PYTHON = r"(?:-[bBdEhiIOPqRsSuvVx]*[XW] ?[^ ]+|-[bBdEhiIOPqRsSuvVx]+|--check-hash-based-pycs \w+) "
_OF_RANKS = (
    r"--(?:standalone|multi_gpu|cpu|use_\w+) |--(?:nnodes|nproc[-_]per[-_]node|node[-_]rank|rdzv[-_]\w+|master[-_]\w+"
    r"|max[-_]restarts|num_\w+|mixed_precision|dynamo_backend|gpu_ids|main_process_\w+|config_file|include)[= ][^ ]+ "
)
_INTERPRETERS: tuple[tuple[str, str], ...] = (
    (r"python(?:\d(?:\.\d+)?t?)?|pypy(?:\d(?:\.\d+)?)?", _PYTHON),
    (
        r"(?:ba|da|k|z|a|mk)?sh",
        r"(?:-[aefhklmnptuvxBCEHPT]+|-[efux]*o (?:pipefail|errexit|nounset|xtrace)|--(?:posix|norc|noprofile)) ",
    ),
    (r"torchrun|torch\.distributed\.(?:run|launch)|deepspeed", _OF_RANKS),
    (r"accelerate(?:\.commands\.launch)?", r"launch |" + _OF_RANKS),
    (r"node", r"--(?:[a-z-]+-size=\d+|expose-gc|no-warnings|enable-source-maps|jitless) "),
    (r"perl", r"-[wWtT]+ |-I ?[^ ]+ "),
    (r"ruby", r"-[wW]\d? |--y?jit "),
    (r"java", r"-X(?:m[sxn]|ss)\w+ |-XX:[+-]\w+ |-(?:ea|server|jar) "),
    (r"julia", r"--(?:project|threads|optimize|check-bounds)(?:=[^ ]+)? |-O\d |-t ?\d+ "),
    (r"Rscript", r"--vanilla "),
    (r"php|lua(?:jit|\d\.\d)?|mpi4py|cProfile", r"(?!) "),
)  # fmt: skip
_PLAIN = r"[\w.,:/+@%=-]*"  # of a variable's value: no word of a language
_LAUNCHERS: tuple[tuple[str, str], ...] = (
    (r"env", rf"-i |-u ?\w+ |(?!PYTHONSAFEPATH)[A-Za-z_]\w*={_PLAIN} "),
    (r"nice", r"-n ?-?\d+ |--adjustment=-?\d+ |-\d+ "),
    (r"ionice|chrt", r"-[a-z]?\d* |\d+ "),
    (r"timeout", r"-k ?[\d.]+[smhd]? |-s ?(?:SIG)?[A-Z]+\d? |--[\w-]+(?:=\w+)? |-v |[\d.]+[smhd]? "),
    (r"stdbuf", r"-[ioe] ?(?:0|L|\d+[KMG]?) |--(?:input|output|error)=\w+ "),
    (r"taskset", r"-c |--cpu-list |(?:0x)?[0-9a-f]+(?:[,:-]\d+)* "),
    (r"numactl", r"--?[\w-]+(?:=[\w,:+!-]+)? |[\d,+-]+ "),
    (r"time", r"-[vp] "),
    (r"nohup|setsid", r"(?!) "),
    (
        r"mpirun|mpiexec|srun",
        r"-(?:n|np|N|c|G) ?\d+ |--(?:oversubscribe|allow-run-as-root|exclusive) |--(?:bind-to|map-by)[= ]\w+ "
        r"|--[\w-]+=\d+ ",
    ),
    (r"uv|poetry|pdm|pipenv|hatch|pixi|rye", r"run |--(?:frozen|locked|no-sync|isolated|offline|quiet|active) |-q "),
    (r"conda|mamba|micromamba", r"run |-[np] ?[^ ]+ |--(?:no-capture-output|live-stream) "),
)  # fmt: skip
# They run the tests below the folder that they are started in, whatever their arguments.
_TESTS = re.compile(r"pytest|py\.test|unittest")
_MODULE = re.compile(r"-[bBdEhiOqRsSuvVx]*m ?([^ ]+) ".replace(" ", "\0"))
_ALONE = re.compile(r"-\w*[IP]")  # no module of the folder is found


def programs_of(command: Sequence[str]) -> list[int]:
    """Return which words are programs: the first one, and each that a known program before it starts: `nice -n 5
    python`.
    """
    places = [0]
    while (options := _options_of(_LAUNCHERS, command[places[-1]])) is not None:
        begin = places[-1] + 1
        begin += _count(options, command[begin:])
        if begin >= len(command):
            break
        places.append(begin)
    return places


def runs_file_below(command: Sequence[str], folder: Path, root: Path) -> bool:
    """Return whether `command`, started in `folder`, runs a file below `root`: itself, or what a known program is
    given.
    """
    if not command or any("\0" in word for word in command):
        return False
    places = programs_of(command)
    program, rest = command[places[-1]], command[places[-1] + 1 :]
    if _TESTS.fullmatch(os.path.basename(program)):
        return True
    if (options := _options_of(_INTERPRETERS, program)) is not None:
        count = _count(options, rest)
        return _is_file(rest[count:], folder, root) or _is_module(rest, count, folder, root)
    by_name = len(places) > 1 and os.path.basename(command[places[-2]]) == "uv"  # which takes a script, too
    return ("/" in program or by_name) and _is_file((program,), folder, root)


def leads_out(word: str, folder: Path, root: Path) -> bool:
    """Return whether a word, or what stands behind its `=`, is a path that leads out of `root`."""
    path = Path(folder, word.partition("=")[2] or word)
    return not is_below(path, root) and (os.path.exists(path) or ".." in path.parts)


def is_below(path: Path, root: Path) -> bool:
    """Return whether a path, with all links followed, is below `root`; what cannot be a path is not."""
    return "\0" not in str(path) and Path(os.path.realpath(path)).is_relative_to(root)


def _options_of(programs: Sequence[tuple[str, str]], program: str) -> str | None:
    name = os.path.basename(program) if not program.startswith("-") else ""
    return next((options for names, options in programs if re.fullmatch(names, name)), None)


def _count(options: str, words: Sequence[str]) -> int:
    """Return how many of the first words are such options."""
    found = re.match(f"(?:{options})*".replace(" ", "\0"), "".join(f"{word}\0" for word in words))
    return found[0].count("\0") if found is not None else 0


def _is_file(words: Sequence[str], folder: Path, root: Path) -> bool:
    """Return whether the first word is a file below `root`; an option is none, whatever file is called like it."""
    if not words or words[0].startswith(("-", "+", "@")):
        return False
    path = Path(folder, words[0])
    return os.path.isfile(path) and is_below(path, root)


def _is_module(words: Sequence[str], count: int, folder: Path, root: Path) -> bool:
    """Return whether `-m MODULE` follows the options, of a module in the folder, or of one that is known to run a
    file.
    """
    found = _MODULE.match("".join(f"{word}\0" for word in words[count:]))
    if found is None:
        return False
    path = Path(folder, found[1].replace(".", "/"))
    here = [each for each in (path, path.with_suffix(".py")) if os.path.exists(each)]
    if here and not any(_ALONE.match(word) for word in words[:count]):
        return all(is_below(each, root) for each in here)
    known = _TESTS.fullmatch(found[1]) or _options_of(_INTERPRETERS[2:], found[1]) is not None
    return bool(known) and runs_file_below((found[1], *words[count + found[0].count("\0") :]), folder, root)
