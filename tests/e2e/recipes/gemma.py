"""JAX over two nodes, on processors: a sum over all processes."""

from __future__ import annotations

import jax
from jax.experimental import multihost_utils

jax.distributed.initialize()
mine = jax.numpy.array([float(jax.process_index() + 1)])
everyone = multihost_utils.process_allgather(mine)
if jax.process_index() == 0:
    print(f"{jax.process_count()} processes, sum {float(everyone.sum()):.0f}")
