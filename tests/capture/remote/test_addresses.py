"""Addresses of profiler servers, as users write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.capture.remote.sampling import parse_addresses
from advisor.model.errors import AdvisorError

PORTS = st.integers(1, 65535)
NAMES = st.from_regex(r"[a-z][a-z0-9.\-]{0,20}", fullmatch=True)


@settings(deadline=None)  # a busy machine is no failure
@given(st.lists(st.tuples(NAMES, PORTS, st.booleans()), min_size=1, max_size=5, unique_by=lambda each: each[:2]))
@pytest.mark.long
def test_every_worker_once_in_order(workers):
    text = ", ".join(f"{'grpc://' if has_scheme else ''}{name}:{port}" for name, port, has_scheme in workers)
    expected = tuple(f"{name}:{port}" for name, port, _ in workers)
    assert parse_addresses(text) == expected
    assert parse_addresses(f"{text},{text}") == expected


@pytest.mark.parametrize("text", ["grpc://[::1]:6009", "grpc://localhost:6009/"])
def test_other_ways_to_write_it(text):
    assert parse_addresses(text) == (text.removeprefix("grpc://").rstrip("/"),)


@pytest.mark.parametrize(
    "text",
    ["http://localhost:6009", "https://a:1", "localhost", "grpc://localhost", "grpc://:6009", "grpc://a:0", "a:70000",
     "grpc://user@a:1", "grpc://a:b", "grpc://a:1/logs", "/dev/shm/job", "grpc://a b:1", "grpc://grpc://a:1"],
)  # fmt: skip
def test_wrong_addresses_are_named_with_the_right_form(text):
    with pytest.raises(AdvisorError) as caught:
        parse_addresses(f"grpc://fine:1,{text}")
    assert text in str(caught.value) and "grpc://localhost:6009" in str(caught.value)


@pytest.mark.parametrize("text", ["", " ", ",", " , "])
def test_no_address(text):
    with pytest.raises(AdvisorError, match="grpc://localhost:6009"):
        parse_addresses(text)
