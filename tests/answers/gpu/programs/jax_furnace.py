"""Heat flow in a furnace wall whose conductivity depends on temperature (measured table)."""
import time

import jax
import jax.numpy as jnp
import numpy as np

SIZE, STEPS, DT = 1024, 240, 0.2
TABLE_T = np.linspace(0.0, 1500.0, 61).astype(np.float32)
TABLE_K = (0.2 + 0.6 * np.exp(-TABLE_T / 500.0)).astype(np.float32)


def lookup(temperature):  # also
    return np.interp(temperature, TABLE_T, TABLE_K).astype(np.float32)  # also


def conductivity(temperature):
    shape = jax.ShapeDtypeStruct(temperature.shape, jnp.float32)
    return jax.pure_callback(lookup, shape, temperature)  # answer


def flux(field, k, axis):
    mean = 0.5 * (k + jnp.roll(k, -1, axis))
    return mean * (jnp.roll(field, -1, axis) - field)


def fixed_edges(field):
    field = field.at[0, :].set(1400.0).at[-1, :].set(60.0)
    return field.at[:, 0].set(field[:, 1]).at[:, -1].set(field[:, -2])


@jax.jit
def step(field):
    k = conductivity(field)  # also
    change = jnp.zeros_like(field)
    for axis in (0, 1):
        f = flux(field, k, axis)
        change = change + f - jnp.roll(f, 1, axis)
    return fixed_edges(field + DT * change), jnp.abs(change).max()


def main():
    noise = jax.random.normal(jax.random.PRNGKey(0), (SIZE, SIZE))
    field = fixed_edges(400.0 + 80.0 * noise)
    field, _ = step(field)
    field.block_until_ready()
    changes = []
    start = time.time()
    for _ in range(STEPS):
        field, change = step(field)
        changes.append(change)
    field.block_until_ready()
    print("change %.3f -> %.3f" % (changes[0], changes[-1]), "mean %.3f" % field.mean())
    print("seconds", time.time() - start)


if __name__ == "__main__":
    main()
