"""gcluster: one typed cluster spec, compiled into running, tested GPU clusters."""

__version__ = "0.1.0"
