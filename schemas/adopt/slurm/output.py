"""What `scontrol` and `sacctmgr` print: nodes, partitions and accounts."""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

from ...derived.hostlist import HostlistError, expand

Record: TypeAlias = dict[str, str]
_KEY = re.compile(r"(?:^|\s)([A-Z][A-Za-z]*(?:\[\d+\])?)=")
"""A key begins a word and is followed by =; TRES lists (cpu=4) are in lower case."""
_CONFIG = re.compile(r"^([A-Za-z][\w.]*(?:\[\d+\])?)\s+= ?(.*)$")
_FREE = re.compile(r"\s(?:Reason|Comment|Extra|OS)=")
"""Values that people or kernels write, with anything in them."""
_NONE = frozenset({"(null)", "N/A", "n/a", "none", "NONE", "None", ""})

_COMMENT = re.compile(r"(?<!\\)#")
"""Begins one in slurm.conf, but after a backslash."""


class SlurmOutput(msgspec.Struct, frozen=True, kw_only=True):
    """All of it."""

    config: Record
    nodes: tuple[Record, ...]
    """One host each."""
    partitions: tuple[Record, ...]
    said: frozenset[str] = frozenset()
    """Keys of `config` that are in a slurm.conf: scontrol prints defaults too."""


def read_slurm(texts: list[str]) -> SlurmOutput:
    """Read outputs in any order, or slurm.conf; what is none of these is left out."""
    config: Record = {}
    said: set[str] = set()
    nodes: dict[str, Record] = {}
    partitions: dict[str, Record] = {}
    defaults: dict[str, Record] = {"NodeName": {}, "PartitionName": {}}
    for line in (line for text in texts for line in _joined(text)):
        kind = line.partition("=")[0]
        if kind in defaults:
            record = record_of(line)
            name = record.get(kind, "")
            if not name:
                continue
            if name == "DEFAULT":  # of slurm.conf: holds for the lines after it
                defaults[kind] |= record
                continue
            record = {**defaults[kind], **record}
            if kind == "NodeName":
                nodes |= {each[kind]: each for each in _hosts(record)}
            else:
                partitions[name] = record
        elif found := _CONFIG.match(line):
            config[found[1]] = found[2].strip()
        elif len(record := record_of(line)) == 1:
            config |= _numbered(record, config)
            said |= record.keys()
    return SlurmOutput(
        config={key: value for key, value in config.items() if value not in _NONE},
        nodes=tuple(nodes.values()),
        partitions=tuple(partitions.values()),
        said=frozenset(said),
    )


def _numbered(record: Record, before: Record) -> Record:
    """Number controllers as scontrol does: slurm.conf repeats the key, and the first line leads."""
    if "SlurmctldHost" not in record:
        return record
    number = sum(key.startswith("SlurmctldHost[") for key in before)
    return {f"SlurmctldHost[{number}]": record["SlurmctldHost"]}


def record_of(line: str) -> Record:
    """Split "Key=value Key=value" where a key begins; what people wrote freely is left out."""
    plain = _FREE.split(line, maxsplit=1)
    # OS= is in the middle: what follows its text goes on with a key.
    text = plain[0] if len(plain) == 1 else f"{plain[0]} {_after_free(plain[1])}"
    found = list(_KEY.finditer(text))
    if not found:
        return {}
    ends = [*(each.start() for each in found[1:]), len(text)]
    pairs = (
        (each[1], text[each.end() : end].strip()) for each, end in zip(found, ends, strict=True)
    )
    return {key: value for key, value in pairs if value not in _NONE}


def _after_free(text: str) -> str:
    """Return what follows a kernel's name; after a person's words nothing is trusted."""
    found = re.search(r"\sRealMemory=.*$", text)
    return "" if found is None else _FREE.split(found[0], maxsplit=1)[0]


def _joined(text: str) -> list[str]:
    """Put a record on one line: scontrol indents what goes on, slurm.conf ends with a backslash."""
    lines: list[str] = []
    goes_on = False
    for raw in text.splitlines():
        if not raw.startswith((" ", "NodeName=")):
            line = _COMMENT.split(raw, maxsplit=1)[0].replace("\\#", "#")
        else:
            line = raw
        begins = line.strip()
        if not begins:
            goes_on = False
            continue
        if lines and (goes_on or line[0].isspace()):
            lines[-1] = f"{lines[-1]} {begins}"
        else:
            lines.append(begins)
        goes_on = begins.endswith("\\")
        lines[-1] = lines[-1].removesuffix("\\").strip()
    return lines


def _hosts(record: Record) -> list[Record]:
    """Return a record for each host of a line of slurm.conf; scontrol prints one host each."""
    try:
        names = expand(record["NodeName"])
        addresses = expand(record.get("NodeAddr", "")) if record.get("NodeAddr") else names
    except HostlistError:
        return [record]
    if len(addresses) != len(names):
        addresses = names
    return [
        {**record, "NodeName": name, "NodeAddr": address}
        for name, address in zip(names, addresses, strict=True)
    ]
