"""Replay the warehouse events of a month and report what is left."""
import random
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Event:
    kind: str
    sku: str
    quantity: int


@dataclass(frozen=True)
class Warehouse:
    stock: dict = field(default_factory=dict)
    received: int = 0
    shipped: int = 0
    refused: int = 0


def with_stock(state, sku, quantity):
    return replace(state, stock={**state.stock, sku: quantity})  # answer


def on_received(state, event):
    state = with_stock(state, event.sku, state.stock.get(event.sku, 0) + event.quantity)  # also
    return replace(state, received=state.received + event.quantity)


def on_shipped(state, event):
    left = state.stock.get(event.sku, 0) - event.quantity
    if left < 0:
        return replace(state, refused=state.refused + 1)
    state = with_stock(state, event.sku, left)  # also
    return replace(state, shipped=state.shipped + event.quantity)


HANDLERS = {"received": on_received, "shipped": on_shipped}


def month(count, skus, seed=3):
    rng = random.Random(seed)
    for _ in range(count):
        kind = "received" if rng.random() < 0.6 else "shipped"
        yield Event(kind, f"SKU{rng.randrange(skus):05d}", rng.randint(1, 20))


def replay(events):
    state = Warehouse()
    for event in events:
        state = HANDLERS[event.kind](state, event)
    return state


def main():
    state = replay(month(120_000, 8_000))
    print(state.received, state.shipped, state.refused, len(state.stock))
    print("left", sum(state.stock.values()))


if __name__ == "__main__":
    main()
