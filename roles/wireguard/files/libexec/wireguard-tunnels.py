#!/usr/bin/python3
"""Bring a gateway's tunnels to /etc/wireguard/gcluster.json, or report how they differ.

usage: wireguard-tunnels.py (up | apply | plan | verify | down)

up and apply create the interface, set its key and peers, route the other sites' networks into it
and allow forwarding; apply and plan print a line for each change. Unchanged parts are left alone,
so that connections survive. verify checks the kernel, and that every remote gateway responds.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Expected = dict[str, Any]
Peer = dict[str, Any]
FOLDER = Path("/etc/wireguard")
EXPECTED, KEY, PEER_KEYS = (
    FOLDER / "gcluster.json",
    FOLDER / "gcluster.key",
    FOLDER / "gcluster.peers",
)
INTERFACE, TABLE, UNIT = "gcluster", "gcluster_tunnel", "gcluster-tunnel.service"
FITTING = "tcp flags syn tcp option maxseg size set rt mtu"
DROPS = 2
"""Rules that drop what isn't of the sites."""
FORWARD = Path("/proc/sys/net/ipv4/ip_forward")
ANSWER_S, FRESH_S = 30, 180
"""How long a gateway has to answer; the age at which WireGuard drops a session (its paper, 6.1)."""


def run(*argv: str, stdin: str | None = None) -> tuple[int, str]:
    """Run a program; return its status and what it printed."""
    try:
        done = subprocess.run(
            argv,
            input=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return 127, f"{argv[0]}: not found"
    return done.returncode, done.stdout.strip()


def must(*argv: str, stdin: str | None = None) -> str:
    """Run a program that has to succeed; return what it printed."""
    code, output = run(*argv, stdin=stdin)
    if code:
        sys.exit(f"{' '.join(argv)}: {output}")
    return output


def load() -> Expected:
    """Return the settings; each peer with its public key."""
    try:
        expected: Expected = json.loads(EXPECTED.read_text())
        keys = json.loads(PEER_KEYS.read_text())
    except (OSError, ValueError) as error:
        sys.exit(f"the tunnels aren't configured: {error}")
    for peer in expected["peers"]:
        if peer["name"] not in keys:
            sys.exit(f"no public key of {peer['name']} is known")
        peer["key"] = keys[peer["name"]]
    return expected


def own_address(networks: list[str]) -> str:
    """Return the address that this host has in its own site's networks; "" where it has none."""
    own = [ipaddress.ip_network(network) for network in networks]
    for link in json.loads(must("ip", "-json", "-4", "address", "show")):
        for address in link.get("addr_info", ()):
            if any(ipaddress.ip_address(address["local"]) in network for network in own):
                return str(address["local"])
    return ""


def link() -> dict[str, Any]:
    """Return the interface as the kernel has it; {} without one."""
    code, output = run("ip", "-json", "link", "show", INTERFACE)
    return json.loads(output)[0] if code == 0 else {}


def shown() -> tuple[int | None, str, dict[str, Peer]]:
    """Return the port, the public key, and public key -> peer; nothing without an interface."""
    code, output = run("wg", "show", INTERFACE, "dump")
    if code:
        return None, "", {}
    first, *rest = (line.split("\t") for line in output.splitlines())
    peers = {
        line[0]: {
            "endpoint": line[2],
            "networks": sorted(line[3].split(",")),
            "handshake": int(line[4]),
            "received": int(line[5]),
            "keepalive": 0 if line[7] == "off" else int(line[7]),
        }
        for line in rest
    }
    return int(first[2]), first[1], peers


def routes() -> dict[str, str]:
    """Return network -> address that packets of this host carry, of the routes into the tunnels."""
    code, output = run("ip", "-json", "-4", "route", "show", "dev", INTERFACE)
    found = json.loads(output or "[]") if code == 0 else []
    return {route["dst"]: route.get("prefsrc", "") for route in found}


def rules(expected: Expected) -> str:
    """Return the firewall's table: only between the sites' networks, segments that fit the tunnel.

    A host's forwarding is open for all once it is on: this closes the tunnel to others.
    """
    own = ", ".join(expected["networks"])
    return (
        f"table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n"
        "  chain forward {\n    type filter hook forward priority filter; policy accept;\n"
        f'    oifname {INTERFACE} {FITTING} comment "{mark(expected)}"\n'
        f"    iifname {INTERFACE} {FITTING}\n"
        f"    iifname {INTERFACE} oifname {INTERFACE} accept\n"
        f"    iifname {INTERFACE} ip daddr != {{ {own} }} drop\n"
        f"    oifname {INTERFACE} ip saddr != {{ {own} }} drop\n"
        "  }\n}\n"
    )


def mark(expected: Expected) -> str:
    """Return what the firewall's part is known by: it is another one for other networks."""
    return "for " + hashlib.sha256(" ".join(expected["networks"]).encode()).hexdigest()[:16]


def is_filtered(expected: Expected) -> bool:
    """Return whether the firewall has exactly the rules for these networks."""
    code, output = run("nft", "list", "chain", "inet", TABLE, "forward")
    return code == 0 and f'comment "{mark(expected)}"' in output and output.count("drop") == DROPS


def networks_of(peer: Peer) -> list[str]:
    """Return a peer's networks as the kernel writes them."""
    return sorted(str(ipaddress.ip_network(network)) for network in peer["networks"])


def is_lost(found: Peer, peer: Peer) -> bool:
    """Return whether a peer's endpoint differs from the wanted one.

    While it has a session, the address of its last valid packet stays. Names aren't compared.
    """
    if not peer["endpoint"] or found["endpoint"] == peer["endpoint"]:
        return False
    try:
        ipaddress.ip_address(peer["endpoint"].rpartition(":")[0].strip("[]"))
    except ValueError:
        return bool(found["endpoint"] == "(none)")
    return bool(time.time() - found["handshake"] > FRESH_S)


def peer_differences(expected: Expected) -> Iterator[tuple[str, list[str]]]:
    """Yield (what changes, arguments of `wg set`) of the key, the port and each peer."""
    port, public, peers = shown()
    if port != expected["port"]:
        yield f"listens on UDP {expected['port']}", ["listen-port", str(expected["port"])]
    if public != must("wg", "pubkey", stdin=KEY.read_text()):
        yield "has another key", ["private-key", str(KEY)]
    for peer in expected["peers"]:
        found = peers.pop(peer["key"], None)
        networks = networks_of(peer)
        if (
            found is None
            or found["networks"] != networks
            or found["keepalive"] != peer["keepalive"]
            or is_lost(found, peer)
        ):
            to = ["peer", peer["key"], "allowed-ips", ",".join(networks)]
            to += ["persistent-keepalive", str(peer["keepalive"])]
            to += ["endpoint", peer["endpoint"]] if peer["endpoint"] else []
            yield f"reaches {peer['name']} of {peer['site']} ({', '.join(networks)})", to
    for key in peers:
        yield "forgets a gateway that is no longer requested", ["peer", key, "remove"]


def make() -> None:
    """Create the interface; by the userspace implementation where the kernel has none."""
    code, output = run("ip", "link", "add", INTERFACE, "type", "wireguard")
    if code == 0:
        return
    if run("wireguard-go", INTERFACE)[0]:
        sys.exit(f"no interface of WireGuard can be made: {output}")


def apply(expected: Expected, *, act: bool, from_unit: bool) -> None:
    """Apply, or report, what brings the running tunnels to the settings.

    The unit creates the interface: so wireguard-go's process belongs to a unit, which outlives a
    login session.
    """
    source = own_address(expected["networks"])
    if not source:
        sys.exit(
            f"this host has no address in {', '.join(expected['networks'])}:"
            " its site's network is wrong"
        )
    found = link()
    if not found:
        print("the interface is made")
        if not act:
            return
        if not from_unit:
            must("systemctl", "restart", UNIT)
            return
        make()
        found = link()
    # Removed peers first: a network belongs to one peer at a time.
    for what, arguments in sorted(
        peer_differences(expected), key=lambda pair: "remove" not in pair[1]
    ):
        print(f"the tunnel {what}")
        if act:
            must("wg", "set", INTERFACE, *arguments)
    if found["mtu"] != expected["mtu"] or "UP" not in found["flags"]:
        print(f"the interface is up with MTU {expected['mtu']}")
        if act:
            must("ip", "link", "set", INTERFACE, "mtu", str(expected["mtu"]), "up")
    pass_packets(expected, act=act)
    route(expected, source, act=act)


def route(expected: Expected, source: str, *, act: bool) -> None:
    """Route the other sites' networks into the tunnels, and no others."""
    now = routes()
    wanted = {network for peer in expected["peers"] for network in networks_of(peer)}
    for network in sorted(wanted):
        if now.pop(network, None) != source:
            print(f"{network} is routed into the tunnel")
            if act:
                must("ip", "route", "replace", network, "dev", INTERFACE, "src", source)
    for network in now:
        print(f"{network} is routed into the tunnel no longer")
        if act:
            must("ip", "route", "del", network, "dev", INTERFACE)


def pass_packets(expected: Expected, *, act: bool) -> None:
    """Let packets of the sites pass, and no others."""
    if not is_filtered(expected):
        print("packets of the sites pass, of any size, and no others")
        if act:
            must("nft", "--file", "-", stdin=rules(expected))
    if FORWARD.read_text().strip() != "1":
        print("packets are forwarded")
        if act:
            try:
                FORWARD.write_text("1\n")
            except OSError as error:
                sys.exit(f"packets can't be forwarded: {error}")


def peer_states(expected: Expected) -> Iterator[str]:
    """Yield what is wrong with each tunnel: first a packet is sent, which makes a session."""
    for peer in expected["peers"]:
        who = f"{peer['name']} of {peer['site']}"
        if not peer["address"]:
            continue  # its machine isn't there yet
        end, before = time.monotonic() + ANSWER_S, received(peer)
        while (
            code := run("ping", "-n", "-q", "-c", "1", "-W", "2", peer["address"])[0]
        ) and time.monotonic() < end:
            time.sleep(1)
        if code and received(peer) > before:
            yield f"there is a session with {who}, but {peer['address']} doesn't answer through it"
        elif code:
            where = peer["endpoint"] or "it has to come from there"
            yield (
                f"no session with {who} ({where}): is UDP {expected['port']} open, is its key this"
                " cluster's?"
            )


def received(peer: Peer) -> int:
    """Return how many bytes were received from a peer."""
    return int(shown()[2].get(peer["key"], {}).get("received", 0))


def differences(expected: Expected) -> Iterator[str]:
    """Yield how the running gateway differs from its settings."""
    found = link()
    if not found:
        yield "there is no interface: no tunnel is up"
        return
    if "UP" not in found["flags"]:
        yield "the interface is down"
    if found["mtu"] != expected["mtu"]:
        yield f"the interface has MTU {found['mtu']}, not {expected['mtu']}"
    for what, _ in peer_differences(expected):
        yield f"not so: the tunnel {what}"
    yield from route_differences(expected)
    if FORWARD.read_text().strip() != "1":
        yield "packets are not forwarded"
    if not is_filtered(expected):
        yield "the firewall's part for the tunnel does not hold"
    if run("systemctl", "is-enabled", "--quiet", UNIT)[0]:
        yield "the tunnels are not there after a restart"


def route_differences(expected: Expected) -> Iterator[str]:
    """Yield networks that the kernel sends elsewhere."""
    for peer in expected["peers"]:
        for network in networks_of(peer):
            first = str(ipaddress.ip_network(network).network_address + 1)
            code, output = run("ip", "-json", "-4", "route", "get", first)
            device = json.loads(output)[0].get("dev", "") if code == 0 else "nothing"
            if device != INTERFACE:
                yield f"the kernel sends {first} of {peer['site']} to {device}, not into the tunnel"


def main() -> None:
    """Act, or fail with what is wrong."""
    verb = sys.argv[1]
    if verb == "down":
        run("ip", "link", "del", INTERFACE)
        run("nft", "delete", "table", "inet", TABLE)
    elif verb == "verify":
        expected = load()
        wrong = [*(peer_states(expected) if link() else ()), *differences(expected)]
        if wrong:
            sys.exit("\n".join(wrong))
    else:
        apply(load(), act=verb != "plan", from_unit=verb == "up")


main()
