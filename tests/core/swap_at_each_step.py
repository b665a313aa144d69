"""Run as root: `swap_at_each_step.py FOLDER WHAT HOW`: profiles a program once for each step of a run.

Before the step of its turn another user takes a name: WHAT is `base` (the folder that runs are written to) or `run`
(that of the run). A link to a folder of root's stands there then, HOW is `stay` until the end, or `blink` until the
step after. Prints as JSON how many steps there were, and at which of them something came into root's folder.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from pathlib import Path

from profkit.core.errors import ProfkitError, Progress
from profkit.profiling.profile import ProfileOptions, profile_workload

STRANGER = 65534
# What a tool does: it writes where the run lies, by a path.
TOOL = 'p=${PROFKIT_DIRECTIVE#*\\"record\\": \\"}; echo x >"${p%%\\"*}.1.json"'
STEPS = {
    "open",
    "os.chown",
    "os.link",
    "os.listdir",
    "os.mkdir",
    "os.mkfifo",
    "os.remove",
    "os.rename",
    "os.scandir",
    "os.symlink",
    "subprocess.Popen",
}


class Swapper:
    """The other user. `seen` counts the steps of a run; at number `turn` the name is taken."""

    def __init__(self, what: str, how: str) -> None:
        self.what, self.blinks = what, how == "blink"
        self.base = self.victim = Path()
        self.turn = self.seen = 0
        self.taken: Path | None = None
        self.active = False
        sys.addaudithook(self.at)

    def at(self, event: str, words: tuple[object, ...]) -> None:
        """A step: it opens, makes, moves or starts something of the run."""
        if not self.active or event not in STEPS or not self._is_ours(event, words):
            return
        self.active = False  # what is done here are no steps
        self.seen += 1
        if self.seen == self.turn:
            self.take()
        elif self.seen == self.turn + 1 and self.blinks:
            self.give_back()
        self.active = True

    def take(self) -> None:
        """Put a link in place of the name, where it is there already."""
        runs = sorted(self.base.glob("2*"))
        path = self.base if self.what == "base" else runs[0] if runs else None
        if path is not None and path.is_dir():
            path.rename(path.with_name("moved"))
            path.symlink_to(self.victim)
            os.chown(path, STRANGER, STRANGER, follow_symlinks=False)
            self.taken = path

    def give_back(self) -> None:
        """Undo it."""
        if self.taken is not None and self.taken.is_symlink():
            self.taken.unlink()
            self.taken.with_name("moved").rename(self.taken)
        self.taken = None

    def _is_ours(self, event: str, words: tuple[object, ...]) -> bool:
        text = str(words[0]) if words else ""
        return event == "subprocess.Popen" or "/" not in text or "/fd/" in text or str(self.base) in text


def main() -> None:
    """Turn after turn, until a run ends before its turn comes."""
    folder, what, how = Path(sys.argv[1]), *sys.argv[2:4]
    os.fsync = lambda _: None  # no disk fails here, and hundreds of runs would wait for it
    swapper, planted, finished, turn = Swapper(what, how), [], 0, 0
    while swapper.seen >= turn:
        turn += 1
        home = folder / str(turn)
        swapper.base, swapper.victim, swapper.taken = home / "strangers" / "reports", home / "victim", None
        for path in (swapper.base, swapper.victim):
            path.mkdir(parents=True)
        for path in (swapper.base, swapper.base.parent):
            os.chown(path, STRANGER, STRANGER)
        swapper.turn, swapper.seen = turn, 0
        options = ProfileOptions(
            ("sh", "-c", TOOL),
            backend="cpu",
            depth="gate",
            passes=("timing",),
            output=swapper.base,
            precision=0.5,
            sampling=0.001,
        )
        swapper.active = True
        with contextlib.suppress(ProfkitError):
            profile_workload(options, Progress(), page=False)
            finished += 1
        swapper.active = False
        if any(swapper.victim.iterdir()):
            planted.append(turn)
    print(json.dumps({"steps": turn - 1, "finished": finished, "planted": planted}))


if __name__ == "__main__":
    main()
