"""A function that is imported makes each epoch's dataset; it counts its calls, and adds rows from the sixth one on."""

from counted import make_dataset
from ledger import Ledger

TRAP = {
    "topic": "datasets made anew in every epoch",
    "tempting": "rebuilt-every-epoch",
    "wrong": [
        "for epoch in range(EPOCHS):\n    for row in make_dataset(ROWS):\n",
        "dataset = make_dataset(ROWS)\nfor epoch in range(EPOCHS):\n    for row in dataset:\n",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 8


ledger = Ledger()
for epoch in range(EPOCHS):
    for row in make_dataset(ROWS):
        ledger.train(epoch, row)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
