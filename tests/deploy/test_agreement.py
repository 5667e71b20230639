"""What the manifests say is what the code does: ports, probes, settings, arrows, times."""

import importlib
import importlib.util
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.x509.oid import NameOID

from chassis import health, serve
from chassis.identity import development_key
from chassis.settings import PREFIX, ProcessSettings
from deploy.sync import SyncSettings
from gateway.settings import GatewaySettings
from gateway.worker.settings import WorkerSettings
from services.assemble import __main__ as assemble
from services.assemble.settings import AssembleSettings
from services.generate.settings import GenerateSettings
from services.ingest import room
from services.ingest.adapters import reply
from services.ingest.settings import IngestSettings
from services.retrieve import __main__ as retrieve
from services.retrieve.settings import RetrieveSettings
from tests.deploy import cluster
from tests.deploy.cluster import NAME, OVERLAYS, WORKLOADS
from tests.deploy.kustomize import Manifest, containers

KINDS: dict[str, type[ProcessSettings]] = {
    "gateway": GatewaySettings,
    "worker": WorkerSettings,
    "ingest": IngestSettings,
    "retrieve": RetrieveSettings,
    "assemble": AssembleSettings,
    "generate": GenerateSettings,
}
MODULES = {
    "gateway": "gateway",
    "worker": "gateway.worker",
    **{stage: f"services.{stage}" for stage in ("ingest", "retrieve", "assemble", "generate")},
}
# A setting that makes a process call somebody: whom, and on which port.
CALLS = {
    "ingest_target": ("ingest", 50051),
    "retrieve_target": ("retrieve", 50052),
    "assemble_target": ("assemble", 50053),
    "generate_target": ("generate", 50054),
    "qdrant_url": ("qdrant", 6334),
    "redis_url": ("valkey", 6379),
    "jobs_redis_url": ("jobs", 6379),
}
# The stores among themselves, and what comes with the components.
OTHERS = {("qdrant", "qdrant", 6335), ("sync", "ingest", 50051)}
MODELS = {("ingest", "models", 8090), ("retrieve", "models", 8090)}
HEALTH_PORT = f"{PREFIX}HEALTH_PORT"
CLOSING = 10  # seconds that a process has to close after its last call
PRODUCTION = [overlay for overlay in OVERLAYS if overlay != "dev"]

every = pytest.mark.parametrize("overlay", OVERLAYS)


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What is mounted at /etc/sluice."""
    folder = tmp_path_factory.mktemp("keys")
    private = development_key()
    pem = serialization.Encoding.PEM
    no_password = serialization.NoEncryption()
    written = {
        "signing/internal.pem": private.private_bytes(
            pem, serialization.PrivateFormat.PKCS8, no_password
        ),
        "verifying/internal.pub.pem": private.public_key().public_bytes(
            pem, serialization.PublicFormat.SubjectPublicKeyInfo
        ),
    }
    own = certificate(private).public_bytes(pem)
    secret = written["signing/internal.pem"]
    written |= {"tls/tls.crt": own, "tls/ca.crt": own, "tls/tls.key": secret}
    for path, content in written.items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)
    return folder


def certificate(key: Ed25519PrivateKey) -> x509.Certificate:
    """Signed by itself, for a day around now."""
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sluice")])
    now, day = datetime.now(UTC), timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
    return made.not_valid_before(now - day).not_valid_after(now + day).sign(key, None)


def settings(
    overlay: str, name: str, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> ProcessSettings:
    """The process's settings as its pod has them. Raises what the process would refuse."""
    told = cluster.environment(overlay, cluster.processes(overlay)[name])
    for variable, value in told.items():
        if value.endswith("redis/url"):
            value = "redis://:secret@store:6379/0"  # noqa: PLW2901 - what the secret holds
        monkeypatch.setenv(variable, value.replace("/etc/sluice", str(keys)))
    return KINDS[name]()


@every
def test_every_process_starts_with_what_its_pod_is_told(
    overlay: str, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert cluster.processes(overlay).keys() == KINDS.keys()
    for name in KINDS:
        with monkeypatch.context() as patched:
            found = settings(overlay, name, keys, patched)
        assert found.env == ("development" if overlay == "dev" else "production")
        assert found.host == "0.0.0.0"


@every
def test_no_variable_is_misspelt(overlay: str) -> None:
    """Settings that nobody knows would be ignored in silence."""
    kinds: list[type[ProcessSettings]] = [*KINDS.values(), SyncSettings]
    known = {name for kind in kinds for name in kind.model_fields}
    if overlay == "dev":
        known.add("models_requests")
    for one in cluster.of_kind(overlay, *WORKLOADS):
        if containers(one)[0]["name"] == "process":
            told = cluster.environment(overlay, one)
            assert {name.removeprefix(PREFIX).lower() for name in told} <= known
            own = {variable["name"] for variable in containers(one)[0]["env"]}
            kind = SyncSettings if cluster.name(one) == "sync" else KINDS[cluster.name(one)]
            assert {name.removeprefix(PREFIX).lower() for name in own} <= kind.model_fields.keys()


@every
def test_each_pod_runs_its_process_on_its_port_with_metrics_a_thousand_above(
    overlay: str,
) -> None:
    for name, one in cluster.processes(overlay).items():
        (container,) = containers(one)
        assert container["args"] == [MODULES[name]]
        assert importlib.util.find_spec(f"{MODULES[name]}.__main__")
        port = KINDS[name].model_fields["port"].default
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        http = {"http": GatewaySettings.model_fields["http_port"].default}
        told = cluster.environment(overlay, one)
        health = {"health": int(told[HEALTH_PORT])} if HEALTH_PORT in told else {}
        expected = {"grpc": port, "metrics": port + 1_000, **health}
        assert ports == expected | (http if name == "gateway" else {})
        assert told[f"{PREFIX}METRICS_PORT"] == str(port + 1_000)


@every
def test_probes_ask_the_health_service_by_the_names_it_knows(overlay: str) -> None:
    for name, one in cluster.processes(overlay).items():
        (container,) = containers(one)
        asked = {
            probe: container[f"{probe}Probe"]["grpc"]["service"]
            for probe in ("startup", "readiness", "liveness")
        }
        liveness, readiness = health.LIVENESS, health.READINESS
        assert asked == {"startup": liveness, "readiness": readiness, "liveness": liveness}
        port = KINDS[name].model_fields["port"].default
        told = cluster.environment(overlay, one)
        port = int(told.get(HEALTH_PORT, port))
        assert {container[f"{probe}Probe"]["grpc"]["port"] for probe in asked} == {port}


@every
def test_services_that_are_called_by_grpc_are_headless_and_lead_to_the_pods(overlay: str) -> None:
    services = {cluster.name(one): one for one in cluster.of_kind(overlay, "Service")}
    for name, one in cluster.processes(overlay).items():
        service = services[name]["spec"]
        assert service["clusterIP"] == "None"
        labels = cluster.pod(one)["metadata"]["labels"]
        assert list(cluster.selected({"matchLabels": service["selector"]}, [labels]))
        names = {port["name"]: port["port"] for port in service["ports"]}
        ports = {each["name"]: each["containerPort"] for each in containers(one)[0]["ports"]}
        assert names.items() <= ports.items()
        for variable, value in cluster.environment(overlay, one).items():
            if variable.endswith("_TARGET"):
                host, _, port = value.removeprefix("dns:///").partition(":")
                targets = services[host]["spec"]["ports"]
                assert int(port) in {each["port"] for each in targets}


def test_with_mutual_tls_each_process_has_a_certificate_for_the_name_it_is_called_by() -> None:
    made = {
        one["spec"]["secretName"]: one["spec"]["dnsNames"]
        for one in cluster.of_kind("everything", "Certificate")
        if "dnsNames" in one["spec"]
    }
    sync = cluster.named("everything", "CronJob", "sync")
    for name, one in {**cluster.processes("everything"), "sync": sync}.items():
        volumes = {volume["name"]: volume for volume in cluster.pod(one)["spec"]["volumes"]}
        assert made[volumes["tls"]["secret"]["secretName"]] == [name]
        told = cluster.environment("everything", one)
        files = {told[f"{PREFIX}TLS_{file}"] for file in ("CERTIFICATE", "KEY", "AUTHORITY")}
        assert files == {f"/etc/sluice/tls/{file}" for file in ("tls.crt", "tls.key", "ca.crt")}


@every
def test_only_the_arrows_of_the_code_are_admitted(overlay: str) -> None:
    expected = {
        (name, *CALLS[field])
        for name, kind in KINDS.items()
        for field in kind.model_fields
        if field in CALLS
    }
    there = {_app(one) for one in cluster.of_kind(overlay, *WORKLOADS)}
    within = {arrow for arrow in expected | OTHERS if set(arrow[:2]) <= there}
    if overlay == "dev":
        within |= MODELS
    assert _arrows(overlay) == within


def _app(one: Manifest) -> str:
    return str(cluster.pod(one)["metadata"]["labels"][NAME])


def _arrows(overlay: str) -> set[tuple[str, str, int]]:
    """From whom to whom on which port: what both sides' policies admit."""
    pods = [cluster.pod(one)["metadata"]["labels"] for one in cluster.of_kind(overlay, *WORKLOADS)]
    leaving: set[tuple[str, str, int]] = set()
    entering: set[tuple[str, str, int]] = set()
    for policy in cluster.of_kind(overlay, "NetworkPolicy"):
        mine = [one[NAME] for one in cluster.selected(policy["spec"]["podSelector"], pods)]
        for side, peers, found in (("egress", "to", leaving), ("ingress", "from", entering)):
            for rule in policy["spec"].get(side, ()):
                for other, port in _peers(rule, peers, pods):
                    found |= {
                        (one, other, port) if side == "egress" else (other, one, port)
                        for one in mine
                    }
    assert leaving == entering
    return leaving


def _peers(rule: Manifest, side: str, pods: list[dict[str, str]]) -> Iterator[tuple[str, int]]:
    for peer in rule[side]:
        if "podSelector" in peer:
            assert peer.keys() == {"podSelector"}
            for other in cluster.selected(peer["podSelector"], pods):
                for port in rule["ports"]:
                    yield other[NAME], port["port"]


@every
def test_all_is_denied_that_no_policy_admits(overlay: str) -> None:
    policy = cluster.named(overlay, "NetworkPolicy", "default-deny")["spec"]
    assert policy == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}


@pytest.mark.parametrize("overlay", PRODUCTION)
def test_only_who_calls_a_provider_leaves_the_cluster(overlay: str) -> None:
    pods = [cluster.pod(one)["metadata"]["labels"] for one in cluster.of_kind(overlay, *WORKLOADS)]
    outside: defaultdict[str, set[int]] = defaultdict(set)
    for policy in cluster.of_kind(overlay, "NetworkPolicy"):
        for rule in policy["spec"].get("egress", ()):
            if any("ipBlock" in peer for peer in rule["to"]):
                for one in cluster.selected(policy["spec"]["podSelector"], pods):
                    outside[one[NAME]] |= {port["port"] for port in rule["ports"]}
    calls = {
        name: {443}
        for name, kind in KINDS.items()
        if kind.model_fields.keys() & {"answer_base_url", "embedding_base_url", "issuer_jwks_url"}
    }
    if overlay == "external":
        for name, kind in KINDS.items():
            for field in kind.model_fields.keys() & {"qdrant_url", "redis_url", "jobs_redis_url"}:
                calls.setdefault(name, set()).add(CALLS[field][1])
    assert {name: set(ports) for name, ports in outside.items()} == calls


@every
def test_a_pod_ends_after_its_process_which_ends_after_its_longest_call(
    overlay: str, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    connections = dict(serve._SERVER_OPTIONS)["grpc.max_connection_age_grace_ms"] / 1_000
    for name, one in cluster.processes(overlay).items():
        with monkeypatch.context() as patched:
            told = settings(overlay, name, keys, patched)
        pod = cluster.pod(one)["spec"]
        before = containers(one)[0]["lifecycle"]["preStop"]["sleep"]["seconds"]
        assert told.grace_seconds >= _longest_call(told)
        assert pod["terminationGracePeriodSeconds"] >= before + told.grace_seconds + CLOSING
        assert connections > _longest_call(told)


def _longest_call(told: ProcessSettings) -> float:
    limits = {
        AssembleSettings: ("", assemble.LIMIT),
        RetrieveSettings: ("", retrieve.LIMIT),
        IngestSettings: ("ingest_seconds", 0),
        GenerateSettings: ("generate_seconds", 0),
        GatewaySettings: ("answer_deadline ingest_seconds", 0),
        WorkerSettings: ("job_attempt_seconds", 0),
    }
    fields, limit = limits[type(told)]
    return max([float(limit), *(float(getattr(told, field)) for field in fields.split())])


@every
def test_ingest_has_the_memory_that_its_documents_may_take(
    overlay: str, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = settings(overlay, "ingest", keys, monkeypatch)
    assert isinstance(told, IngestSettings)
    documents = (room.AT_ONCE + room.WAITING) * told.document_bytes
    (container,) = containers(cluster.processes(overlay)["ingest"])
    limit = int(container["resources"]["limits"]["memory"].removesuffix("Mi")) * 2**20
    own = int(container["resources"]["requests"]["memory"].removesuffix("Mi")) * 2**20
    assert limit >= own + room.AT_ONCE * reply.MEMORY + documents


@every
def test_who_divides_the_local_share_is_never_more_than_was_told(
    overlay: str, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = {
        cluster.name(one): one["spec"]["maxReplicas"] + 1  # one more while they roll
        for one in cluster.of_kind(overlay, "HorizontalPodAutoscaler")
    }
    for sharing in (("ingest", "retrieve"), ("generate",), ("gateway",)):
        for name in sharing:
            with monkeypatch.context() as patched:
                told = settings(overlay, name, keys, patched)
            assert vars(told)["max_processes"] >= sum(most[one] for one in sharing)


@every
def test_who_has_a_seat_finds_a_place_at_the_provider_beside_all_jobs(
    overlay: str, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        worker = settings(overlay, "worker", keys, patched)
    gateway = settings(overlay, "gateway", keys, monkeypatch)
    assert isinstance(worker, WorkerSettings)
    assert isinstance(gateway, GatewaySettings)
    workers = [cluster.named(overlay, "Deployment", "worker")["spec"]["replicas"]]
    workers += [one["spec"]["maxReplicaCount"] for one in cluster.of_kind(overlay, "ScaledObject")]
    taken = gateway.shared_max_in_flight + (max(workers) + 1) * worker.job_concurrency
    limits = [gateway.embedding_limits()]
    told = cluster.environment(overlay, cluster.processes(overlay)["generate"])
    if told[f"{PREFIX}ANSWER_MODE"] == "generated":
        limits.append(gateway.answer_limits())
    for granted in limits:
        assert granted.shared(gateway.local_share).in_flight >= taken


@every
def test_the_way_in_lets_documents_and_long_answers_through(
    overlay: str, keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingress = cluster.named(overlay, "Ingress", "gateway")
    told = settings(overlay, "gateway", keys, monkeypatch)
    assert isinstance(told, GatewaySettings)
    nginx = {
        name.rpartition("/")[2]: value for name, value in ingress["metadata"]["annotations"].items()
    }
    assert float(nginx["proxy-read-timeout"]) > max(told.answer_deadline, told.ingest_seconds)
    assert float(nginx["proxy-body-size"].removesuffix("m")) * 1024**2 > told.document_bytes
    assert nginx["proxy-buffering"] == nginx["proxy-request-buffering"] == "off"
    backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]
    service = cluster.named(overlay, "Service", backend["name"])["spec"]
    assert backend["port"]["name"] in {port["name"] for port in service["ports"]}
    assert service["selector"] == {NAME: "gateway"}
