"""Spec and hosts in, role variables out: what each group of hosts must run, as values (pure)."""

from .cluster import compile_cluster
from .steps import CompiledCluster, Group, Step

__all__ = ["CompiledCluster", "Group", "Step", "compile_cluster"]
