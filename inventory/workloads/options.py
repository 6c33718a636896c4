"""Options of the frameworks' own programs, as their help spells them."""

from __future__ import annotations

import shlex

from ...schemas.spec import (
    DeepspeedWorkload,
    Degrees,
    MegatronWorkload,
    NemoWorkload,
    Parallel,
    RayWorkload,
    TorchrunElasticWorkload,
    TorchtitanWorkload,
    TorchWorkload,
    Workload,
)

_SAVED = '"$GCLUSTER_CHECKPOINTS"'


def framework_options(workload: TorchWorkload, checkpoints: str | None) -> list[str]:
    """Return the options that come after a program's own arguments, as words of bash.

    Sources: Megatron-LM (megatron/training/arguments.py), Megatron Bridge
    (scripts/training/run_recipe.py), torchtitan (torchtitan/config/configs.py), DeepSpeed
    (deepspeed.add_config_arguments).

    Args:
        workload: passed its checks.
        checkpoints: folder of its checkpoints; None: it has none.
    """
    saves = checkpoints is not None
    is_async = workload.checkpoint is not None and workload.checkpoint.is_async
    match workload:
        case DeepspeedWorkload():
            return ["--deepspeed", f"--deepspeed_config={shlex.quote(workload.config)}"]
        case MegatronWorkload():
            saved = [f"--save={_SAVED}", f"--load={_SAVED}"] if saves else []
            return [
                *_sizes(workload.parallel, "-"),
                *saved,
                *(["--async-save"] if is_async else []),
            ]
        case NemoWorkload():
            sizes = [] if workload.parallel is None else _sizes(workload.parallel, "_")
            saved = [f"--save_dir={_SAVED}", f"--load_dir={_SAVED}"] if saves else []
            return [f"--recipe={workload.recipe}", *sizes, *saved]
        case TorchtitanWorkload():
            saved = ["--checkpoint.enable", f"--checkpoint.folder={_SAVED}"] if saves else []
            saved += ["--checkpoint.async_mode=async"] if is_async else []
            own = [f"--module={workload.model}", f"--config={workload.config}"]
            return [*own, *_degrees(workload.parallel), *saved]
        case _:
            return []


def framework_variables(workload: Workload) -> dict[str, str]:
    """Return the variables that a framework doesn't work without; the workload's own win.

    Megatron-LM asserts its one of tensor and context parallelism on GPUs before Blackwell
    (megatron/training/arguments.py, validate_args), and its published scripts set it on all.
    Workers that torchrun starts again otherwise find addresses of those before them, in the store
    that its agents share (pytorch/pytorch issue 135712; so it was here with PyTorch 2.6).
    Ray drains a node for 30 s before it ends, for Serve's requests (python/ray/_private/node.py).
    """
    if isinstance(workload, TorchrunElasticWorkload) and workload.worker_restarts:
        return {"TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1"}
    if isinstance(workload, RayWorkload):
        return {"RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0"}
    if isinstance(workload, MegatronWorkload):
        sizes = workload.parallel
        is_divided = sizes.tensor > 1 or sizes.context > 1
        return {"CUDA_DEVICE_MAX_CONNECTIONS": "1"} if is_divided else {}
    return {}


def _sizes(sizes: Parallel, dash: str) -> list[str]:
    """Return Megatron's sizes, whose words are joined by "-", or by "_" in its Bridge."""
    given = {
        "tensor model parallel size": sizes.tensor,
        "pipeline model parallel size": sizes.pipeline,
        "context parallel size": sizes.context,
        "expert model parallel size": sizes.expert,
        "micro batch size": sizes.micro_batch,
        "global batch size": sizes.global_batch,
    }
    return [f"--{name.replace(' ', dash)}={size}" for name, size in given.items()]


def _degrees(sizes: Degrees) -> list[str]:
    """Return torchtitan's degrees; what it isn't given is as its configuration says."""
    given = {
        "tensor": sizes.tensor,
        "pipeline": sizes.pipeline,
        "context": sizes.context,
        "expert": sizes.expert,
    }
    return [
        f"--parallelism.{name}_parallel_degree={size}" for name, size in given.items() if size > 1
    ]
