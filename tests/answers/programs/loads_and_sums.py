def load():
    return [[i] for i in range(700000)]


def work(n=2000000):
    total = 0
    for i in range(n):
        total += i * i % 7  # answer
    return total


tables = load()  # also
for _ in range(4):
    print(work())
print(len(tables))
