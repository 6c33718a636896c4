#!/usr/bin/python
"""Send a directory (LDAP) the queries that SSSD will send, and report its refusals."""

from __future__ import annotations

DOCUMENTATION = r"""
module: directory_check
short_description: Check a directory, and SSSD's users on this host
description:
  - With O(url) checks that the directory answers and that its certificate is vouched for.
  - Without, checks that SSSD runs, that the bind of sssd.conf is taken, and that the user O(probe) is known.
  - The password is read from sssd.conf and never shown.
author: The gcluster authors
options:
  url:
    description: The directory's URL, ldap or ldaps.
    type: str
    default: ""
  ca:
    description: Certificates (PEM) that vouch for the directory; empty for the distribution's.
    type: str
    default: ""
  probe:
    description: A user who must be known here; empty for none.
    type: str
    default: ""
  min_id:
    description: Least id of O(probe).
    type: int
    default: 0
  max_id:
    description: Greatest id of O(probe); 0 for no limit.
    type: int
    default: 0
  timeout:
    description: Seconds to wait until O(probe) is known.
    type: float
    default: 0.0
attributes:
  check_mode:
    description: Only looks.
    support: full
"""

EXAMPLES = r"""
- name: See whether the directory answers
  gcluster.cluster.directory_check:
    url: ldaps://dir.example.edu
"""

RETURN = r"""
"""

import configparser
import pwd
import socket
import ssl
import time
import urllib.parse
from typing import Any

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.node import is_active, run
from ..module_utils.state import Failed

CONF = "/etc/sssd/sssd.conf"
DOMAIN = "domain/gcluster"
PORTS = {"ldap": 389, "ldaps": 636}
TIMEOUT_S = 10
HOSTNAME_MISMATCH = 62  # X509_V_ERR_HOSTNAME_MISMATCH
# RFC 4511, appendix A.
RESULTS = {
    7: "it takes no such kind of bind",
    8: "it wants a stronger authentication",
    13: "it wants an encrypted connection",
    32: "there is no such name",
    34: "the name is not written as a DN",
    48: "it takes no anonymous bind",
    49: "name or password are wrong",
    53: "it is unwilling",
}


SHORT_FORM, LONG_FORM = 128, 0x80
"""Of BER: lengths below the first are one octet; the bit marks a following length."""
HEAD = 2


def tlv(tag: int, content: bytes) -> bytes:
    """Return an element of BER."""
    length = len(content)
    long = bytes([LONG_FORM | 2, length >> 8, length & 255])
    head = bytes([length]) if length < SHORT_FORM else long
    return bytes([tag]) + head + content


def element(data: bytes) -> tuple[int, int]:
    """Return where the content of an element of BER begins, and its length."""
    length, start = data[1], HEAD
    if length & LONG_FORM:
        start += length & ~LONG_FORM
        length = int.from_bytes(data[HEAD:start], "big")
    return start, length


def read_message(connection: socket.socket) -> tuple[int, bytes]:
    """Return the operation of one LDAP message: its tag and its content."""
    data = connection.recv(65536)
    while len(data) < HEAD or len(data) < sum(element(data)):
        more = connection.recv(65536)
        if not more:
            raise Failed("it hangs up without an answer")
        data += more
    start, _ = element(data)
    body = data[start:]
    skip, length = element(body)  # the message's number
    operation = body[skip + length :]
    start, length = element(operation)
    return operation[0], operation[start : start + length]


def result_of(content: bytes) -> int:
    """Return the result code of a response."""
    return content[2]


def context_of(pem: str, path: str) -> ssl.SSLContext:
    """Return the TLS settings: who vouches for the directory."""
    try:
        context = ssl.create_default_context(cadata=pem or None, cafile=path or None)
    except (ssl.SSLError, OSError) as error:
        raise Failed(f"the CA certificates can't be read: {error}") from error
    if pem or path:
        context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    return context


def connect(url: str, pem: str = "", path: str = "") -> ssl.SSLSocket:
    """Return a verified connection."""
    parts = urllib.parse.urlsplit(url)
    host, port = parts.hostname, parts.port or PORTS[parts.scheme]
    try:
        plain = socket.create_connection((host, port), TIMEOUT_S)
    except OSError as error:
        raise Failed(f"{host}:{port} can't be reached: {error}") from error
    try:
        if parts.scheme == "ldap":
            plain.sendall(
                tlv(0x30, b"\x02\x01\x01" + tlv(0x77, tlv(0x80, b"1.3.6.1.4.1.1466.20037")))
            )
            _, content = read_message(plain)
            if result_of(content):
                raise Failed(f"{host} takes no StartTLS: write ldaps://")
        return context_of(pem, path).wrap_socket(plain, server_hostname=host)
    except ssl.SSLCertVerificationError as error:
        if error.verify_code == HOSTNAME_MISMATCH:
            raise Failed(
                f"the certificate of {host} is for another name: {error.verify_message}"
            ) from error
        raise Failed(
            f"the certificate of {host} is not trusted: {error.verify_message};"
            " users.ca in the spec has the certificates that do"
        ) from error
    except (ssl.SSLError, OSError) as error:
        raise Failed(f"{host}:{port} offers no TLS that is accepted here: {error}") from error


def bind(connection: socket.socket, dn: str, password: str) -> None:
    """Bind as SSSD does."""
    request = tlv(0x60, b"\x02\x01\x03" + tlv(4, dn.encode()) + tlv(0x80, password.encode()))
    connection.sendall(tlv(0x30, b"\x02\x01\x02" + request))
    _, content = read_message(connection)
    code = result_of(content)
    if code:
        who = dn or "anonymous (without bind_dn)"
        raise Failed(f"it refuses {who}: {RESULTS.get(code, 'result')} (LDAP {code})")


def wait_for_user(name: str, low: int, high: int, seconds: float) -> None:
    """Wait until a user is known through SSSD; its id must be in the range."""
    end = time.monotonic() + seconds
    while True:
        code, entry = run("getent", "--service=sss", "passwd", name)
        if code == 0:
            break
        if time.monotonic() > end:
            raise Failed(
                f"it answers, but SSSD knows no user {name}: see users.base, users.ids and"
                " users.schema in the spec, and /var/log/sssd/sssd_gcluster.log"
            )
        time.sleep(0.5)
    uid = int(entry.split(":")[2])
    if uid < low or (high and uid > high):
        raise Failed(f"user {name} has id {uid}, outside of {low} to {high or 'any'}")
    try:
        here = pwd.getpwnam(name).pw_uid
    except KeyError as error:
        raise Failed(
            f"SSSD knows {name}, but the node doesn't use it: see /etc/nsswitch.conf"
        ) from error
    if here != uid:
        raise Failed(f"{name} is a local account with id {here}, and has id {uid} in the directory")


def check_node(probe: str, low: int, high: int, seconds: float) -> None:
    """Check SSSD's settings, then SSSD."""
    parser = configparser.ConfigParser(interpolation=None)
    if not parser.read(CONF):
        raise Failed(f"there is no {CONF}")
    domain = parser[DOMAIN]
    with connect(domain["ldap_uri"], path=domain.get("ldap_tls_cacert", "")) as connection:
        bind(
            connection,
            domain.get("ldap_default_bind_dn", ""),
            domain.get("ldap_default_authtok", ""),
        )
    if not is_active("sssd"):
        raise Failed("it answers, but SSSD doesn't run: journalctl -u sssd says why")
    if probe:
        wait_for_user(probe, low, high, seconds)


ARGUMENTS: dict[str, Any] = {
    "url": {"type": "str", "default": ""},
    "ca": {"type": "str", "default": ""},
    "probe": {"type": "str", "default": ""},
    "min_id": {"type": "int", "default": 0},
    "max_id": {"type": "int", "default": 0},
    "timeout": {"type": "float", "default": 0.0},
}


def main() -> None:
    """Query the directory anonymously, or as this node does."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    requested = module.params
    try:
        if requested["url"]:
            connect(requested["url"], pem=requested["ca"]).close()
        else:
            check_node(
                requested["probe"], requested["min_id"], requested["max_id"], requested["timeout"]
            )
    except Failed as failed:
        module.fail_json(msg=f"the directory: {failed}")
    module.exit_json(changed=False)


if __name__ == "__main__":
    main()
