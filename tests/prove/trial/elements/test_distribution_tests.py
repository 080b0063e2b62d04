"""Another order or other elements: what two passes of one pipeline hold in common, and where."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.prove.trial.elements.distribution_tests import has_kept_places, has_moved

rows = st.lists(st.tuples(st.integers(0, 9).map(lambda n: bytes([n]))), min_size=20, max_size=60)


def test_another_order_has_moved_the_rows():
    one = [(bytes([n]),) for n in range(60)]
    assert has_moved(one, one[1:] + one[:1])
    assert has_moved(one, [*one[30:], *one[:30]])
    assert has_moved(one, [*one[5:], *((bytes([n]),) for n in range(100, 105))])  # cut: the last ones are others


@given(rows, st.data())
def test_neighbours_that_were_given_each_others_numbers_have_not(one, data):
    """Be it that they seem to have changed places, or that both are new."""
    place = data.draw(st.integers(0, len(one) - 2))
    swapped = [*one[:place], one[place + 1], one[place], *one[place + 2 :]]
    assert not has_moved(one, swapped)
    assert not has_moved(one, [*one[:place], (b"new",), (b"other",), *one[place + 2 :]])
    assert not has_moved(one, one)


@given(rows, st.data())
def test_elements_keep_their_places_only_if_none_is_lost_or_moved(one, data):
    one = [(row[0] + bytes([place]),) for place, row in enumerate(one)]  # all are different
    place = data.draw(st.integers(0, len(one) - 2))
    new = [*one[:place], (b"new",), *one[place + 1 :]]
    assert has_kept_places(one, new) and has_kept_places(one, one)
    assert not has_kept_places(one, [*one[:place], one[place + 1], one[place], *one[place + 2 :]])
    assert not has_kept_places(one, [*one[:place], *one[place + 1 :]])
    assert not has_kept_places(one, [*one[:place], *one[place + 1 :], (b"the next one",)]), (
        "a cut part without one element"
    )
