"""What a place does in these tests, once profkit is there."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from profkit.core.errors import WorkloadError
from profkit.core.files.names import FileNames
from profkit.execution.places.there import Home, serve


def work(requests: IO[bytes], answers: IO[bytes], run: Path, data: Any) -> None:
    """Does what its data says."""

    def do(home: Home) -> Any:
        match data["do"]:
            case "look":
                files = sorted(path.as_posix() for path in Path().rglob("*") if path.is_file())
                return {"files": files, "folder": os.getcwd(), "environ": dict(os.environ), "path": sys.path}
            case "print":
                print("a print of the workload", flush=True)
                subprocess.run(["echo", "and one of its child"], check=True)
                return "printed"
            case "fail":
                raise WorkloadError("it failed", "try again")
            case "break":
                raise ZeroDivisionError("nothing foresaw this")
            case "die":
                os.kill(os.getpid(), signal.SIGKILL)
            case "silence":
                os.kill(os.getpid(), signal.SIGSTOP)
            case "sleep":
                child = subprocess.Popen(["sleep", "1000"], start_new_session=True)
                home.note(f"{os.getpid()} {child.pid}")
                try:
                    time.sleep(1000)
                finally:
                    child.kill()
            case "say":
                for line in data["lines"]:
                    os.write(answers.fileno(), line.encode() + b"\n")
            case "send":
                (run / "out" / "folder").mkdir()
                (run / "out" / "folder" / "large").write_bytes(os.urandom(3 << 20))
                (run / "out" / "empty").touch()
                (run / "out" / "passwd").symlink_to("/etc/passwd")
                home.send_folder(run / "out", FileNames(("empty", "folder/large")))
        return json.loads(json.dumps(data))

    serve(requests, answers, do)
