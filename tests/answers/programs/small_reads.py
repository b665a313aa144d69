import os
import tempfile


def count_newlines(path):
    file = os.open(path, os.O_RDONLY)
    count = 0
    while byte := os.read(file, 1):  # answer
        count += byte == b"\n"
    os.close(file)
    return count


with tempfile.NamedTemporaryFile("w") as text:
    text.write("a line of text\n" * 90000)
    text.flush()
    print(count_newlines(text.name))
