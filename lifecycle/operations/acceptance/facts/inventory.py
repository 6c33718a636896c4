"""Hardware inventory of nodes: serial numbers, firmware and cables, as the nodes report them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import msgspec

from .....inventory.hosts import Host
from .....schemas.derived.hostlist import fold
from ....nodes.ssh import SshSession, Unreachable
from ....nodes.ssh.arguments import AS_ROOT

_LIMIT_S = 120
_ASK = f"""
r={AS_ROOT}
for f in sys_vendor product_name product_serial board_name board_serial bios_version chassis_serial; do
  v=$($r cat /sys/class/dmi/id/$f 2>/dev/null) && [ -n "$v" ] && echo "dmi|$f|$v"
done
for d in /sys/class/infiniband/*; do
  [ -e $d ] || continue
  for f in hca_type board_id fw_ver node_guid; do
    v=$(cat $d/$f 2>/dev/null) && echo "rdma ${{d##*/}}|$f|$v"
  done
  command -v mlxlink >/dev/null && $r mlxlink -d ${{d##*/}} -m 2>/dev/null | \\
    sed -n -E "s/^(Vendor Name|Vendor Part Number|Vendor Serial Number|Identifier|Cable Length|FW Version) *: *(.+)/cable ${{d##*/}}|\\1|\\2/p"
done
command -v nvidia-smi >/dev/null && nvidia-smi \\
  --query-gpu=index,name,serial,uuid,vbios_version,pci.bus_id --format=csv,noheader 2>/dev/null | \\
  awk -F', ' '{{ n=split("index name serial uuid vbios bus_id", k, " "); for (i=2; i<=n; i++) print "gpu " $1 "|" k[i] "|" $i }}'
for d in /sys/block/*/device; do
  [ -e $d ] || continue
  b=${{d%/device}}; b=${{b##*/}}
  for f in model serial firmware_rev rev; do
    v=$(cat $d/$f 2>/dev/null) && echo "disk $b|$f|$v"
  done
done
command -v dmidecode >/dev/null && $r dmidecode -t 17 2>/dev/null | awk -F': ' '
  /^Memory Device/ {{ l=""; s="" }} /^\\tLocator:/ {{ l=$2 }} /^\\tSerial Number:/ {{ s=$2 }}
  /^\\tPart Number:/ {{ if (s != "" && s !~ /Unknown|Not Specified|NO DIMM/) {{ print "dimm " l "|serial|" s; print "dimm " l "|part|" $2 }} }}'
echo "os|kernel|$(uname -r)"
true
"""  # noqa: E501  # shell lines
FIRMWARE = frozenset({"bios_version", "fw_ver", "vbios", "firmware_rev", "rev", "kernel"})
"""Facts that nodes of one machine type share."""
SERIALS = frozenset({"product_serial", "board_serial", "chassis_serial", "serial", "node_guid"})
"""Facts that no two parts share."""
_NO_SERIAL = frozenset({"", "0", "none", "n/a", "[n/a]", "not specified", "to be filled by o.e.m."})


class NodeParts(msgspec.Struct, frozen=True, kw_only=True):
    """The parts that one node reported."""

    parts: dict[str, dict[str, str]] = {}
    """"gpu 0" -> {"serial": ..., "vbios": ...}; "dmi" is the machine itself."""
    silent: str = ""
    """Why it could not be queried; "": it was."""


def read_parts(session: SshSession, hosts: Sequence[Host]) -> dict[str, NodeParts]:
    """Query the parts of all nodes at once. What a node can't report is left out."""
    answers = session.run_many(hosts, _ASK, timeout_s=_LIMIT_S)
    return {
        name: NodeParts(silent=answer.reason)
        if isinstance(answer, Unreachable)
        else NodeParts(parts=parts_of(answer.stdout))
        for name, answer in answers.items()
    }


def parts_of(text: str) -> dict[str, dict[str, str]]:
    """Return part -> fact -> value of a node's answer."""
    found: defaultdict[str, dict[str, str]] = defaultdict(dict)
    for line in text.splitlines():
        part, _, rest = line.partition("|")
        fact, mark, value = rest.partition("|")
        if mark and value.strip():
            found[part][fact] = value.strip()
    return dict(found)


def differing_firmware(
    parts: Mapping[str, NodeParts], alike: Sequence[Sequence[str]]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Return the nodes whose firmware differs from most of their kind; () none does.

    Args:
        parts: node -> its parts.
        alike: groups of nodes of one machine type.

    Returns:
        Pairs of a text of the difference, and the nodes.
    """
    found: list[tuple[str, tuple[str, ...]]] = []
    for group in alike:
        seen: defaultdict[tuple[str, str], defaultdict[str, list[str]]] = defaultdict(
            lambda: defaultdict(list)
        )
        for node in group:
            for part, facts in parts.get(node, NodeParts()).parts.items():
                kind = part.partition(" ")[0]
                for fact in FIRMWARE & facts.keys():
                    seen[kind, _model(facts) + fact][facts[fact]].append(node)
        for (kind, fact), versions in seen.items():
            usual = Counter({version: len(nodes) for version, nodes in versions.items()})
            most = usual.most_common(1)[0][0]
            for version, nodes in versions.items():
                if version != most:
                    there = tuple(dict.fromkeys(nodes))
                    found.append(
                        (f"{kind} {fact} is {version} on {fold(there)}, most have {most}", there)
                    )
    return tuple(found)


def _model(facts: Mapping[str, str]) -> str:
    model = facts.get("hca_type") or facts.get("name") or facts.get("model") or ""
    return f"{model} " if model else ""


def shared_serials(parts: Mapping[str, NodeParts]) -> tuple[str, ...]:
    """Return serial numbers that several parts report: such an inventory can't be right."""
    owners: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for node, made_of in parts.items():
        for part, facts in made_of.parts.items():
            for fact in SERIALS & facts.keys():
                if facts[fact].lower() not in _NO_SERIAL:
                    owners[f"{part.partition(' ')[0]} {fact}", facts[fact]].append(node)
    return tuple(
        f"{fact} {value} is claimed {len(nodes)} times, on {fold(sorted(set(nodes)))}"
        for (fact, value), nodes in sorted(owners.items())
        if len(nodes) > 1
    )
