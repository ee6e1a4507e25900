"""Write mel_80.safetensors and mel_128.safetensors: OpenAI's log-mel of a made-up waveform."""
import pathlib

import numpy as np
import torch
import whisper

from common import arguments, write_tensors

RATE = 16000


def waveform():
    """2.3 s at 16 kHz: a rising tone, tone and noise, silence, faint noise, loud noise."""
    rng = np.random.default_rng(20250625)
    time = np.arange(RATE) / RATE
    chirp = 0.6 * np.sin(2 * np.pi * (80 * time + 3800 * time**2))  # 80 Hz to 7680 Hz in 1 s
    part = np.arange(RATE // 2) / RATE
    mixed = 0.2 * np.sin(2 * np.pi * 440 * part) + 0.05 * rng.standard_normal(part.size)
    silence = np.zeros(RATE * 3 // 10)
    faint = 1e-4 * rng.standard_normal(RATE * 3 // 10)
    loud = rng.uniform(-1, 1, RATE * 2 // 10)
    return np.concatenate([chirp, mixed, silence, faint, loud]).astype(np.float32)


def main():
    args = arguments(__doc__, fixtures=False)
    wave = waveform()
    with np.load(pathlib.Path(whisper.__file__).parent / "assets" / "mel_filters.npz") as stored:
        filters = {bins: stored[f"mel_{bins}"] for bins in (80, 128)}
    for bins in (80, 128):
        plain = whisper.log_mel_spectrogram(torch.from_numpy(wave), bins).T
        padded = whisper.log_mel_spectrogram(torch.from_numpy(wave), bins, padding=30 * RATE).T
        tensors = {
            f"mel_filters_{bins}": filters[bins],
            "log_mel": plain,
            "log_mel_padded_every_10th_frame": padded[::10],
        }
        if bins == 80:
            tensors["waveform"] = wave  # the same for both
        write_tensors(args.out / f"mel_{bins}.safetensors", tensors)


if __name__ == "__main__":
    main()
