# Two images: `service` (API, relay, migrations; no torch) and `worker`. Every file that pip installs is checked by its hash
# (requirements/), and the image below them is named by digest (`make digests` looks it up anew).
FROM python:3.11-slim@sha256:90744cff8f32887f075c47d747a173ff333e9e98801667af93c357fa9f5e28ff AS base
RUN useradd --create-home --uid 10001 imprimatur \
    && install -d -o imprimatur -m 0700 /objects /secrets /signing \
    && install -d -m 0755 /authority
WORKDIR /app
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY pyproject.toml README.md LICENSE ./
COPY requirements requirements
COPY docker/part_is_ready.py docker/make_certificates.py docker/
COPY imprimatur imprimatur
COPY migrations migrations
COPY service service
COPY workers workers

# The documents as a site, which the service shows at /help.
FROM base AS documents
RUN pip install --require-hashes -r requirements/documents.txt
COPY mkdocs.yml CHANGELOG.md ./
COPY docs docs
COPY bench/results bench/results
RUN mkdocs build --strict --quiet

FROM base AS service
COPY --from=documents /app/service/pages/help service/pages/help
RUN pip install --require-hashes -r requirements/service.txt \
    && pip install --no-deps --no-build-isolation ./imprimatur .
USER imprimatur

# A worker without a GPU needs no CUDA: give the address of an index with CPU builds of torch,
# `docker build --build-arg PIP_EXTRA_INDEX_URL=…`.
FROM base AS worker
ARG PIP_EXTRA_INDEX_URL
# For the loops of workers/numerics; without a compiler private steps take longer.
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev && rm -rf /var/lib/apt/lists/*
RUN pip install --require-hashes -r requirements/worker.txt \
    && { pip install --require-hashes --no-deps -r requirements/torch-cpu.txt || pip install --require-hashes --no-deps -r requirements/torch.txt; } \
    && { python requirements/torch_needs_cuda.py || pip install --require-hashes -r requirements/cuda.txt; } \
    && pip install --no-deps --no-build-isolation ./imprimatur .
USER imprimatur
