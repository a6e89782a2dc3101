"""Objects for tests: valid by default, changed fluently, never in place.

`a_job()`, `a_slice()` and `a_class()` wrap API objects (`.build()` or `.to_object()`); the rest are the plain values that planners
see.
"""

from tests.builders.attempt import a_pod, a_ray, a_ray_cluster, a_ray_job, some_pods, some_ray_nodes
from tests.builders.classes import ClassBuilder, a_class, an_offer
from tests.builders.common import JOB_UID, NOW, SESSION, SETTINGS, at
from tests.builders.gke import a_failure, a_pool, an_operation, some_nodes
from tests.builders.jobs import JobBuilder, a_job
from tests.builders.slices import SliceBuilder, a_slice

__all__ = [
    "JOB_UID",
    "NOW",
    "SESSION",
    "SETTINGS",
    "ClassBuilder",
    "JobBuilder",
    "SliceBuilder",
    "a_class",
    "a_failure",
    "a_job",
    "a_pod",
    "a_pool",
    "a_ray",
    "a_ray_cluster",
    "a_ray_job",
    "a_slice",
    "an_offer",
    "an_operation",
    "at",
    "some_nodes",
    "some_pods",
    "some_ray_nodes",
]
