"""SSH to the nodes: sessions with pinned host keys, and explanations of failed connections."""

from .session import Answer, SshResult, SshSession, Unreachable

__all__ = ["Answer", "SshResult", "SshSession", "Unreachable"]
