"""All settings, from environment variables `IMPRIMATUR_*`. Settings choose implementations; code never reads os.environ."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Literal

from pydantic import Field, ValidationError
from pydantic_settings import BaseSettings, SettingsConfigDict

from service.base.errors import Unavailable


class Settings(BaseSettings):
    """One immutable set of settings a process. Defaults suit one machine; the three addresses have none."""

    model_config = SettingsConfigDict(env_prefix="IMPRIMATUR_", frozen=True, extra="ignore")

    database_url: str = Field(description="SQLAlchemy URL of the process's role, postgresql+psycopg://…")
    migration_database_url: str | None = Field(None, description="URL of the owning role; only migrations use it.")
    redis_url: str = Field(description="Celery broker: redis+socket://…, rediss://… (TLS, checked) or redis://…")
    storage_url: str = Field(description="file:///…, s3://…, gs://… or az://…")
    secret_key_file: Path | None = Field(
        None, description="The keyring, mode 0600: all of it for the API, worker.key for workers, none for the relay."
    )
    signing_key_file: Path | None = Field(
        None,
        description="32 random bytes, mode 0600, shared by relay and workers; default: signing.key beside the secret.",
    )
    worker_key_file: Path | None = Field(
        None,
        description="Where the workers' part of the keyring is written; default: worker.key beside the secret.",
    )

    upload_limit_bytes: int = Field(1 << 32, description="Largest request body; enforced while it streams.")
    kept_upload_limit_bytes: int = Field(
        1 << 32, ge=0, description="Largest upload kept as it came, encrypted, until its dataset's first charge."
    )
    unpacked_limit_bytes: int = Field(
        16 << 30, description="Largest size a packed upload or a Parquet file may unpack to."
    )
    ingest_memory_bytes: int = Field(4 << 30, description="Memory of the process that parses an upload.")
    ingest_seconds: int = Field(1_800, description="Time that parsing one upload may take.")
    max_epsilon: float = Field(20.0, gt=0, le=1_000, description="Largest ε of a dataset's budget.")
    sample_rows_limit: int = Field(100_000_000, description="Rows one sample request may ask for.")
    complete_rows_limit: int = Field(50_000, gt=0, description="Rows that one request may send to be completed.")
    complete_bytes_limit: int = Field(16 << 20, gt=0, description="Bytes of such a request.")
    ingest_processes: int = Field(2, gt=0, description="Uploads parsed at once; further ones wait their turn.")
    ingest_processes_per_tenant: int = Field(
        1, gt=0, description="Uploads of one tenant parsed at once; raise it to `ingest_processes` for a single tenant."
    )
    spool_bytes_per_tenant: int = Field(
        1 << 33, gt=0, description="Bytes of one tenant's uploads in the scratch folder at once, in one API process."
    )
    uploads_per_tenant: int = Field(
        16, gt=0, description="Uploads of one tenant received, waiting or read at once, in one API process."
    )
    staged_uploads_per_tenant: int = Field(
        5, gt=0, description="Files of one tenant that were sent at the web page and wait to be published."
    )
    staged_upload_seconds: int = Field(3_600, gt=0, le=3_600, description="How long such a file waits, encrypted.")
    request_head_seconds: float = Field(
        10.0, gt=0, description="How long a connection may take to send a request head."
    )
    body_grace_seconds: float = Field(30.0, gt=0, description="A request body may pause, or be slow, for this long.")
    body_bytes_per_second: float = Field(
        4_096.0, ge=0, description="Slowest average rate of a request body after that; slower ones are refused."
    )
    rate_limit_requests_per_minute: float = Field(120_000, gt=0, description="Requests of one API key.")
    rate_limit_tenant_requests_per_minute: float = Field(240_000, gt=0, description="Requests of all keys of a tenant.")
    rate_limit_failures_per_minute: float = Field(
        300, gt=0, description="Requests without a valid key from one IPv4 address or IPv6 /64 network."
    )
    rate_limit_burst_seconds: float = Field(10.0, gt=0, description="So many seconds' worth may come at once.")
    open_orders_per_key: int = Field(
        200, gt=0, description="Releases that one API key may have ordered and that have not ended."
    )
    open_orders_per_tenant: int = Field(1_000, gt=0, description="The same of all keys of a tenant.")
    trusted_proxies: str = Field(
        "",
        description="Addresses or networks of proxies whose X-Forwarded-For and -Proto count, with commas; none: those of no proxy.",
    )
    allowed_hosts: str = Field(
        "", description="Names the API answers to (Host, with or without port), with commas; none: any."
    )
    behind_tls: bool = Field(
        default=False, description="A proxy with TLS is in front: browsers are told to use nothing else."
    )
    page_idle_seconds: int = Field(
        1_800, gt=0, description="A session of the web page ends after so long without a request,"
    )
    page_longest_seconds: int = Field(43_200, gt=0, description="and so long after it began in any case.")
    oidc_issuer: str | None = Field(
        None,
        description="OpenID Connect provider that people may sign in with: its issuer, https://…; none: keys alone.",
    )
    oidc_client_id: str | None = Field(None, description="What this service is called there,")
    oidc_client_secret_file: Path | None = Field(None, description="and the file with its secret, mode 0600.")
    oidc_redirect_url: str | None = Field(
        None, description="This service's own address as browsers know it, and /sign-in/oidc/callback."
    )
    oidc_scope_claim: str = Field(
        "roles", description="The claim of the ID token, a text or a list, that says what one may."
    )
    oidc_scopes: str = Field(
        "owner=owner,analyst=analyst,reader=reader",
        description="Which of its values stand for which scope: value=scope, with commas.",
    )
    oidc_tenant: str | None = Field(None, description="The tenant of everybody who signs in so,")
    oidc_tenant_claim: str | None = Field(None, description="or the claim that holds the tenant's name.")
    serve_docs: bool = Field(default=False, description="/docs and /openapi.json are served, to everybody.")
    metrics: Literal["off", "open", "token"] = Field(
        "off", description="/metrics: not there, for everybody, or for who sends the token of `metrics_token_file`."
    )
    metrics_token_file: Path | None = Field(
        None, description="What `Authorization: Bearer …` of /metrics must hold, 32 characters or more, mode 0600."
    )
    wait_limit_seconds: int = Field(600, description="Longest `Prefer: wait=N` that is honoured.")

    lease_seconds: float = Field(
        60.0, description="A worker's claim on a release lapses this long after its last heartbeat."
    )
    heartbeat_seconds: float = Field(10.0, description="How often a worker renews its claim.")
    max_attempts: int = Field(3, description="Claims of one release before it is failed; the charge stands.")
    job_seconds_limit: float = Field(
        86_400.0, gt=0, description="Wall clock of one attempt; an order may be estimated at a third of it."
    )
    job_memory_bytes_limit: int = Field(
        16 << 30, gt=0, description="Memory of one attempt's process; an order may be estimated at two thirds of it."
    )
    job_cpu_speed: float = Field(
        1.0, gt=0, description="How fast a worker is beside the processor that estimates were fitted on."
    )
    relay_seconds: float = Field(0.2, description="Pause of the relay between two looks at the queue.")
    database_pool_size: int = Field(10, description="Connections one process keeps.")
    scratch_dir: Path | None = Field(
        None, description="Where uploads, encrypted, and a run's codes lie without names; default: the system's."
    )

    @property
    def signing_key_path(self) -> Path:
        """The path of the signing key."""
        return self.signing_key_file or self.keyring_path.with_name("signing.key")

    @property
    def keyring_path(self) -> Path:
        """The path of the secret key file. Raises `Unavailable` in a process that has none."""
        if self.secret_key_file is None:
            raise Unavailable("This process has no secret key file; set IMPRIMATUR_SECRET_KEY_FILE.")
        return self.secret_key_file

    @property
    def worker_keyring_path(self) -> Path:
        """The path of the workers' part of the secret key file."""
        return self.worker_key_file or self.keyring_path.with_name("worker.key")


def names_of(text: str) -> list[str]:
    """The names in a list with commas."""
    return [name for part in text.split(",") if (name := part.strip())]


@lru_cache
def get_settings() -> Settings:
    """The settings of this process. Where one is missing or wrong, the process ends with a sentence."""
    try:
        return Settings()
    except ValidationError as error:
        raise SystemExit(f"imprimatur cannot start: {_what_is_wrong(error)}") from None


def _what_is_wrong(error: ValidationError) -> str:
    """Names and rules, never a value: pydantic's own text quotes all of them, and a URL holds a password."""
    faults = [
        f"IMPRIMATUR_{'_'.join(map(str, each['loc'])).upper()}: {_fault(each['type'], each['msg'])}"
        for each in error.errors()
    ]
    return "; ".join(faults) + ". The settings are described in docs/operating.md and service/platform/settings.py."


def _fault(kind: str, message: str) -> str:
    return "is not set" if kind == "missing" else message
