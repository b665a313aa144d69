"""Columns are added to a frame one by one: pandas itself warns of it."""
import numpy as np
import pandas as pd


def features(count):
    frame = pd.DataFrame({"base": np.arange(4000.0)})
    for k in range(count):
        frame[f"lag{k}"] = frame["base"].shift(k)  # answer
    return frame


print(features(1500).shape)
