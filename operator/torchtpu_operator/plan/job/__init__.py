"""The job reconciler's decisions."""

from torchtpu_operator.plan.job.observed import JobNeeds, JobObserved, job_needs
from torchtpu_operator.plan.job.planner import plan_job

__all__ = ["JobNeeds", "JobObserved", "job_needs", "plan_job"]
