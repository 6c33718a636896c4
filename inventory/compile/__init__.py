"""Spec and hosts in, role variables out: what each group of hosts must run, as values (pure)."""

from gcluster.inventory.compile.cluster import compile_cluster
from gcluster.inventory.compile.steps import CompiledCluster, Group, Step

__all__ = ["CompiledCluster", "Group", "Step", "compile_cluster"]
