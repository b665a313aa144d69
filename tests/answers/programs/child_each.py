import subprocess
import sys


def sizes(names):
    found = []
    for name in names:
        done = subprocess.run(["wc", "-c", name], capture_output=True, text=True)  # answer
        found.append(int(done.stdout.split()[0]))
    return found


print(sum(sizes([sys.argv[0]] * 500)))
