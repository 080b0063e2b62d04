"""Decides which requests for data are answered.

In: facts about a request.  Out: a sentence with the reason for a refusal, or nothing.

TensorBoard listens on the loopback interface unless it is told otherwise, and that is not enough: a page of another site can make
the browser send requests to it, and read the answers if the site's name is made to resolve to this machine (DNS rebinding).
"""

from __future__ import annotations

import ipaddress

from advisor.model.text import printable

_MAX_NAME = 80
_HOW = "start TensorBoard with --host or --bind_all to show the tab under other names"


def why_refused(client: str, host: str, site: str, is_exposed: bool) -> str:
    """Return why a request is refused; empty if it is answered.

    Args:
        client: Address of the client; empty if the server does not know it.
        host: The header `Host`: the name under which the client knows TensorBoard.
        site: The header `Sec-Fetch-Site`; empty for clients that do not send it.
        is_exposed: Whether TensorBoard was started with --host or --bind_all.
    """
    if site == "cross-site":
        return "The tab tf.data answers no requests of other sites: open TensorBoard itself."
    if is_exposed:
        return ""
    if client and not _is_loopback(client):
        return f"The tab tf.data answers this machine only, not {_shown(client)}: {_HOW}."
    if host and not _is_loopback(_name(host)):
        return f"The tab tf.data is shown as localhost only, not as {_shown(_name(host))}: {_HOW}."
    return ""


def _name(host: str) -> str:
    """Return the name or address in `localhost:6006` or `[::1]:6006`."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.rpartition(":")[0] if ":" in host else host


def _is_loopback(name: str) -> bool:
    if name.lower() == "localhost" or name.lower().endswith(".localhost"):
        return True
    try:
        address = ipaddress.ip_address(name.partition("%")[0])
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback


def _shown(name: str) -> str:
    return printable(name[:_MAX_NAME])
