"""MUNGE credentials through its own library: proof of root on a node of this cluster."""

from __future__ import annotations

import ctypes
import functools

ROOT = 0


class NotRoot(Exception):  # noqa: N818  # named for what happened
    """A credential that isn't of this cluster's root, or that was seen before."""


@functools.lru_cache(maxsize=1)
def _library() -> ctypes.CDLL:
    library = ctypes.CDLL("libmunge.so.2")
    library.munge_strerror.restype = ctypes.c_char_p
    return library


def encode(message: bytes) -> bytes:
    """Return a credential with a message in it, see munge_encode(3); raises OSError."""
    library, made = _library(), ctypes.c_char_p()
    code = library.munge_encode(ctypes.byref(made), None, message, len(message))
    if code:
        raise OSError("MUNGE: " + library.munge_strerror(code).decode())
    return made.value or b""


def decode(credential: bytes) -> bytes:
    """Return the message of a credential that root made, once; raises NotRoot."""
    library = _library()
    buffer, length, user = ctypes.c_void_p(), ctypes.c_int(), ctypes.c_uint32()
    code = library.munge_decode(
        credential,
        None,
        ctypes.byref(buffer),
        ctypes.byref(length),
        ctypes.byref(user),
        None,
    )
    try:
        if code:
            raise NotRoot(library.munge_strerror(code).decode())
        if user.value != ROOT:
            raise NotRoot(f"it is of user {user.value}")
        return ctypes.string_at(buffer, length.value)
    finally:
        if buffer:
            _free(buffer)


def _free(buffer: ctypes.c_void_p) -> None:
    free = ctypes.CDLL(None).free
    free.argtypes = [ctypes.c_void_p]
    free(buffer)
