"""Fit a small MLP in JAX with a decaying learning rate."""
import math
import time
from functools import partial

import jax
import jax.numpy as jnp

WIDTHS = (32, 512, 512, 512, 512, 4)
BATCH, STEPS = 4096, 8


def init(key):
    params = []
    for n_in, n_out in zip(WIDTHS[:-1], WIDTHS[1:]):
        key, sub = jax.random.split(key)
        w = jax.random.normal(sub, (n_in, n_out)) / math.sqrt(n_in)
        params.append((w, jnp.zeros(n_out)))
    return params


def predict(params, x):
    for w, b in params[:-1]:
        x = jax.nn.gelu(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


@partial(jax.jit, static_argnames=("lr",))  # answer
def train_step(params, x, y, lr):  # answer
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)
    params = jax.tree_util.tree_map(lambda p, g: p - lr * g, params, grads)
    return params, loss


def main():
    key = jax.random.PRNGKey(0)
    params = init(key)
    x = jax.random.normal(key, (BATCH, WIDTHS[0]))
    y = jnp.tanh(x[:, :4] * x[:, 4:8])
    start = time.time()
    for step in range(STEPS):
        lr = 0.05 * 0.5 * (1 + math.cos(math.pi * step / STEPS))  # answer
        params, loss = train_step(params, x, y, lr)  # answer
    print("loss", float(loss), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
