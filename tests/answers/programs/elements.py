import numpy as np


def brighten(image, factor):
    rows, columns = image.shape
    result = np.empty_like(image)
    for y in range(rows):
        for x in range(columns):
            result[y, x] = min(255.0, image[y, x] * factor)  # answer
    return result


print(brighten(np.full((1400, 1400), 100.0), 1.5).sum())
