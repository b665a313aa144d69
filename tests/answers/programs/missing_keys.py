STOCK = {f"item {n}": n for n in range(1000)}


def in_stock(name):
    try:
        return STOCK[name]  # answer
    except KeyError:  # answer
        return -1


def ask(orders):
    found = 0
    for number in range(orders):
        if in_stock(f"part {number % 997}") >= 0:
            found += 1
    return found


print(ask(900000))
