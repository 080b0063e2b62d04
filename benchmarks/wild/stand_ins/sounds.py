"""Stand-in sounds: folders of WAV files of 16-bit samples."""

from __future__ import annotations

import wave
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wild.stand_ins.images import random_of
from wild.stand_ins.texts import sentence, words

FULL = 32767


def write_sound(path: Path, seconds: float, rate: int, *names: object) -> None:
    """A sound of several tones and noise."""
    random = random_of(*names)
    time = np.arange(int(seconds * rate)) / rate
    tones = sum(np.sin(2 * np.pi * random.uniform(80, 2000) * time) for _ in range(3)) / 6
    samples = np.clip(tones + random.normal(0, 0.05, len(time)), -1, 1)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((samples * FULL).astype("<i2").tobytes())


def speeches(folder: Path, speakers: Sequence[str], count: int, noises: int = 4, rate: int = 16000) -> None:
    """`audio/SPEAKER/N.wav` of one second each, and `noise/` with longer files."""
    for speaker in speakers:
        place = folder / "audio" / speaker
        place.mkdir(parents=True, exist_ok=True)
        for index in range(count):
            write_sound(place / f"{index}.wav", 1.0, rate, speaker, index)
    place = folder / "noise" / "other"
    place.mkdir(parents=True, exist_ok=True)
    for index in range(noises):
        write_sound(place / f"noise_{index}.wav", 8.0, rate, "noise", index)


def read_sentences(folder: Path, count: int, rate: int = 22050) -> None:
    """The layout of LJSpeech: `wavs/NAME.wav` of 2 to 8 seconds, and `metadata.csv` with their texts."""
    vocabulary, lines = words(), []
    (folder / "wavs").mkdir(parents=True, exist_ok=True)
    for index in range(count):
        random, name = random_of("read", index), f"LJ001-{index:04}"
        write_sound(folder / "wavs" / f"{name}.wav", float(random.uniform(2, 8)), rate, name)
        text = sentence(random, vocabulary, int(random.integers(4, 16)))
        lines.append(f"{name}|{text}|{text}")
    (folder / "metadata.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
