ORDERS = [(n, n % 1500) for n in range(9000)]
CUSTOMERS = [(n, f"name {n}") for n in range(1500)]


def names():
    result = []
    for order, customer in ORDERS:
        for number, name in CUSTOMERS:  # answer
            if number == customer:  # answer
                result.append((order, name))
    return result


print(len(names()))
