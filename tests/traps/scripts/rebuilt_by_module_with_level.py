"""A module beside the script makes each epoch's dataset; from the fifth epoch on, the script raises a number in that module."""

import levels
from ledger import Ledger

TRAP = {
    "topic": "datasets made anew in every epoch",
    "tempting": "rebuilt-every-epoch",
    "wrong": [
        "for epoch in range(EPOCHS):\n    for row in levels.make_dataset(ROWS):\n",
        "dataset = levels.make_dataset(ROWS)\nfor epoch in range(EPOCHS):\n    for row in dataset:\n",
    ],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 48, 8


ledger = Ledger()
for epoch in range(EPOCHS):
    for row in levels.make_dataset(ROWS):
        ledger.train(epoch, row)
    if epoch >= 4:
        levels.LEVEL = epoch
ledger.finish(elements=ledger.elements(), order=ledger.order())
