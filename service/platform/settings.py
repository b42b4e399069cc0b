"""All settings, from environment variables `IMPRIMATUR_*`. Settings choose implementations; code never reads os.environ."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

from pydantic import Field
from pydantic_settings import BaseSettings, SettingsConfigDict


class Settings(BaseSettings):
    """One immutable set of settings a process. Defaults suit one machine; the three addresses have none."""

    model_config = SettingsConfigDict(env_prefix="IMPRIMATUR_", frozen=True, extra="ignore")

    database_url: str = Field(description="SQLAlchemy URL of the application role, postgresql+psycopg://…")
    migration_database_url: str | None = Field(None, description="URL of the owning role; only migrations use it.")
    redis_url: str = Field(description="Celery broker; redis://… or redis+socket://…")
    storage_url: str = Field(description="file:///…, s3://…, gs://… or az://…")
    secret_key_file: Path = Field(description="32 random bytes, mode 0600, shared by API and workers.")
    signing_key_file: Path | None = Field(
        None,
        description="32 random bytes, mode 0600, shared by relay and workers; default: signing.key beside the secret.",
    )

    upload_limit_bytes: int = Field(1 << 32, description="Largest request body; enforced while it streams.")
    kept_upload_limit_bytes: int = Field(
        1 << 32, ge=0, description="Largest upload kept as it came, encrypted, until its dataset's first charge."
    )
    unpacked_limit_bytes: int = Field(16 << 30, description="Largest size a Parquet file may unpack to.")
    ingest_memory_bytes: int = Field(4 << 30, description="Memory of the process that parses an upload.")
    ingest_seconds: int = Field(1_800, description="Time that parsing one upload may take.")
    max_epsilon: float = Field(20.0, gt=0, le=1_000, description="Largest ε of a dataset's budget.")
    sample_rows_limit: int = Field(100_000_000, description="Rows one sample request may ask for.")
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
        300, gt=0, description="Requests without a good key from one IPv4 address or IPv6 /64 network."
    )
    rate_limit_burst_seconds: float = Field(10.0, gt=0, description="So many seconds' worth may come at once.")
    wait_limit_seconds: int = Field(600, description="Longest `Prefer: wait=N` that is honoured.")

    lease_seconds: float = Field(
        60.0, description="A worker's claim on a release lapses this long after its last heartbeat."
    )
    heartbeat_seconds: float = Field(10.0, description="How often a worker renews its claim.")
    max_attempts: int = Field(3, description="Claims of one release before it is failed; the charge stands.")
    relay_seconds: float = Field(0.2, description="Pause of the relay between two looks at the outbox.")
    database_pool_size: int = Field(10, description="Connections one process keeps.")
    scratch_dir: Path | None = Field(
        None, description="Where uploads, encrypted, and a run's codes lie without names; default: the system's."
    )

    @property
    def signing_key_path(self) -> Path:
        """Where the signing key lies."""
        return self.signing_key_file or self.secret_key_file.with_name("signing.key")


@lru_cache
def get_settings() -> Settings:
    """The settings of this process."""
    return Settings()
