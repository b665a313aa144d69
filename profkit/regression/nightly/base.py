"""The commit that a night is held against: the newest one whose night was decided and did not regress."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from math import inf
from pathlib import Path

from profkit.core.types import Entry, Outcome
from profkit.regression.history import History, HistoryFilter
from profkit.regression.nightly.config import NightConfig, WorkloadSpec
from profkit.regression.paired.checkout import no_repository, repository_of
from profkit.regression.paired.git import git_line, is_dirty, resolve_commit
from profkit.regression.paired.interleave import TIME
from profkit.regression.times import microseconds

NOT_COMPARED = "not-compared"  # of what has no past, where pairs were to be run and could not be
TONIGHT = "HEAD"
PARENT = "~1"  # of the first night's commit: what that was held against, where nobody names a commit
# Not what could not be decided: its commit may be slower, and to hold the next night against it would hide that.
GOOD: tuple[Outcome, ...] = ("pass", "improved", "new")


@dataclass(frozen=True)
class Base:
    """The commit that tonight is held against, or why there is none.

    `same`: it is tonight's own commit, so there is nothing to run, and no code that could be slower. `first`: no night
    was good yet, and it stands for one. `failed`: there is one, and this clone does not have it.
    """

    commit: str | None
    reason: str = ""
    fix: str | None = None
    same: bool = False
    first: bool = False
    failed: bool = False


def base_of(
    config: NightConfig, history: History | None, spec: WorkloadSpec, tonight: Entry | None = None
) -> Base:
    """The commit to hold tonight against; `tonight` is its run, None where it has not run yet.

    The one that the file pins (`baseline`), else that of the last good night since the last accepted change, else the
    one before the first night's: on a first night HEAD~1, and the same again until a night is good.
    """
    if spec.on is not None:
        return Base(None, "it runs elsewhere (on:), and pairs are run here")
    root = repository_of(spec.cwd)
    if root is None:
        fault = no_repository(spec.cwd, "git init, or paired: never")
        return Base(None, fault.reason, fault.fix or "install git, or paired: never")
    dirty = is_dirty(root)
    names = [config.baseline] if config.baseline else _good(history, spec, tonight)
    name = next((name for name in names if resolve_commit(root, name)), names[0])
    commit = resolve_commit(root, name)
    first = name.endswith(PARENT)
    if commit is None and first and resolve_commit(root, name.removesuffix(PARENT)):
        return _no_parent(root)
    if commit is None and resolve_commit(root, TONIGHT) is None:
        return Base(None, "the repository has no commit yet", first=True)
    if commit is None:
        fetch = (
            "git fetch --unshallow" if _is_shallow(root) else f"git fetch origin {name.removesuffix(PARENT)}"
        )
        return Base(
            None,
            f"this clone does not have the commit {_short(name)}",
            f"{fetch}  # in CI fetch-depth: 0; or, where it is gone for good, "
            f"profkit history accept {shlex.quote(spec.name)} --because 'rewritten'",
            failed=True,
        )
    if commit == resolve_commit(root, TONIGHT) and not dirty:
        reason = (
            "a change is accepted that begins tonight"
            if name == TONIGHT
            else "nothing was committed since the last good night"
        )
        return Base(commit, f"{reason} ({commit[:12]})", same=True)
    return Base(commit, first=first)


def _no_parent(root: Path) -> Base:
    if _is_shallow(root):
        return Base(
            None,
            "this clone is shallow: the commit before this one is not in it",
            "git fetch --unshallow  # in GitHub Actions: actions/checkout with fetch-depth: 0",
            failed=True,
        )
    return Base(None, "there is no commit before this one", first=True)


def _is_shallow(root: Path) -> bool:
    return git_line(root, "rev-parse", "--is-shallow-repository") == "true"


def _short(name: str) -> str:
    return name[:12] if len(name.removesuffix(PARENT)) == 40 else name


def _good(history: History | None, spec: WorkloadSpec, tonight: Entry | None) -> list[str]:
    """The commits of good nights before tonight and since the last accepted change, the newest first.

    Or what stands for them. Several, since the newest one may be gone after a forced push.
    """
    if history is None:
        return [f"{TONIGHT}{PARENT}"]
    accepted = [microseconds(c.since) for c in history.accepted(spec.name) if c.metric in (None, TIME)]
    now = microseconds(tonight.started) if tonight is not None else inf
    since = max((time for time in accepted if time <= now), default=None)
    entries = [
        entry
        for entry in history.entries(HistoryFilter(spec.name))
        if entry.commit and not entry.dirty
        if tonight is None or (entry.id != tonight.id and entry.started < tonight.started)
    ]
    young = [entry for entry in entries if since is None or microseconds(entry.started) >= since]
    words = [told for key, told in history.confirmed(spec.name).items() if key.metric == TIME]
    compared = [entry for entry in young if not any(told.get(entry.id) == NOT_COMPARED for told in words)]
    good = [
        entry.commit for entry in reversed(compared) if entry.commit and entry.valid and entry.outcome in GOOD
    ]
    if good:
        return list(dict.fromkeys(good))
    if since is not None:  # what was accepted is the new normal, though its own night had failed
        return [young[0].commit or TONIGHT if young else TONIGHT]
    return [f"{young[0].commit if young else TONIGHT}{PARENT}"]
