"""A NodeHost that only remembers: for tests and for simulations in virtual time."""

from dataclasses import dataclass, field

from sim.nodes import NodeSpec


@dataclass
class MemoryHost:
    nodes: dict[str, NodeSpec] = field(default_factory=dict)
    """Node objects that exist, by name."""
    dead: set[str] = field(default_factory=set)
    """Of these, hosts that died without notice."""
    added: int = 0
    """Nodes ever added: more than there are names once a host was recreated under its old name."""

    async def add(self, node: NodeSpec) -> None:
        self.nodes[node.name] = node
        self.dead.discard(node.name)
        self.added += 1

    async def remove(self, name: str, *, abrupt: bool = False) -> None:
        if abrupt and name in self.nodes:
            self.dead.add(name)
        else:
            self.nodes.pop(name, None)
            self.dead.discard(name)

    def alive(self, pool: str) -> list[str]:
        """Names of the pool's hosts that run."""
        return sorted(
            name
            for name, node in self.nodes.items()
            if node.labels["cloud.google.com/gke-nodepool"] == pool and name not in self.dead
        )
