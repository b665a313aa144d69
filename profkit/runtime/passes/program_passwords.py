"""Passwords that the options of known programs hold: `mysql -pX`, `curl -u USER:X`.

By their form such options are like any other (`docker run -p 80:80`): the program's name decides, as its manual says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class _Options:
    """Which options hold a password: the next word, or the rest of the same one."""

    names: tuple[str, ...]
    apart: bool = True  # `-p X`
    joined: bool = True  # `-pX`
    after: str = ""  # the password is what stands behind this sign
    subcommand: str = ""  # only behind this word: `docker login`
    starts: bool = False  # what follows is another program's command
    positional: bool = False  # the first word that is no option, after the subcommand


_SHORT_P = _Options(("-p",))  # `mysql -p X` is no password, but a frequent mistake
_PROGRAMS = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"), _SHORT_P),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore"), _SHORT_P),
    "sshpass": _Options(("-p",), starts=True),
    "curl": _Options(("--user", "--proxy-user", "--cert", "-u", "-U", "-E"), after=":"),
    "redis-cli": _Options(("--pass", "-a")),
    **dict.fromkeys(("http", "https", "xh"), _Options(("--auth", "-a"), after=":")),
    **dict.fromkeys(
        ("sqlcmd", "bcp", "isql", "osql", "ipmitool", "mosquitto_pub", "mosquitto_sub"), _Options(("-P",))
    ),
    **dict.fromkeys(
        ("ldapsearch", "ldapmodify", "ldapadd", "ldapdelete", "ldappasswd", "ldapwhoami"), _Options(("-w",))
    ),
    **dict.fromkeys(("snmpget", "snmpwalk", "snmpset", "snmpbulkwalk"), _Options(("-A", "-X", "-c"))),
    **dict.fromkeys(("cqlsh", "rabbitmqadmin", "influx"), _Options(("-p",))),
    "xfreerdp": _Options(("/p:",), apart=False),
    "az": _Options(("-p",), joined=False, subcommand="login"),
    **dict.fromkeys(("wandb", "vault", "cargo"), _Options((), subcommand="login", positional=True)),
    "rclone": _Options((), subcommand="obscure", positional=True),
    "sqlplus": _Options((), after="/", positional=True),
    "wget": _Options(("--password", "--http-password", "--ftp-password", "--proxy-password")),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz"), _Options(("-p",), apart=False)),
    **dict.fromkeys(("zip", "unzip"), _Options(("-P",))),
    **dict.fromkeys(("docker", "podman", "helm"), _Options(("-p",), subcommand="login")),
    "smbclient": _Options(("--user", "-U"), after="%"),
    "openssl": _Options(("pass:", "-k", "-K"), joined=False),
}
_STARTERS = {"sudo", "doas", "env", "nice", "timeout", "time", "nohup", "xargs", "exec"}
_NAMES = "|".join(sorted(map(re.escape, _PROGRAMS), key=len, reverse=True))
_IN_TEXT = re.compile(rf"(?<![\w.-])(?:{_NAMES})(?:\.exe)?[ \t]+[^\r\n;&|]{{0,2000}}")
_HINT = re.compile(r"\s-[-a-zA-Z]|pass:|/p:|login|obscure|sqlplus")
_WORDS = re.compile(r"[^\s\"'`]+|\"[^\"\n]*\"|'[^'\n]*'")


def program_secrets(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield where the passwords are: the number of a word, and at which character of it the password begins."""
    options: _Options | None = None
    waiting = subcommand = False
    for number, word in enumerate(words):
        at, is_next, waiting = None, waiting, False
        name = re.sub(r".*[/\\]|\.exe\Z", "", word)
        if options is not None and is_next:
            at = _begin(word, 0, options)
        elif name in _PROGRAMS and _may_be_program(words, number):
            options, subcommand = _PROGRAMS[name], False
        elif options is not None:
            if not subcommand and options.subcommand:
                subcommand = word == options.subcommand
                continue
            if options.positional and not word.startswith("-"):
                at = _begin(word, 0, options)
                options = None if at is None else options
            else:
                found = _option_of(word, options.names)
                rest = word[len(found) :]
                if found and not rest:
                    waiting = options.apart
                elif found and (
                    rest.startswith("=") or found[-1] == ":" or (options.joined and found[:2] != "--")
                ):
                    at = _begin(word, len(found) + rest.startswith("="), options)
        if at is not None and options is not None:
            yield number, at
            options = None if options.starts or options.positional else options


def hide_in_text(text: str, hide: Callable[[str], str]) -> str:
    """Return the text with `hide(password)` for each password in a line for a shell that it holds."""
    if _HINT.search(text) is None:  # three times as fast as the whole form
        return text
    return _IN_TEXT.sub(lambda found: _hide_in_line(found[0], hide), text)


def _hide_in_line(line: str, hide: Callable[[str], str]) -> str:
    places = list(_WORDS.finditer(line))
    for number, at in reversed(list(program_secrets([place[0].strip("\"'") for place in places]))):
        quote = len(places[number][0]) - len(places[number][0].lstrip("\"'"))
        end = places[number].end() - quote
        start = places[number].start() + quote + at
        line = line[:start] + hide(line[start:end]) + line[end:]
    return line


def _option_of(word: str, names: Sequence[str]) -> str:
    """Return the option that a word begins with, also as the last letter of some: `-su` of curl; empty where it
    has none.
    """
    bundled = re.fullmatch(r"-[a-zA-Z]{1,4}([a-zA-Z])", word)
    if bundled is not None and f"-{bundled[1]}" in names and word[:2] not in names:
        return word
    return next((name for name in names if word.startswith(name)), "")


def _begin(word: str, start: int, options: _Options) -> int | None:
    if options.after:
        sign = word.find(options.after, start)
        start = sign + 1 if sign >= 0 else len(word)
    return start if start < len(word) else None


def _may_be_program(words: Sequence[str], number: int) -> bool:
    """Return whether a word is no value of an option: `--format zip`."""
    before = words[number - 1] if number else ""
    return not before.startswith("-") or words[0].rpartition("/")[2] in _STARTERS
