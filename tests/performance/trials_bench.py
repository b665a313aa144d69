"""Twenty programs: ten that a trial makes faster, ten that look as if it would. What does each run say was faster?

    python tests/performance/trials_bench.py [NAME...]

Wanted: at least nine of the first ten, and none of the second ten. Run it on a quiet machine and on a busy one.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RECORDS = """
class Record:
    def __init__(self, number):
        self.number = number
        self.tags = [str(number), str(number + 1)]
        self.parts = {"a": [number], "b": (number, [number])}
"""
LOOP = """
    total = 0
    for i in range(3000):
        total += i * a % 7
"""
HELPS = {
    "objects-kept": RECORDS + "kept = [Record(i) for i in range(350_000)]\nprint(len(kept))",
    "rows-parsed": "import json\ntext = json.dumps({'a': [1, 2, {'b': []}], 'c': {'d': [[], {}]}})\n"
    "rows = [json.loads(text) for _ in range(250_000)]\nprint(len(rows))",
    "function-asked-again": f"def cost(a):{LOOP}    return total\n"
    "print(sum(cost(i % 5) for i in range(6000)))",
    "text-asked-again": "def key(name):\n    out = ''\n    for letter in name * 40:\n"
    "        out += letter.upper() if letter in 'aeiou' else letter\n    return out\n"
    "names = ['alpha', 'beta', 'gamma', 'delta']\nprint(sum(len(key(names[i % 4])) for i in range(90_000)))",
    "flushed-lines": "for i in range(700_000):\n    print(i, flush=True)",
    "flushed-output": "import sys\nfor i in range(600_000):\n    print(i, i)\n    sys.stdout.flush()",
    "processes-and-threads": "import torch\nfrom multiprocessing import get_context\n"
    "def work(seed):\n    torch.manual_seed(seed)\n    a = torch.randn(200, 200)\n"
    "    for _ in range(1500):\n        a = torch.tanh(a @ a * 0.01)\n    return round(float(a.sum()), 1)\n"
    "if __name__ == '__main__':\n    with get_context('spawn').Pool(4) as pool:\n"
    "        print(len(pool.map(work, range(8))))",
    "one-thread-asked": "import numpy as np\na = np.ones((1500, 1500), dtype=np.float32)\n"
    "for _ in range(25):\n    b = a @ a\nprint(float(b[0, 0]))",
    "rows-in-batches": "import numpy as np\ntotal = 0.0\nfor _ in range(250):\n"
    "    rows = [np.full(8_000, i, dtype=np.float64) for i in range(300)]\n"
    "    total += sum(float(row[-1]) for row in rows)\nprint(total)",
    "blocks-in-batches": "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\nint main(void) {\n"
    "    unsigned long sum = 0;\n    for (int round = 0; round < 300; round++) {\n        char *blocks[250];\n"
    "        for (int i = 0; i < 250; i++) {\n            blocks[i] = malloc(60000);\n"
    "            memset(blocks[i], i, 60000);\n        }\n"
    "        for (int i = 250; i-- > 0;) {\n            sum += blocks[i][round];\n            free(blocks[i]);\n"
    '        }\n    }\n    printf("%lu\\n", sum);\n}',
}
LOOKS_SO = {
    "collected-by-hand": RECORDS + "import gc\nkept = [Record(i) for i in range(60_000)]\n"
    "for _ in range(40):\n    gc.collect()\nprint(len(kept))",
    "own-threshold": "import gc\ngc.set_threshold(300, 5, 5)\n"
    + RECORDS
    + "kept = [Record(i) for i in range(120_000)]\nprint(len(kept))",
    "function-that-counts": f"calls = 0\ndef cost(a):\n    global calls\n    calls += 1{LOOP}    return total + calls\n"
    "print(sum(cost(i % 5) for i in range(6000)))",
    "arguments-that-change": "def cost(a):\n    total = 0\n    for i in range(3000):\n        total += i * a[0] % 7\n"
    "    return total\nbox = [1]\ns = 0\nfor i in range(6000):\n    box[0] = i % 5\n    s += cost(box)\nprint(s)",
    "result-that-is-changed": "def row(a):\n    out = []\n    for i in range(3000):\n        out.append(i * a % 7)\n"
    "    return out\ns = 0\nfor i in range(6000):\n    r = row(i % 5)\n    r[0] += i\n    s += r[0]\nprint(s)",
    "written-to-a-file": "import os, tempfile\nfd, path = tempfile.mkstemp()\nfor i in range(800_000):\n"
    "    os.write(fd, b'12345\\n')\nprint(os.path.getsize(path))\nos.unlink(path)",
    "written-by-a-shell": "import subprocess\nsubprocess.run(['sh', '-c', "
    "'i=0; while [ $i -lt 300000 ]; do echo $i; i=$((i+1)); done'])",
    "threads-at-work": "import torch\na = torch.ones(700, 700)\nfor _ in range(120):\n"
    "    b = a @ a\nprint(float(b[0, 0]))",
    "small-nodes": "#include <map>\n#include <cstdio>\nint main() {\n    unsigned long sum = 0;\n"
    "    for (int round = 0; round < 8; round++) {\n        std::map<int, int> tree;\n"
    "        for (int i = 0; i < 300000; i++) tree[(i * 7919LL) % 1000003] = i;\n        sum += tree.size();\n    }\n"
    '    printf("%lu\\n", sum);\n}',
    "random-time": "import random, time\nclass Node:\n    def __init__(self, number):\n"
    "        self.child = [self, number]\nfor i in range(400_000):\n    Node(i)\n"
    "time.sleep(random.random())\nprint(i)",
}
LIMITED = {"one-thread-asked": {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}}


def command(folder: Path, name: str, source: str) -> list[str]:
    """Write the program, build it where it is to be built, and return its command."""
    if "#include" not in source:
        (folder / f"{name}.py").write_text(source + "\n")
        return [sys.executable, f"{name}.py"]
    suffix, compiler = (".cpp", "g++") if "<map>" in source else (".c", "gcc")
    (folder / f"{name}{suffix}").write_text(source + "\n")
    subprocess.run([compiler, "-O2", "-g", "-o", name, f"{name}{suffix}"], cwd=folder, check=True)
    return [f"./{name}"]


def trials(folder: Path, name: str, source: str) -> list[dict[str, object]]:
    """Profile the program with its trials, and return those."""
    line = [sys.executable, "-m", "profkit", "profile", "--quiet", "--passes", "timing,stacks,trace,try"]
    line += ["--output", f"reports-{name}", "--format", "json", "--", *command(folder, name, source)]
    done = subprocess.run(
        line, cwd=folder, env={**os.environ, **LIMITED.get(name, {})}, capture_output=True, text=True
    )
    found: list[dict[str, object]] = json.loads(done.stdout)["trials"] if done.stdout else []
    return found


def main(names: list[str]) -> None:
    """Print a line for each program, and the two counts."""
    right = {True: 0, False: 0}
    with tempfile.TemporaryDirectory() as made:
        for helps, programs in ((True, HELPS), (False, LOOKS_SO)):
            for name, source in programs.items():
                if names and name not in names:
                    continue
                if "#include" in source and shutil.which("gcc") is None:
                    print(f"{name}: no compiler here")
                    continue
                told = trials(Path(made), name, source)
                faster = [one for one in told if one["state"] == "faster"]
                right[helps] += bool(faster) is helps
                said = (
                    ", ".join(f"{one['name']} {one['state']} {one['ratio'] or ''}" for one in told)
                    or "no trial"
                )
                print(f"{'helps' if helps else 'looks so':9} {name:24} {said}", flush=True)
    print(f"shown of those that help: {right[True]}; not shown of those that only look so: {right[False]}")


if __name__ == "__main__":
    main(sys.argv[1:])
