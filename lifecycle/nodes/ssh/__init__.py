"""SSH to the nodes: sessions with pinned host keys, and in words why a node gives no answer."""

from .session import Answer, SshResult, SshSession, Unreachable

__all__ = ["Answer", "SshResult", "SshSession", "Unreachable"]
