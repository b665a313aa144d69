"""Fit a residual MLP to a noisy surface with JAX and Adam written as tree maps."""
import time

import jax
import jax.numpy as jnp

WIDTH, DEPTH, BATCH, STEPS = 256, 8, 512, 200
B1, B2, EPS, LR = 0.9, 0.999, 1e-8, 1e-3


def init_params(key):
    params = []
    for sub in jax.random.split(key, DEPTH):
        w = jax.random.normal(sub, (WIDTH, WIDTH)) * (WIDTH ** -0.5)
        params.append({"w": w, "b": jnp.zeros(WIDTH)})
    return params


def predict(params, x):
    for layer in params:
        x = x + jnp.tanh(x @ layer["w"] + layer["b"])
    return x[:, 0]


def loss_fn(params, x, y):
    return jnp.mean((predict(params, x) - y) ** 2)


def train_step(params, m, v, t, x, y):  # answer
    loss, grads = jax.value_and_grad(loss_fn)(params, x, y)  # answer
    m = jax.tree.map(lambda a, g: B1 * a + (1 - B1) * g, m, grads)  # answer
    v = jax.tree.map(lambda a, g: B2 * a + (1 - B2) * g * g, v, grads)  # answer
    fix1, fix2 = 1 - B1 ** t, 1 - B2 ** t
    params = jax.tree.map(  # answer
        lambda p, a, b: p - LR * (a / fix1) / (jnp.sqrt(b / fix2) + EPS), params, m, v)  # answer
    return params, m, v, loss


def main():
    key_params, key_x = jax.random.split(jax.random.PRNGKey(0))
    params = init_params(key_params)
    m = jax.tree.map(jnp.zeros_like, params)
    v = jax.tree.map(jnp.zeros_like, params)
    x = jax.random.normal(key_x, (BATCH, WIDTH))
    y = jnp.sin(x[:, 1]) * x[:, 2]
    losses = []
    start = time.time()
    for step in range(STEPS):
        params, m, v, loss = train_step(params, m, v, step + 1, x, y)  # answer
        losses.append(loss)
    losses = jnp.stack(losses)
    print("loss %.4f -> %.4f" % (losses[0], losses[-1]), "seconds", time.time() - start)


if __name__ == "__main__":
    main()
