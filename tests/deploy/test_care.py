"""What every pod owes its neighbours: few rights, known size, and leave only when others stay."""

import re

import pytest

from tests.deploy import cluster
from tests.deploy.cluster import OVERLAYS, WORKLOADS
from tests.deploy.kustomize import Manifest, containers

# The parts that are not ours, whose images tell their own version.
STORES = {"qdrant/qdrant", "valkey/valkey"}

every = pytest.mark.parametrize("overlay", OVERLAYS)


@every
def test_no_pod_has_rights_that_it_does_not_use(overlay: str) -> None:
    for one in cluster.of_kind(overlay, *WORKLOADS):
        pod = cluster.pod(one)["spec"]
        context = pod["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["runAsUser"] > 0
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        for container in containers(one):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }


@every
def test_what_is_written_goes_to_volumes_of_a_known_size(overlay: str) -> None:
    for one in cluster.of_kind(overlay, *WORKLOADS):
        pod = cluster.pod(one)["spec"]
        mounted = {mount["name"] for each in containers(one) for mount in each["volumeMounts"]}
        volumes = {volume["name"] for volume in pod["volumes"]}
        claimed = {
            claim["metadata"]["name"] for claim in one["spec"].get("volumeClaimTemplates", ())
        }
        assert mounted == volumes | claimed
        ours = any(_repository(each) not in STORES for each in containers(one))
        if ours:
            assert all(
                "sizeLimit" in volume["emptyDir"]
                for volume in pod["volumes"]
                if "emptyDir" in volume
            )
            assert {"scratch"} <= mounted


@every
def test_every_container_says_what_it_needs_and_may_take(overlay: str) -> None:
    for one in cluster.of_kind(overlay, *WORKLOADS):
        for container in containers(one):
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            # A processor's limit would stall the event loop with everything on it.
            assert container["resources"]["limits"].keys() == {"memory"}


@every
def test_one_image_serves_every_process_and_all_have_a_version(overlay: str) -> None:
    images = {
        container["image"]
        for one in cluster.of_kind(overlay, *WORKLOADS)
        for container in containers(one)
    }
    assert all(re.fullmatch(r"[^:@]+:(?!latest$)[\w.-]+", image) for image in images), images
    assert len({image for image in images if image.partition(":")[0] not in STORES}) == 1


def _repository(container: Manifest) -> str:
    return str(container["image"].partition(":")[0])


@every
def test_a_drained_node_takes_one_replica_of_a_kind_at_a_time(overlay: str) -> None:
    budgets = [one["spec"] for one in cluster.of_kind(overlay, "PodDisruptionBudget")]
    for one in cluster.of_kind(overlay, "Deployment", "StatefulSet"):
        if cluster.name(one) == "models":
            continue
        labels = cluster.pod(one)["metadata"]["labels"]
        mine = [
            budget for budget in budgets if list(cluster.selected(budget["selector"], [labels]))
        ]
        assert [budget["maxUnavailable"] for budget in mine] == [1]


@every
def test_replicas_roll_without_a_gap_and_spread_over_nodes_and_zones(overlay: str) -> None:
    for one in cluster.processes(overlay).values():
        rolling = one["spec"]["strategy"]["rollingUpdate"]
        assert rolling == {"maxUnavailable": 0, "maxSurge": 1}
        spread = cluster.pod(one)["spec"]["topologySpreadConstraints"]
        keys = {constraint["topologyKey"] for constraint in spread}
        assert keys == {"topology.kubernetes.io/zone", "kubernetes.io/hostname"}


@pytest.mark.parametrize("overlay", [one for one in OVERLAYS if one != "dev"])
def test_in_production_two_of_each_run_and_each_scales_by_what_it_has_in_work(
    overlay: str,
) -> None:
    scaled = {
        cluster.name(one): one["spec"]
        for one in cluster.of_kind(overlay, "HorizontalPodAutoscaler")
    }
    processes = cluster.processes(overlay)
    assert processes.pop("worker")["spec"]["replicas"] == 2
    assert scaled.keys() == processes.keys()
    for name, spec in scaled.items():
        assert spec["scaleTargetRef"]["name"] == name
        assert 2 <= spec["minReplicas"] < spec["maxReplicas"]
        assert "replicas" not in processes[name]["spec"]
        first, second = spec["metrics"]
        metric = "sluice_gateway_in_flight" if name == "gateway" else "sluice_rpc_in_flight"
        assert first["pods"]["metric"]["name"] == metric
        assert second["resource"]["name"] == "cpu"


def test_the_store_of_jobs_loses_nothing_and_that_of_the_allowance_throws_away_only_answers() -> (
    None
):
    maps = {
        cluster.name(one).rpartition("-")[0]: one["data"]["valkey.conf"]
        for one in cluster.of_kind("prod", "ConfigMap")
        if "valkey.conf" in one["data"]
    }
    assert "appendfsync always\n" in maps["jobs"]
    assert "maxmemory-policy noeviction\n" in maps["jobs"]
    assert "maxmemory-policy volatile-lru\n" in maps["valkey"]
