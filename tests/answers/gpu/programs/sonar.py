"""Find echoes of known pings in a long multi-channel recording."""
import time

import torch

device = "cuda" if torch.cuda.is_available() else "cpu"
CHANNELS = 32
BLOCK = 1_000_000
BLOCKS = 64
TAPS = 4118  # answer
PINGS = 16
RATE = 500_000.0


def make_pings():
    t = torch.arange(TAPS, device=device) / RATE
    start = torch.linspace(20e3, 60e3, PINGS, device=device)[:, None]
    sweep = start * t + 4e6 * t * t
    window = torch.hann_window(TAPS, device=device)
    return torch.sin(6.2831853 * sweep) * window


def detect(recording, pings):
    n = BLOCK + TAPS - 1  # answer
    ping_spectra = torch.fft.rfft(pings, n=n).conj()  # answer
    peaks = []
    for block in range(BLOCKS):
        chunk = recording[:, block * BLOCK:(block + 1) * BLOCK]
        spectrum = torch.fft.rfft(chunk, n=n)  # answer
        for ping in range(PINGS):
            match = torch.fft.irfft(spectrum * ping_spectra[ping], n=n)  # answer
            peaks.append(match.abs().amax(dim=1))
    return torch.stack(peaks).view(BLOCKS, PINGS, CHANNELS)


def main():
    torch.manual_seed(0)
    recording = torch.randn(CHANNELS, BLOCK * BLOCKS, device=device)
    pings = make_pings()
    for i in range(PINGS):
        at = (3 * i + 1) * BLOCK + 1000
        recording[i % CHANNELS, at:at + TAPS] += 2 * pings[i]
    start = time.time()
    peaks = detect(recording, pings)
    best = peaks.amax(dim=2).argmax(dim=0)
    print("ping found in block", best.tolist())
    print("seconds", time.time() - start)


if __name__ == "__main__":
    main()
