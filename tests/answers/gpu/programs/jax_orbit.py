"""Integrate many Duffing oscillators in JAX and keep every state."""
import time

import jax
import jax.numpy as jnp

OSCILLATORS = 262_144
STEPS = 1000
DT = 0.01


@jax.jit
def advance(x, v, t):
    force = x - x ** 3 - 0.2 * v + 0.3 * jnp.cos(1.2 * t)
    v = v + DT * force
    x = x + DT * v
    return x, v


def simulate(x, v):
    history = jnp.zeros((STEPS, OSCILLATORS), dtype=jnp.float32)
    for step in range(STEPS):  # answer
        x, v = advance(x, v, step * DT)
        history = history.at[step].set(x)  # answer
    return history


def main():
    key_x, key_v = jax.random.split(jax.random.PRNGKey(0))
    x = jax.random.normal(key_x, (OSCILLATORS,))
    v = jax.random.normal(key_v, (OSCILLATORS,))
    start = time.time()
    history = simulate(x, v)
    spread = jnp.std(history[-1])
    crossings = jnp.sum(history[1:100] * history[:99] < 0)
    print("spread", float(spread), "crossings", int(crossings))
    print("seconds", time.time() - start)


if __name__ == "__main__":
    main()
