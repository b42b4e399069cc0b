# Two images: `service` (API, relay, migrations; no torch) and `worker`. Versions are those of constraints.txt.
FROM python:3.11-slim AS base
RUN useradd --create-home --uid 10001 imprimatur \
    && install -d -o imprimatur -m 0700 /objects /secrets /signing \
    && install -d -m 0755 /authority
WORKDIR /app
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY docker/part_is_ready.py docker/make_certificates.py docker/
COPY imprimatur imprimatur
COPY migrations migrations
COPY service service
COPY workers workers

FROM base AS service
RUN pip install -c constraints.txt ./imprimatur .
USER imprimatur

# A worker without a GPU needs no CUDA: give the address of an index with CPU builds of torch,
# `docker build --build-arg PIP_EXTRA_INDEX_URL=…`.
FROM base AS worker
ARG PIP_EXTRA_INDEX_URL
# For the loops of workers/numerics; without a compiler private steps take longer.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN pip install -c constraints.txt ./imprimatur '.[worker]'
USER imprimatur
