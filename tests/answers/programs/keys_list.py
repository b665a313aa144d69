"""A key is looked for in a list of the keys."""


def count_known(stock, names):
    known = 0
    for name in names:
        if name in list(stock.keys()):  # answer
            known += 1
    return known


stock = {f"part{i}": i for i in range(3000)}
print(count_known(stock, [f"part{i * 13 % 6000}" for i in range(20000)]))
