"""Public keys in OpenPGP files, read without gpg: a node has it only after its first package."""

from __future__ import annotations

import base64
import hashlib
import itertools
from collections.abc import Iterator
from pathlib import Path

PUBLIC_KEY = 6
"""Tag of a primary key's packet (RFC 4880, 4.3)."""
NEW_FORM, TWO_OCTETS, PARTIAL = 0x40, 192, 224
"""Of a packet's head: the new form's bit, and where its lengths change their width (4.2)."""
VERSION = 4
"""Of keys whose fingerprint is a SHA-1."""


def packets(data: bytes) -> Iterator[tuple[int, bytes, bytes]]:
    """Yield (tag, packet, body) of an OpenPGP file, armoured or not (RFC 4880, 4.2 and 6.2)."""
    if b"-----BEGIN" in data:
        lines = data.decode("ascii", "replace").split("-----BEGIN", 1)[1].splitlines()
        inside = iter(lines[lines.index("") + 1 :])
        text = itertools.takewhile(lambda line: line[:1] not in "=-", inside)
        data = base64.b64decode("".join(text))
    at = 0
    while at < len(data):
        if data[at] & NEW_FORM:
            tag, first = data[at] & 0x3F, data[at + 1]
            if first < TWO_OCTETS:
                start, size = at + 2, first
            elif first < PARTIAL:
                start, size = at + 3, ((first - TWO_OCTETS) << 8) + data[at + 2] + TWO_OCTETS
            else:
                start, size = at + 6, int.from_bytes(data[at + 2 : at + 6], "big")
        else:
            tag, start = (data[at] >> 2) & 0x0F, at + 1 + (1 << (data[at] & 3))
            size = int.from_bytes(data[at + 1 : start], "big")
        if not data[at] & 0x80 or start + size > len(data):
            raise ValueError("no OpenPGP key")
        yield tag, data[at : start + size], data[start : start + size]
        at = start + size


def certificates(data: bytes) -> dict[str, bytes]:
    """Return fingerprint of the primary key -> its certificate, in the order of the file."""
    found: dict[str, bytes] = {}
    name = ""
    try:
        for tag, packet, body in packets(data):
            if tag == PUBLIC_KEY:
                hashed = b"\x99" + len(body).to_bytes(2, "big") + body
                digest = hashlib.sha1(hashed).hexdigest()  # noqa: S324  # what a fingerprint is
                name = digest.upper() if body[0] == VERSION else "an unknown kind"
            if name:
                found[name] = found.get(name, b"") + packet
    except (ValueError, IndexError):
        return {}
    return found


def primary_fingerprints(file: Path) -> list[str]:
    """Return the fingerprints of the primary keys in a file."""
    return list(certificates(file.read_bytes()))
