"""Stand-in texts: reviews, sentence pairs, captions, tagged sentences, paths through syntax trees."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from wild.stand_ins.images import random_of

SYLLABLES = ("ba", "ce", "di", "fu", "gu", "la", "me", "ni", "po", "ru", "sa", "ta", "vi", "wo", "zu")
VOCABULARY = 8000


def words() -> list[str]:
    """The vocabulary, common words first; they are short, as in a language."""
    made, base = [], len(SYLLABLES)
    for index in range(VOCABULARY):
        parts, rest = [], index + 1
        while rest:
            parts.append(SYLLABLES[rest % base])
            rest //= base
        made.append("".join(parts))
    return made


def sentence(random: np.random.Generator, vocabulary: Sequence[str], length: int) -> str:
    """Words with the frequencies of a natural text (Zipf's law)."""
    ranks = np.minimum(random.zipf(1.3, length), len(vocabulary)) - 1
    return " ".join(vocabulary[rank] for rank in ranks)


def review_folders(folder: Path, folders: Sequence[str], count: int, length: int = 230, distinct: int = 400) -> None:
    """Text files of one review each, as in the IMDB archive: `count` in each folder, every `distinct`-th the same."""
    vocabulary = words()
    for name in folders:
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        texts = []
        for index in range(min(count, distinct)):
            random = random_of("review", name, index)
            parts = [sentence(random, vocabulary, int(random.integers(8, 2 * length // 8))) for _ in range(8)]
            texts.append(". ".join(parts[:4]) + ".<br /><br />" + ", ".join(parts[4:]) + "!")
        for index in range(count):
            (place / f"{index}_{index % 10 + 1}.txt").write_text(texts[index % distinct], encoding="utf-8")


def translations(folder: Path, count: int, name: str = "spa.txt") -> None:
    """Lines of a sentence, a tabulator, and its translation."""
    vocabulary, lines = words(), []
    random = random_of("translations")
    for _ in range(count):
        length = int(random.integers(3, 14))
        lines.append(f"{sentence(random, vocabulary, length)}.\t¿{sentence(random, vocabulary, length + 1)}?")
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def captions(folder: Path, pictures: int, each: int = 5, name: str = "captions.txt", stem: str = "{index:05}") -> None:
    """Lines of `picture.jpg#number`, a tabulator, and a caption of 6 to 14 words."""
    vocabulary, lines = words(), []
    for index in range(pictures):
        random = random_of("captions", index)
        for number in range(each):
            text = sentence(random, vocabulary, int(random.integers(6, 15)))
            lines.append(f"{stem.format(index=index)}.jpg#{number}\t{text} .")
    (folder / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def tagged_sentences(folder: Path, count: int, name: str = "train.conllu") -> None:
    """Sentences in the CoNLL-U format, one word a line."""
    vocabulary, lines = words(), []
    tags = ("NN", "VB", "DT", "IN", "JJ", "NNS", "PRP", "RB", "CC", ".")
    random = random_of("tagged", name)
    for index in range(count):
        lines.append(f"# sent_id = {index}")
        for number, word in enumerate(sentence(random, vocabulary, int(random.integers(4, 40))).split(), 1):
            tag = tags[hash_of(word) % len(tags)]
            lines.append(f"{number}\t{word}\t{word}\t{tag}\t{tag}\t_\t{number - 1}\tdep\t_\t_")
        lines.append("")
    (folder / name).write_text("\n".join(lines), encoding="utf-8")


def hash_of(word: str) -> int:
    """A number that is the same in every process."""
    return sum(ord(letter) * position for position, letter in enumerate(word, 1))


def method_paths(folder: Path, count: int, contexts: int = 200, prefix: str = "stand_in") -> None:
    """Examples of code2vec: a method's name and up to `contexts` triples of token, path and token; the rest is empty."""
    random, vocabulary = random_of("paths"), words()
    paths, names = (
        [str(number) for number in range(-6000, 6000)],
        [f"{a}|{b}" for a in vocabulary[:40] for b in vocabulary[:25]],
    )
    counts: list[dict[str, int]] = [{}, {}, {}]
    lines = []
    for _ in range(count):
        used = int(random.integers(contexts // 4, contexts))
        tokens = [vocabulary[rank] for rank in np.minimum(random.zipf(1.3, 2 * used), VOCABULARY) - 1]
        between = [paths[rank] for rank in np.minimum(random.zipf(1.2, used), len(paths)) - 1]
        name = names[min(int(random.zipf(1.4)), len(names)) - 1]
        triples = [f"{tokens[2 * at]},{between[at]},{tokens[2 * at + 1]}" for at in range(used)]
        lines.append(" ".join([name, *triples]) + " " * (contexts - used))
        for found, kind in zip((tokens, between, [name]), counts, strict=True):
            for item in found:
                kind[item] = kind.get(item, 0) + 1
    (folder / f"{prefix}.train.c2v").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with (folder / f"{prefix}.dict.c2v").open("wb") as file:
        for kind in counts:
            pickle.dump(kind, file)
        pickle.dump(count, file)
