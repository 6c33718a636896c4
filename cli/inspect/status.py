"""`gcluster status`: the cluster as it is now."""

from datetime import UTC, datetime

from ...lifecycle.cluster.cluster import open_cluster
from ...lifecycle.cluster.outcome import Exit
from ...lifecycle.status.health import read_status
from ..console import emit, say, stdout
from ..options import Format, OutputFormat, Target
from ..render.document import document
from ..render.inspect.status import status_text


def command(cluster: Target, fmt: OutputFormat = Format.TEXT) -> Exit:
    """Show nodes, conditions and the queue.

    Exit code 1 when a condition doesn't hold.
    """
    status = read_status(open_cluster(cluster, running=True))
    if fmt is Format.JSON:
        emit(document(status))
    else:
        say(status_text(status, stdout(), now=datetime.now(UTC)))
    return Exit.OK if status.healthy else Exit.FAILED
