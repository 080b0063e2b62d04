"""Another process would do it like this: new records are written beside the old ones and moved into their place."""

from pathlib import Path

import tensorflow as tf
from ledger import Ledger, busy

TRAP = {
    "topic": "files rewritten between epochs",
    "tempting": "repeated-work",
    "wrong": [".map(parse)", ".map(parse)\n    .cache()"],
    "may_change": {"order": ["reordered"]},
}
FILES, ROWS, EPOCHS = 4, 12, 6
FOLDER = Path(__file__).parent / "parts"
FOLDER.mkdir(exist_ok=True)
files = [str(FOLDER / f"part-{number}.csv") for number in range(FILES)]


def export(epoch):
    for number, file in enumerate(files):
        temporary = Path(file + ".new")
        temporary.write_text("".join(f"{number * ROWS + row},{epoch}\n" for row in range(ROWS)))
        temporary.replace(file)


def parse(line):
    row, version = tf.io.decode_csv(line, [tf.constant(0, tf.int64), tf.constant(0, tf.int64)])
    return row + busy(row), version


export(0)
train = (
    tf.data.Dataset.from_tensor_slices(files)
    .interleave(tf.data.TextLineDataset, cycle_length=1)
    .map(parse)
    .batch(4)
)

ledger = Ledger()
for epoch in range(EPOCHS):
    for row, version in train:
        ledger.train(epoch, row, version)
    export(epoch + 1)
ledger.finish(elements=ledger.elements(), order=ledger.order())
