"""Secrets in a text or a command by the forms that they have: names of options and variables, tokens, addresses.

Options like `-pX` are like any other word by their form (`docker run -p 80:80`): for programs that are known
(`mysql -pX`, `curl -u USER:X`) the program's name decides, as its own manual says. What has no such form is not found.
"""

from __future__ import annotations

import dataclasses
import functools
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast


@dataclass(frozen=True)
class _Options:
    """Which options hold a password: the next word, or the rest of the same one."""

    names: tuple[str, ...]
    apart: bool = True  # `-p X`
    joined: bool = True  # `-pX`
    after: str = ""  # the password is what stands behind this sign
    verb: str = ""  # only behind this word: `docker login`
    starts: bool = False  # what follows is another program's command


_SHORT_P = _Options(("-p",))  # `mysql -p X` is no password, but a frequent mistake
_PROGRAMS = {
    **dict.fromkeys(("mysql", "mysqldump", "mysqladmin", "mysqlimport", "mariadb", "mariadb-dump"), _SHORT_P),
    **dict.fromkeys(("mongo", "mongosh", "mongodump", "mongorestore"), _SHORT_P),
    "sshpass": _Options(("-p",), starts=True),
    "curl": _Options(("--user", "--proxy-user", "-u", "-U"), after=":"),
    "redis-cli": _Options(("--pass", "-a"), joined=False),
    "wget": _Options(("--password", "--http-password", "--ftp-password", "--proxy-password")),
    **dict.fromkeys(("7z", "7za", "7zr", "7zz"), _Options(("-p",), apart=False)),
    **dict.fromkeys(("zip", "unzip"), _Options(("-P",))),
    **dict.fromkeys(("docker", "podman", "helm"), _Options(("-p",), joined=False, verb="login")),
    "smbclient": _Options(("--user", "-U"), after="%"),
    "openssl": _Options(("pass:",), apart=False),
}
_STARTERS = {"sudo", "doas", "env", "nice", "timeout", "time", "nohup", "xargs", "exec"}
_NAMES = "|".join(sorted(map(re.escape, _PROGRAMS), key=len, reverse=True))
_IN_TEXT = re.compile(rf"(?<![\w.-])(?:{_NAMES})(?:\.exe)?[ \t]+[^\r\n;&|]{{0,2000}}")
_HINT = re.compile(r"\s-[-apPuU]|pass:")
_WORDS = re.compile(r"[^\s\"'`]+|\"[^\"\n]*\"|'[^'\n]*'")


def program_secrets(words: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Where the passwords are: the number of a word, and at which character of it the password begins."""
    options: _Options | None = None
    waiting = verb = False
    for number, word in enumerate(words):
        at, is_next, waiting = None, waiting and not word.startswith("-"), False
        name = re.sub(r".*[/\\]|\.exe\Z", "", word)
        if options is not None and is_next:
            at = _begin(word, 0, options)
        elif name in _PROGRAMS and _may_be_program(words, number):
            options, verb = _PROGRAMS[name], False
        elif options is not None:
            verb = verb or word == options.verb
            found = next((option for option in options.names if word.startswith(option)), None)
            if found is None or (options.verb and not verb):
                continue
            rest = word[len(found) :]
            if not rest:
                waiting = options.apart
            elif rest.startswith("=") or (options.joined and not found.startswith("--")):
                at = _begin(word, len(found) + rest.startswith("="), options)
        if at is not None and options is not None:
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


_T = TypeVar("_T")

HIDDEN = "***"
# Forms that the givers of tokens document: Hugging Face, GitHub, GitLab, OpenAI and Anthropic, AWS, Slack, Google,
# Stripe, SendGrid, Vault, DigitalOcean, Docker; and JSON web tokens, which begin with {" in base 64. One of plain hex
# (Weights & Biases) its variable's name tells.
TOKEN_FORM = re.compile(
    r"\b(?:hf_\w{12,}|gh[pousr]_\w{12,}|github_pat_\w{12,}|glpat-[\w-]{12,}|sk-[\w-]{16,}|A[KS]IA[0-9A-Z]{16}"
    r"|[sr]k_(?:live|test)_\w{16,}|SG\.[\w-]{16,}\.[\w-]{16,}|hvs\.[\w-]{20,}|dop_v1_[0-9a-f]{40,}"
    r"|ya29\.[\w-]{20,}|dckr_pat_[\w-]{20,}|xapp-[\w-]{10,}|(?<=hooks\.slack\.com/services/)[\w/]{8,}"
    r"|xox[abprs]-[\w-]{10,}|AIza[\w-]{30,}|npm_\w{30,}|pypi-[\w-]{30,}|eyJ[\w-]{8,}\.[\w-]{4,}\.[\w-]*)"
)
# user:password@ of an address, or a token alone before the @ of one by http
LOGIN = re.compile(r"(?<=://)(?:[^/\s:@\"']*:[^/\s@\"']+|[^/\s:@\"']{16,})(?=@)")
KEY_BLOCK = re.compile(
    r"-----BEGIN [A-Z0-9 ]{0,40}(?:PRIVATE KEY|CERTIFICATE|MESSAGE)[A-Z ]{0,9}-----"
    r"(?:(?!-----END)[\w\s+/=.,:\\-]){0,20000}(?:-----END [A-Z0-9 ]{0,60}-----)?"
)
_HEADER = re.compile(
    r"(\b(?:proxy-)?authorization\\?[\"']?\s{0,2}[:=]\s{0,2}\\?[\"']?(?:(?:bearer|basic|token|digest|negotiate|apikey)\s+)?)"
    r"([^\s\"',;\\]+)"
    r"|(\bbearer\s+)([\w.~+/-]{8,}=*)"
    r"|(\b(?:set-)?cookie\\?[\"']?\s{0,2}:\s{0,2}\\?[\"']?)([^\r\n\"'\\]*=[^\r\n\"'\\]+)",
    re.IGNORECASE,
)
_HEADER_WORD = re.compile(r"[aA]uthorization|AUTHORIZATION|[bB]earer|BEARER|[cC]ookie|COOKIE")
_QUERY = re.compile(
    r"((?<=[?&;])[\w.-]{0,40}(?:key|sig|signature|token|secret|passw(?:or)?d|pwd|auth|code|credential|session)=)([^&\s\"'#<>]+)",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?:token|secrets?|pass(?:w(?:or)?d|phrase)?|pwd?|key(?:[-_]?id)?|credentials?|auth|bearer)"
    r"(?:(\\?[\"']?\s{0,2}(?:=(?!=)|:(?![:/\\]))\s{0,2}\\?[\"']?)|(\s{1,9})(?!-))",
    re.IGNORECASE,
)
_VALUE = re.compile(r"[^\s\"',;&|<>(){}\[\]\\]+")
_BEFORE = re.compile(r"(?<![\w.-])-{0,2}(?:[A-Za-z_][\w.-]*)?\Z")
_LONGEST_NAME = 60
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_ALWAYS = {"password", "passwd", "passphrase", "pwd", "secret", "secrets", "apikey", "authtoken"}
_ALWAYS |= {"accesstoken", "bearer", "credential", "credentials", "sshpass"}
_PASSES = {"", "db", "database", "user", "admin", "root", "smtp", "mail", "proxy", "http", "ftp", "redis"}
_PASSES |= {"ssh"}
_KEYS = {"api", "access", "secret", "private", "encryption", "license", "ssh", "account", "storage"}
_KEYS |= {"signing", "master", "service", "subscription", "deploy", "auth", "wandb", "openai"}
# Words of language models, which are no secrets
_TOKENS_OF_TEXT = {"pad", "eos", "bos", "unk", "mask", "sep", "cls", "special", "stop", "end", "start"}
_TOKENS_OF_TEXT |= {"image", "next", "first", "last", "max", "min", "num", "per", "new", "prompt", "audio"}
_TOKENS_OF_TEXT |= {"video", "decoder", "time"}
_NO_VALUE = re.compile(r"\*+|none|null|true|false|undefined|<\w+>|\$\{?\w+\}?", re.IGNORECASE)
_VARIABLE = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|_KEY|APIKEY|CRED|COOKIE|PRIVATE|WEBHOOK|DSN", re.IGNORECASE
)
LEAST_ANYWHERE = 6  # characters of a value that is hidden wherever it stands


@functools.lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """Whether an option or a variable of this name holds a secret: `--hf-token`, `DB_PASSWORD`, `apiKey`."""
    if name in ("PWD", "OLDPWD"):
        return False
    words = [word for part in re.split(r"[-_.]+", name) for word in _CAMEL.split(part) if word]
    *before, last = [word.lower() for word in words] or [""]
    previous = before[-1] if before else ""
    if last == "id" and before[-2:] == ["access", "key"]:
        return True
    if last == "key":
        return previous in _KEYS
    if last == "auth":
        return previous in ("", "basic", "http", "proxy", "x")
    if last in ("pass", "pw"):
        return previous in _PASSES
    return (
        last in _ALWAYS
        or last.endswith(("password", "passwd", "passphrase"))
        or (last == "token" and previous not in _TOKENS_OF_TEXT)
    )


def is_secret_variable(name: str, value: str = "") -> bool:
    """Whether a variable of the environment may hold a secret, by its name or its form; rather once too often.

    The address of a proxy is needed by whoever goes on from here, so it is none.
    """
    if _VARIABLE.search(name) or is_secret_name(name):
        return True
    in_value = TOKEN_FORM.search(value) or KEY_BLOCK.search(value) or LOGIN.search(value)
    return in_value is not None and not name.lower().endswith("_proxy")


def hide_secrets(text: str, hide: Callable[[str], str]) -> str:
    """The text with `hide(secret)` for each secret in it that its form or its name tells."""
    text = KEY_BLOCK.sub(lambda found: hide(found[0]), text)
    text = TOKEN_FORM.sub(lambda found: hide(found[0]), text)
    if "://" in text:
        text = LOGIN.sub(lambda found: hide(found[0]), text)
    if _HEADER_WORD.search(text) is not None:  # ten times as fast as the whole form
        text = _HEADER.sub(lambda found: _second_hidden(found.groups(), hide), text)
    text = hide_in_text(text, lambda value: _hide_value(value, hide))
    text = _QUERY.sub(lambda found: found[1] + _hide_value(found[2], hide), text)
    return "".join(_named_hidden(text, hide))


def _second_hidden(groups: Sequence[str | None], hide: Callable[[str], str]) -> str:
    name, value = [group for group in groups if group is not None]
    return name + _hide_value(value, hide)


def _hide_value(value: str, hide: Callable[[str], str]) -> str:
    return value if _NO_VALUE.fullmatch(value) else hide(value)


def _named_hidden(text: str, hide: Callable[[str], str]) -> Iterator[str]:
    done = at = 0
    while (found := _NAMED.search(text, at)) is not None:
        mark = found[1] or found[2]
        # "auth token=x": the next word may be the name
        at = found.end() if found[1] else found.end() - len(mark)
        start = found.start()
        before = _BEFORE.search(text, max(0, start - _LONGEST_NAME), start)
        if before is None:  # in the middle of a longer word
            continue
        name = before[0] + text[start : found.end() - len(mark)]
        if not is_secret_name(name.lstrip("-")):
            continue
        if found[2] and not name.startswith("-"):  # "the token is": only an option has its value so
            continue
        value = _VALUE.match(text, found.end())
        if value is None:
            continue
        at = value.end()
        if _is_named_secret(name, mark, value[0]) and text[at : at + 1] not in ("(", "["):  # password=ask()
            yield text[done : value.start()]
            yield hide(value[0])
            done = at
    yield text[done:]


def _is_named_secret(name: str, mark: str, value: str) -> bool:
    is_word = name.lower().endswith("token") or name.lower() in ("pass", "pw")
    return not _NO_VALUE.fullmatch(value) and (not is_word or _is_token(mark, value))


def _is_token(mark: str, value: str) -> bool:
    """Whether it is no number of tokens, and no line of a program: `token = ids[i]`, `f(token=next_token)`."""
    if re.fullmatch(r"[\d.]{1,9}|[A-Za-z_.]+", value):
        return False
    return "= " not in mark or len(value) >= 16


def mask_command(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A command with its secrets hidden, and what they are. `--password x`, `--token=x`, `API_KEY=x`, and tokens."""
    masked: list[str] = []
    values: list[str] = []

    def hide(value: str) -> str:
        values.append(value)
        return HIDDEN

    is_value = False
    of_programs = dict(program_secrets(words))
    for number, word in enumerate(words):
        if (at := of_programs.get(number)) is not None:
            masked.append(word[:at] + _hide_value(word[at:], hide))
            is_value = False
            continue
        if is_value and not word.startswith("--") and not _is_plain(masked[-1], word):
            masked.append(_hide_value(word, hide))
            is_value = False
            continue
        option, equals, value = word.partition("=")
        is_value = False
        if option.startswith("-") and not equals and is_secret_name(option.lstrip("-")):
            is_value = True
        elif (
            equals
            and value
            and re.fullmatch(r"[\w.+-]+", option)
            and is_secret_name(option.lstrip("-"))
            and not _is_plain(option, value)
        ):
            word = f"{option}={_hide_value(value, hide)}"
        else:
            word = hide_secrets(word, hide)
        masked.append(word)
    return tuple(masked), tuple(dict.fromkeys(values))


def hide_values(value: _T, secrets: Sequence[str]) -> _T:
    """Plain data, or dataclasses, without the secrets of a command; one of a few letters only beside its name."""
    return cast("_T", _hide_in(value, secrets)) if secrets else value


def _hide_in(value: Any, secrets: Sequence[str]) -> Any:
    if isinstance(value, str):
        for secret in secrets:
            if secret in value:
                short = len(secret) < LEAST_ANYWHERE
                value = hide_secrets(value, lambda _: HIDDEN) if short else value.replace(secret, HIDDEN)
        return value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changes = {
            field.name: new
            for field in dataclasses.fields(value)
            if (new := _hide_in(old := getattr(value, field.name), secrets)) is not old
        }
        return dataclasses.replace(value, **changes) if changes else value
    if isinstance(value, (tuple, list)):
        words = value
        if any(secret in words for secret in secrets) and all(isinstance(word, str) for word in words):
            words = type(value)(mask_command(words)[0])
        new = type(value)(_hide_in(part, secrets) for part in words)
        return value if len(new) == len(value) and all(map(operator.is_, new, value)) else new
    if isinstance(value, Mapping):
        return {_hide_in(key, secrets): _hide_in(part, secrets) for key, part in value.items()}
    return value


def _is_plain(option: str, value: str) -> bool:
    """Whether it is a number of tokens or of passes, and no token."""
    return option.lower().endswith(("token", "-pass")) and re.fullmatch(r"[\d.]{1,9}", value) is not None
