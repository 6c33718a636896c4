"""How values travel between a program and the engine, turned into recorded values.

Inside a protobuf Struct an object with the signature key is not a plain object. The signatures are
those of Pulumi's protocol (sdk/go/common/resource/properties.go, asset.go).
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from .recorded import MARK, Archive, Asset, Reference, Secret, Unknown, Value, Values

if TYPE_CHECKING:
    from google.protobuf import struct_pb2

UNKNOWN = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE = "4dabf18193072939515e22adb298388d"
_SECRET = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105  # a signature of the protocol
_ASSET = "c44067f5952c0a294b673a41bacd8c17"
_ARCHIVE = "0def7320c3a5731c473e5ecbe6d01bc7"
_RESOURCE = "5cf8f73096256a8f31e491e813e4eb8e"
_EXACT = 2**53
"""Protobuf numbers are doubles: whole numbers below this are exact."""


def read_struct(struct: struct_pb2.Struct) -> Values:
    """Return the fields as recorded values.

    Raises:
        ValueError: an object uses the key of the markers.
    """
    return {key: read_value(value) for key, value in struct.fields.items()}


def read_value(value: struct_pb2.Value) -> Value:
    """Return one value; raises ValueError as `read_struct`."""
    kind = value.WhichOneof("kind")
    if kind == "string_value":
        return Unknown() if value.string_value == UNKNOWN else value.string_value
    if kind == "bool_value":
        return value.bool_value
    if kind == "number_value":
        number = value.number_value
        return int(number) if number.is_integer() and abs(number) < _EXACT else number
    if kind == "list_value":
        return [read_value(item) for item in value.list_value.values]
    if kind == "struct_value":
        return _object(value.struct_value)
    return None


def _object(struct: struct_pb2.Struct) -> Value:
    fields = struct.fields
    if MARK in fields:
        message = f'an input has the key "{MARK}", which stands for markers in recorded graphs'
        raise ValueError(message)
    if SIGNATURE not in fields:
        return read_struct(struct)
    signature = fields[SIGNATURE].string_value
    if signature == _SECRET:
        return Secret()
    if signature == _RESOURCE:
        return Reference(urn=fields["urn"].string_value)
    if signature in {_ASSET, _ARCHIVE}:
        kind = Asset if signature == _ASSET else Archive
        return kind(sha256=_digest(struct).hexdigest())
    message = f"a value has a signature that is not known: {signature}"
    raise ValueError(message)


def _digest(struct: struct_pb2.Struct) -> hashlib._Hash:
    fields = struct.fields
    if "path" in fields:
        return _digest_path(Path(fields["path"].string_value))
    if "assets" in fields:
        digest = hashlib.sha256()
        parts = fields["assets"].struct_value.fields
        for name in sorted(parts):
            digest.update(f"{name}\0{_digest(parts[name].struct_value).hexdigest()}\n".encode())
        return digest
    text = fields["text"] if "text" in fields else fields["uri"]
    return hashlib.sha256(text.string_value.encode())


def _digest_path(path: Path) -> hashlib._Hash:
    if not path.is_dir():
        return hashlib.sha256(path.read_bytes())
    digest = hashlib.sha256()
    for file in sorted(item for item in path.rglob("*") if item.is_file()):
        content = hashlib.sha256(file.read_bytes()).hexdigest()
        digest.update(f"{file.relative_to(path).as_posix()}\0{content}\n".encode())
    return digest
