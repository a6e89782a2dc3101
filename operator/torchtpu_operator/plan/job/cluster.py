"""Whose a RayCluster of an attempt's name is: only ours is ever scaled or deleted."""

from collections.abc import Mapping
from typing import Any

from torchtpu_operator.plan.job.draft import Draft


def is_ours(draft: Draft, cluster: Mapping[str, Any]) -> bool:
    """The very one that the attempt has recorded; before one is recorded, one that this job owns."""
    attempt, meta = draft.attempt, cluster["metadata"]
    if attempt is not None and attempt.ray_cluster_uid:
        return bool(meta["uid"] == attempt.ray_cluster_uid)
    return any(owner.get("uid") == draft.job.metadata.uid for owner in meta.get("ownerReferences") or ())
