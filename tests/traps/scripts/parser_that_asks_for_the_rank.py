"""A helper that scales single rows and leaves batches as they are: a parser of batches would pass it a batch."""

import tensorflow as tf
from ledger import Ledger

TRAP = {
    "topic": "functions applied to whole batches",
    "tempting": "parse-per-record",
    "wrong": ["dataset.map(parse).batch(256)", "dataset.batch(256).map(parse_batch)"],
    "may_change": {"order": ["reordered"]},
}
ROWS, EPOCHS = 10_240, 5
FEATURES = {"numbers": tf.io.FixedLenFeature([4], tf.float32)}


def record(number):
    numbers = tf.train.FloatList(value=[number % 11 + place for place in range(4)])
    features = tf.train.Features(feature={"numbers": tf.train.Feature(float_list=numbers)})
    return tf.train.Example(features=features).SerializeToString()


def scaled(numbers):
    return numbers * 2.0 if numbers.shape.rank == 1 else numbers


def parse(one):
    return scaled(tf.io.parse_single_example(one, FEATURES)["numbers"])


def parse_batch(many):
    return scaled(tf.io.parse_example(many, FEATURES)["numbers"])


dataset = tf.data.Dataset.from_tensor_slices([record(number) for number in range(ROWS)])
dataset = dataset.map(parse).batch(256)

ledger = Ledger()
for epoch in range(EPOCHS):
    for rows in dataset:
        ledger.train(epoch, rows)
ledger.finish(elements=ledger.elements(), order=ledger.order(), counts=ledger.counts())
