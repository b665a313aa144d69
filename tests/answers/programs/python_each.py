import subprocess
import sys


def convert(number):
    code = f"print({number} * 2)"
    return int(subprocess.run([sys.executable, "-c", code], capture_output=True).stdout)  # answer


print(sum(convert(number) for number in range(60)))
