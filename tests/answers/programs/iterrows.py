import numpy as np
import pandas as pd


def total(frame):
    amount = 0.0
    for _, row in frame.iterrows():  # answer
        amount += row["price"] * row["count"]  # answer
    return amount


print(total(pd.DataFrame({"price": np.arange(60000.0), "count": np.arange(60000)})))
