"""The TPU catalogue: what GKE sells, what Ray and torch_tpu call it, and how many hosts and workers a topology has.

The lowest layer: it imports nothing of ours. Adding a generation is an entry in `catalogue.json`.
"""

from torchtpu_operator.tpu.catalogue import CATALOGUE, Generation, Machine, Placement
from torchtpu_operator.tpu.shape import Shape, ShapeError, resolve

__all__ = ["CATALOGUE", "Generation", "Machine", "Placement", "Shape", "ShapeError", "resolve"]
