"""Steps of a compiled function; most of its time is a softmax over long rows."""

import jax
import jax.numpy as jnp


@jax.jit  # also
def step(x, w):  # also
    scores = jax.nn.softmax(x @ w, axis=-1)  # answer
    return x + 0.001 * (scores @ w.T)  # also


def main():
    key = jax.random.key(0)
    x = jax.random.normal(key, (16384, 256), jnp.bfloat16)
    w = jax.random.normal(key, (256, 16384), jnp.bfloat16)
    for _ in range(600):
        x = step(x, w)  # also
    x.block_until_ready()  # also
    print(x[0, 0])


main()
