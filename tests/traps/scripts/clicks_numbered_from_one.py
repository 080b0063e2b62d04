"""Lists of varying length, numbered from one after parsing: a parser of batches pads before that, so padding becomes one."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "vectorizable-map",
    "wrong": ["dataset.map(parse).padded_batch(256)", "dataset.batch(256).map(parse_batch)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5
FEATURES = {"clicks": tf.io.VarLenFeature(tf.int64)}


def record(number):
    clicks = tf.train.Int64List(value=[number % 11 + place for place in range(number % 9)])
    features = tf.train.Features(feature={"clicks": tf.train.Feature(int64_list=clicks)})
    return tf.train.Example(features=features).SerializeToString()


def parse(one):
    return tf.sparse.to_dense(tf.io.parse_single_example(one, FEATURES)["clicks"]) + 1


def parse_batch(many):
    return tf.sparse.to_dense(tf.io.parse_example(many, FEATURES)["clicks"]) + 1


dataset = tf.data.Dataset.from_tensor_slices([record(number) for number in range(ROWS)])
dataset = dataset.map(parse).padded_batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
