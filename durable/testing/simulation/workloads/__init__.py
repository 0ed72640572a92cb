"""What simulated runs do: a seed picks one of these, each of which proves another part of the protocol."""

from durable.testing.simulation.workloads.cancelled import CANCELLED
from durable.testing.simulation.workloads.chain import CHAIN
from durable.testing.simulation.workloads.children import CHILDREN
from durable.testing.simulation.workloads.continued import CONTINUED
from durable.testing.simulation.workloads.deployed import DEPLOYED
from durable.testing.simulation.workloads.generated import GENERATED
from durable.testing.simulation.workloads.happenings import HAPPENINGS
from durable.testing.simulation.workloads.ledgers import LEDGERS
from durable.testing.simulation.workloads.limited import LIMITED
from durable.testing.simulation.workloads.looping import LOOPING
from durable.testing.simulation.workloads.relays import RELAYS
from durable.testing.simulation.workloads.remote import REMOTE
from durable.testing.simulation.workloads.saga import SAGA
from durable.testing.simulation.workloads.singletons import SINGLETONS
from durable.testing.simulation.workloads.workload import Workload

WORKLOADS: dict[str, Workload] = {
    one.name: one
    for one in (
        CHAIN, LOOPING, SAGA, CANCELLED, CONTINUED, DEPLOYED, GENERATED, CHILDREN, REMOTE, LIMITED, SINGLETONS, HAPPENINGS,
        LEDGERS, RELAYS,
    )
}  # fmt: skip

__all__ = ["WORKLOADS", "Workload"]
