"""Average basket and spread for each shop of a chain."""
import numpy as np


class Sales:
    def __init__(self, shop, amount):
        self.shop = shop
        self.amount = amount

    @classmethod
    def synthetic(cls, rows, shops, seed=2):
        rng = np.random.default_rng(seed)
        shop = rng.integers(0, shops, rows)
        amount = rng.gamma(2.0, 15.0, rows)
        return cls(shop, amount)


def baskets_of(sales, shop):
    return sales.amount[sales.shop == shop]  # answer


def summarize(sales, shops):
    means = np.zeros(shops)
    spreads = np.zeros(shops)
    for shop in range(shops):
        amounts = baskets_of(sales, shop)  # also
        if amounts.size:
            means[shop] = amounts.mean()
            spreads[shop] = amounts.std()
    return means, spreads


def report(means, spreads, top):
    order = np.argsort(means)[::-1][:top]
    for shop in order:
        print(f"shop {shop:5d} mean {means[shop]:8.3f} spread {spreads[shop]:8.3f}")


def main():
    shops = 5_000
    sales = Sales.synthetic(1_700_000, shops)
    means, spreads = summarize(sales, shops)
    report(means, spreads, 5)
    print("overall", round(float(means.mean()), 4))


if __name__ == "__main__":
    main()
