"""Passwords that a known program takes by an option of its own, or by their place: `mysql -pX`, `redis-cli AUTH X`.

By its form such a word is like any other (`docker run -p 80:80`), so the program's name decides. Each is as the
program's own manual says.
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
    verb: str = ""  # only behind this word: `docker login`
    starts: bool = False  # what follows is another program's command


@dataclass(frozen=True)
class _Place:
    """A password is the word of this `number` behind a word like `verb`; one of `least` characters at least."""

    verb: str
    number: int = 1
    least: int = 1


_MYSQL = _Options(("-p",))  # `-p X` is no password of theirs, but a frequent mistake
_SHORT_P = _Options(("-p",))
_LONG_P = _Options(("-P",))
_LOGIN = _Options(("-p",), joined=False, verb="login")
_LDAP = _Options(("-w",))
_PROGRAMS = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"), _MYSQL),
    **dict.fromkeys(
        ("mongo", "mongosh", "mongodump", "mongorestore", "mongoexport", "mongoimport"), _SHORT_P
    ),
    "sshpass": _Options(("-p",), starts=True),
    "curl": _Options(("--user", "--proxy-user", "-u", "-U"), after=":"),
    **dict.fromkeys(("http", "https"), _Options(("--auth", "-a"), after=":")),  # HTTPie
    "redis-cli": _Options(("--pass", "-a"), joined=False),
    "wget": _Options(("--password", "--http-password", "--ftp-password", "--proxy-password")),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz", "rar", "unrar"), _Options(("-p",), apart=False)),
    **dict.fromkeys(("zip", "unzip", "sqlcmd", "bcp"), _LONG_P),
    **dict.fromkeys(("docker", "podman", "helm", "az", "oc"), _LOGIN),
    **dict.fromkeys(("ldapsearch", "ldapadd", "ldapmodify", "ldapdelete", "ldapwhoami"), _LDAP),
    "smbclient": _Options(("--user", "-U"), after="%"),
    "openssl": _Options(("pass:",), apart=False),
    **dict.fromkeys(("plink", "pscp", "psftp"), _Options(("-pw",), joined=False)),
    "lftp": _Options(("-u", "--user"), after=","),
    **dict.fromkeys(("ncftp", "ncftpget", "ncftpput", "cqlsh", "rdesktop", "twine"), _SHORT_P),
    **dict.fromkeys(
        ("keytool", "jarsigner"),
        _Options(("-storepass", "-keypass", "-srcstorepass", "-deststorepass", "-new"), joined=False),
    ),
    "ssh-keygen": _Options(("-N", "-P"), joined=False),
    **dict.fromkeys(("ipmitool", "mosquitto_pub", "mosquitto_sub"), _Options(("-P",), joined=False)),
    **dict.fromkeys(("snmpget", "snmpwalk", "snmpset", "snmpbulkwalk"), _Options(("-A", "-X"), joined=False)),
    **dict.fromkeys(("xfreerdp", "wlfreerdp"), _Options(("/p:",), apart=False)),
}
_PLACES = {
    "redis-cli": (_Place("auth|AUTH"), _Place("auth|AUTH", 2)),  # the user may stand before it
    "rabbitmqctl": (_Place("add_user|change_password|authenticate_user", 2),),
    "htpasswd": (_Place(r"-(?=\w*b)(?!\w*n)\w+", 3), _Place(r"-(?=\w*b)(?=\w*n)\w+", 2)),
    "smbclient": (_Place("//.*"),),
    **dict.fromkeys(("wandb", "vault"), (_Place("login", least=16),)),
    "aws": (_Place("aws_secret_access_key|aws_session_token"),),
    "nmcli": (_Place("password"),),
    **dict.fromkeys(("npm", "pnpm", "yarn"), (_Place(".*:_(?:auth|authToken|password)"),)),
    "rclone": (_Place("obscure"),),
}
_OF_ORACLE = re.compile(r"[\w.$#-]+/(?=[^/\s@]+@)")  # USER/PASSWORD@DATABASE
_ORACLE = {"sqlplus", "sqlldr", "expdp", "impdp", "rman"}
_STARTERS = {"sudo", "doas", "env", "nice", "timeout", "time", "nohup", "xargs", "exec"}
_NAMES = "|".join(sorted(map(re.escape, {*_PROGRAMS, *_PLACES, *_ORACLE}), key=len, reverse=True))
_IN_TEXT = re.compile(rf"(?<![\w.-])(?:{_NAMES})(?:\.exe)?[ \t]+[^\r\n;&|]{{0,2000}}")
_HINT = re.compile(
    r"\s-[-aAbnNpPsuUwX]|pass:|/p:|AUTH|auth\s|_user\s|\s//|login\s|aws_s|password\s|:_|obscure\s|/[^\s/@]+@"
)
_WORDS = re.compile(r"[^\s\"'`]+|\"[^\"\n]*\"|'[^'\n]*'")


def program_secrets(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the passwords are: the number of a word, and at which character of it the password begins."""
    options: _Options | None = None
    places: tuple[_Place, ...] = ()
    behind: list[tuple[_Place, int]] = []
    oracle = waiting = verb = False
    for number, word in enumerate(words):
        behind = [(place, count + 1) for place, count in behind] if not word.startswith("-") else []
        if any(count == place.number and len(word) >= place.least for place, count in behind):
            yield number, 0
            continue
        behind += [(place, 0) for place in places if re.fullmatch(place.verb, word)]
        if oracle and (user := _OF_ORACLE.match(word)):
            yield number, user.end()
            continue
        if options is not None and waiting and not word.startswith("-"):
            waiting = False
            if (at := _begin(word, 0, options)) is not None:
                yield number, at
                options = None if options.starts else options
            continue
        waiting = False
        name = re.sub(r".*[/\\]|\.exe\Z", "", word)
        if (name in _PROGRAMS or name in _PLACES or name in _ORACLE) and _may_be_program(words, number):
            options, places, behind, verb = _PROGRAMS.get(name), _PLACES.get(name, ()), [], False
            oracle = name in _ORACLE
        elif options is not None:
            verb = verb or word == options.verb
            if options.verb and not verb:
                continue
            found = next((option for option in options.names if word.startswith(option)), None)
            if found is None:
                continue
            rest = word[len(found) :]
            if not rest:
                waiting = options.apart
            elif rest.startswith("=") or (options.joined and not found.startswith("--")):
                at = _begin(word, len(found) + rest.startswith("="), options)
                if at is not None:
                    yield number, at
                    options = None if options.starts else options


def hide_in_text(text: str, hide: Callable[[str], str]) -> str:
    """The text with `hide(password)` for each password in a line for a shell that it holds."""
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


def _begin(word: str, start: int, options: _Options) -> int | None:
    if options.after:
        sign = word.find(options.after, start)
        start = sign + 1 if sign >= 0 else len(word)
    return start if start < len(word) else None


def _may_be_program(words: Sequence[str], number: int) -> bool:
    """Whether a word is no value of an option: `--format zip`."""
    before = words[number - 1] if number else ""
    return not before.startswith("-") or words[0].rpartition("/")[2] in _STARTERS
