"""Deep Q-learning on a toy cart problem with a replay memory."""
import random
from collections import deque, namedtuple

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = "cuda" if torch.cuda.is_available() else "cpu"
Transition = namedtuple("Transition", "state action reward next_state done")
BATCH, UPDATES, GAMMA = 256, 60, 0.99


def make_net():
    return nn.Sequential(
        nn.Linear(8, 256), nn.ReLU(),
        nn.Linear(256, 256), nn.ReLU(),
        nn.Linear(256, 4),
    ).to(device)


def fill_memory(size):
    rng = np.random.default_rng(0)
    memory = deque(maxlen=size)
    state = rng.standard_normal(8).astype(np.float32)
    for _ in range(size):
        action = int(rng.integers(4))
        nxt = 0.9 * state + 0.1 * rng.standard_normal(8).astype(np.float32)
        nxt[action] += 0.2
        reward = float(-np.abs(nxt).sum())
        memory.append(Transition(state, action, reward, nxt, float(rng.random() < 0.01)))
        state = nxt
    return list(memory)


def to_batch(samples, field, dtype):
    return torch.stack([  # answer
        torch.tensor(getattr(t, field), dtype=dtype, device=device) for t in samples  # answer
    ])


def main():
    torch.manual_seed(0)
    memory = fill_memory(20000)
    net, target = make_net(), make_net()
    target.load_state_dict(net.state_dict())
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)
    for update in range(UPDATES):
        samples = random.sample(memory, BATCH)
        states = to_batch(samples, "state", torch.float32)  # answer
        actions = to_batch(samples, "action", torch.int64)  # answer
        rewards = to_batch(samples, "reward", torch.float32)  # answer
        next_states = to_batch(samples, "next_state", torch.float32)  # answer
        done = to_batch(samples, "done", torch.float32)  # answer
        with torch.no_grad():
            best = target(next_states).max(dim=1).values
            goal = rewards + GAMMA * (1 - done) * best
        q = net(states).gather(1, actions[:, None]).squeeze(1)
        loss = F.smooth_l1_loss(q, goal)
        opt.zero_grad()
        loss.backward()
        opt.step()
        if update % 50 == 0:
            target.load_state_dict(net.state_dict())
    print("loss", loss.item())


if __name__ == "__main__":
    main()
