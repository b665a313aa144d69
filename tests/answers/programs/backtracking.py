import re

ADDRESS = re.compile(r"^(\w+\s?)*$")


def valid(line):
    return ADDRESS.match(line) is not None  # answer


lines = ["some ordinary words in a line"] * 400 + ["aaaaaaaaaaaaaaaaaaaaaaaa!"]
print(sum(valid(line) for line in lines))
