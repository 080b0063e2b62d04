"""Which requests for data are answered: those of this machine, and more only if TensorBoard was told so."""

from __future__ import annotations

import pytest

from advisor.tensorboard.access import why_refused


@pytest.mark.parametrize("client", ["127.0.0.1", "127.8.9.1", "::1", "::ffff:127.0.0.1", ""])
@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:6006", "LOCALHOST:1", "a.localhost:6006", "127.0.0.1:80", "[::1]:6006", "[::1]", ""],
)
@pytest.mark.parametrize("site", ["", "same-origin", "same-site", "none"])
def test_this_machine_is_answered(client, host, site):
    assert why_refused(client, host, site, is_exposed=False) == ""


@pytest.mark.parametrize("client", ["192.168.1.7", "10.0.0.1", "2001:db8::1", "::ffff:10.0.0.1", "nonsense"])
def test_other_machines_are_refused_by_default(client):
    assert "this machine only" in why_refused(client, "localhost:6006", "", is_exposed=False)
    assert why_refused(client, "localhost:6006", "", is_exposed=True) == ""


@pytest.mark.parametrize(
    "host",
    [
        "evil.example:6006",
        "evil.example",
        "localhost.evil.example",
        "notlocalhost",
        "192.168.1.7:6006",
        "[2001:db8::1]:6006",
    ],
)
def test_other_names_are_refused_by_default(host):
    """A name that somebody else made to resolve to this machine."""
    assert "as localhost only" in why_refused("127.0.0.1", host, "same-origin", is_exposed=False)
    assert why_refused("127.0.0.1", host, "same-origin", is_exposed=True) == ""


def test_other_sites_are_always_refused():
    for is_exposed in (False, True):
        assert "other sites" in why_refused("127.0.0.1", "localhost:6006", "cross-site", is_exposed)


def test_a_refused_name_is_short_and_printable():
    sentence = why_refused("127.0.0.1", "\x1b[31m" + "x" * 1000, "", is_exposed=False)
    assert sentence.isprintable() and len(sentence) < 300
