import os
import tempfile


def save(records):
    with tempfile.NamedTemporaryFile("w", dir=".") as file:
        for record in records:
            file.write(f"{record}\n")
            file.flush()
            os.fsync(file.fileno())  # answer


save(range(3000))
print("saved")
