"""Two replicas, one acts: a coordination.k8s.io Lease.

A lease does not fence calls in flight; names, uids and resourceVersions do (every deciding write carries them). Expiry is
judged by our own monotonic clock, never by another machine's timestamps.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from torchtpu_operator.clients.clock import Clock
from torchtpu_operator.clients.kinds import LEASES, Kind
from torchtpu_operator.clients.kube_errors import KubeError

log = logging.getLogger(__name__)

NAME = "torchtpu-operator"
DURATION = 15.0  # how long the others wait after the last renewal: takeover within 20 s
RENEW_DEADLINE = 10.0  # how long we go on without a renewal: shorter, so that two never act
RETRY = 2.0


class LeaseApi(Protocol):
    async def get(self, kind: Kind, name: str, *, namespace: str | None = None) -> dict[str, Any] | None: ...

    async def create(self, kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]: ...

    async def replace(self, kind: Kind, obj: Mapping[str, Any]) -> dict[str, Any]: ...


class Lease:
    def __init__(
        self,
        api: LeaseApi,
        *,
        namespace: str,
        identity: str,
        clock: Clock,
        monotonic: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        self._api, self._namespace, self._identity = api, namespace, identity
        self._clock, self._monotonic, self._jitter = clock, monotonic, jitter
        self._seen: tuple[str, float] = ("", 0.0)  # the lease's resourceVersion, and when we first saw it
        self._held_until = 0.0
        self._told = ""

    @property
    def held(self) -> bool:
        """Whether we may act: a renewal is younger than the deadline."""
        return self._monotonic() < self._held_until

    async def acquire(self) -> None:
        """Until the lease is ours."""
        while True:
            try:
                if await self._try():
                    log.info("this replica holds the lease and acts", extra={"identity": self._identity})
                    return
            except KubeError as error:
                self._tell(f"the lease cannot be read or written: {error}")
            await asyncio.sleep(RETRY * (0.8 + 0.4 * self._jitter()))

    async def hold(self) -> None:
        """Renew; returns when leadership can no longer be proved, and then the process must stop acting."""
        while self.held:
            await asyncio.sleep(RETRY)
            left = self._held_until - self._monotonic()
            if left <= 0:
                break
            try:
                if not await asyncio.wait_for(self._try(), left):
                    self._tell("the lease was not renewed: another replica wrote it")
            except (KubeError, TimeoutError) as error:
                self._tell(f"the lease was not renewed: {error}")
        log.error("the lease is lost; this replica stops acting", extra={"identity": self._identity})

    async def release(self) -> None:
        """Give it up, so that the other replica takes over at its next look. Only while no worker of ours acts."""
        self._held_until = 0.0
        with contextlib.suppress(KubeError):  # it expires by itself
            lease = await self._api.get(LEASES, NAME, namespace=self._namespace)
            if lease and lease["spec"].get("holderIdentity") == self._identity:
                spec = lease["spec"] | {"holderIdentity": "", "leaseDurationSeconds": 1, "renewTime": self._now()}
                await self._api.replace(LEASES, lease | {"spec": spec})

    async def _try(self) -> bool:
        started = self._monotonic()  # before the write: never optimistic
        lease = await self._api.get(LEASES, NAME, namespace=self._namespace)
        try:
            if lease is None:
                lease = await self._api.create(LEASES, self._new())
            else:
                spec = lease.get("spec") or {}
                if not self._may_take(lease["metadata"]["resourceVersion"], spec):
                    holder = spec.get("holderIdentity")
                    self._tell(f"standing by: {holder} holds the lease", level=logging.INFO)
                    return False
                lease = await self._api.replace(LEASES, lease | {"spec": self._spec(spec)})  # carries the version
        except KubeError as error:
            if error.is_conflict:  # somebody was faster
                return False
            raise
        self._seen = lease["metadata"]["resourceVersion"], self._monotonic()
        self._held_until = started + RENEW_DEADLINE
        self._told = ""
        return True

    def _may_take(self, version: str, spec: Mapping[str, Any]) -> bool:
        if version != self._seen[0]:
            self._seen = version, self._monotonic()
        if spec.get("holderIdentity") in (self._identity, "", None):
            return True
        return self._monotonic() >= self._seen[1] + float(spec.get("leaseDurationSeconds") or DURATION)

    def _new(self) -> dict[str, Any]:
        return {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.name,
            "metadata": {"namespace": self._namespace, "name": NAME},
            "spec": self._spec({}),
        }

    def _spec(self, old: Mapping[str, Any]) -> dict[str, Any]:
        mine = old.get("holderIdentity") == self._identity
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": int(DURATION),
            "renewTime": self._now(),
            "acquireTime": old["acquireTime"] if mine and "acquireTime" in old else self._now(),
            "leaseTransitions": int(old.get("leaseTransitions") or 0) + (0 if mine or not old else 1),
        }

    def _now(self) -> str:
        return self._clock.now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    def _tell(self, message: str, *, level: int = logging.WARNING) -> None:
        """Say a thing once, not every two seconds."""
        if message != self._told:
            self._told = message
            log.log(level, message, extra={"identity": self._identity})
