"""A whole cluster in namespaces of its own, which is gone when its first process is."""

from sim.bench.bench import Bench, default_folder
from sim.bench.folder import BenchError
from sim.bench.options import BenchOptions

__all__ = ["Bench", "BenchError", "BenchOptions", "default_folder"]
