"""Microsoft Azure: scale sets on InfiniBand, Managed Lustre, blob containers.

`layout` and what it imports need no SDK; the components, elastic and preflight import theirs.
"""
