"""Events decoded as columns equal those that the protobuf library decodes, whatever the order and number of their fields."""

import numpy as np
import pytest
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.profile.wire import batches, decode_events
from advisor.profile.xspace import XSpaceDecodeError, message_class

INT64 = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 300)
UINT64 = st.integers(0, 2**64 - 1) | st.integers(0, 300)
VALUES = st.one_of(
    st.tuples(st.just("uint64_value"), UINT64),
    st.tuples(st.just("int64_value"), INT64),
    st.tuples(st.just("ref_value"), UINT64),
    st.tuples(st.just("str_value"), st.binary(max_size=200)),
    st.tuples(st.just("bytes_value"), st.binary(max_size=9)),
    st.tuples(st.just("double_value"), st.floats(allow_nan=False)),
    st.just(None),
)


@st.composite
def events(draw):
    """A message `XEvent`."""
    event = message_class("XEvent")()
    event.metadata_id = draw(INT64)
    if draw(st.booleans()):
        event.offset_ps = draw(INT64)
    elif draw(st.booleans()):
        event.num_occurrences = draw(INT64)
    event.duration_ps = draw(INT64)
    for number, value in draw(st.lists(st.tuples(INT64, VALUES), max_size=4)):
        stat = event.stats.add(metadata_id=number)
        if value is not None:
            setattr(stat, *value)
    return event


def assert_same(columns, decoded):
    """The columns hold what the library decoded."""
    assert columns.metadata_id.tolist() == [event.metadata_id for event in decoded]
    assert columns.offset_ps.tolist() == [event.offset_ps for event in decoded]
    assert columns.duration_ps.tolist() == [event.duration_ps for event in decoded]
    assert columns.num_occurrences.tolist() == [event.num_occurrences for event in decoded]
    for row, event in enumerate(decoded):
        stats = np.flatnonzero(columns.stat_event == row)
        assert columns.stat_id[stats].tolist() == [stat.metadata_id for stat in event.stats]
        numbers = [(stat.uint64_value or stat.int64_value) % 2**64 for stat in event.stats]
        assert columns.numbers(stats).tolist() == numbers
        assert columns.references(stats).tolist() == [stat.ref_value for stat in event.stats]
        assert [columns.string(stat) for stat in stats.tolist()] == [stat.str_value for stat in event.stats]


@settings(deadline=None)
@given(st.lists(events(), max_size=6))
def test_columns_equal_the_library(messages):
    assert_same(decode_events([event.SerializeToString() for event in messages]), messages)


@settings(deadline=None)
@given(st.lists(events().map(lambda event: event.SerializeToString()), min_size=2, max_size=4))
def test_fields_in_any_order_equal_the_library(parts):
    joined = b"".join(parts)  # of a field that stands several times the last one counts; stats add up
    assert_same(decode_events([joined, parts[0]]), [message_class("XEvent").FromString(joined), _parsed(parts[0])])


@settings(deadline=None)
@given(st.binary(max_size=40), events())
def test_any_bytes_are_decoded_as_the_library_does_or_refused(noise, event):
    encoded = [noise, event.SerializeToString()]
    try:
        columns = decode_events(encoded)
    except XSpaceDecodeError:
        with pytest.raises(DecodeError, match="Error parsing message"):
            _parsed(noise)
        return
    assert_same(columns, [_parsed(one) for one in encoded])


def test_batches_cut_lines_into_slices_and_join_short_lines():
    line = message_class("XLine")
    made = list(batches([line(events=[b"a"] * 5), line(), line(events=[b"b"]), line(events=[b"c"] * 2)], 3))

    assert [(batch.line, batch.count) for batch in made] == [([0], [3]), ([0, 2], [2, 1]), ([3], [2])]
    assert b"".join(event for batch in made for event in batch.encoded) == b"aaaaabcc"


def _parsed(encoded):
    return message_class("XEvent").FromString(encoded)
