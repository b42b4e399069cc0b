# Needs only python3 (3.11 or newer), make and a package index; no root, no Docker, no running service.
PYTHON ?= python3
# Two more than cores on the smallest machine: many tests wait for leases to lapse and servers to start.
WORKERS ?= 4
VENV ?= .venv
BIN := $(VENV)/bin
# Not quiet: cold, this takes minutes, and each line names what is fetched.
PIP := $(BIN)/python -m pip install --disable-pip-version-check

.PHONY: help demo up site test test-slow test-browser screenshots test-long test-gpu test-pythons try-python audit planted check format
.PHONY: translations constraints locks licences sbom advisories audit-dependencies digests clean

help:
	@echo "make demo         publish the example table from start to end (first run installs into .venv)"
	@echo "make up           the whole service on this machine, data in ./imprimatur-data"
	@echo "make site         the documents as a site, which the service shows at /help"
	@echo "make test         check, then every test that needs no GPU and neither a whole service nor much time"
	@echo "make test-slow    tests of whole services: uploads to rows, crashes, every block of the documents; CI runs them, too"
	@echo "make test-browser the page in a real Chromium (of the system, or IMPRIMATUR_TEST_BROWSER=PATH); skipped without one"
	@echo "make screenshots  docs/page/*.png anew, with the same Chromium"
	@echo "make test-long    the tests that take longer"
	@echo "make test-gpu     where there is a CUDA GPU: engines, noise and whole trainings on it against the CPU"
	@echo "make test-pythons a selection of tests with every other Python from 3.11 that is on this machine"
	@echo "make audit        attack every mechanism: what can be proven against what is claimed (docs/audits.md)"
	@echo "make planted      put known mistakes into a copy of the tree; the tests must notice every one"
	@echo "make check        ruff, mypy (strict), import-linter, plain words in documents and code, dependencies (audit-dependencies)"
	@echo "make translations texts of the page: new ones into the German file, which is then compiled"
	@echo "make constraints  pin every dependency anew, from both pyproject.toml, with hashes (locks)"
	@echo "make sbom         a bill of materials, sbom.json (CycloneDX)"
	@echo "make audit-dependencies   licences, hashes, digests of images, known vulnerabilities: no network"
	@echo "make advisories DATABASE=DIR   known vulnerabilities anew, from a checkout of a database"
	@echo "make licences · make digests   docs/licences.md anew · images by the digests that registries name now"

# Installed exactly as pinned, each file by its hash; made again when the pins or the requirements of either distribution
# change. A CPU build of torch is taken where pip finds one (`PIP_EXTRA_INDEX_URL`, `PIP_FIND_LINKS`): it needs no CUDA, which
# the torch of the index does on Linux, some 3 GB.
$(VENV)/installed: pyproject.toml imprimatur/pyproject.toml $(wildcard requirements/*.txt)
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	@echo "Installing into $(VENV): some minutes when nothing is cached yet; pip names each package as it comes."
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/development.txt
ifndef WITHOUT_TORCH
	$(PIP) --require-hashes --no-deps -r requirements/torch-cpu.txt 2> /dev/null \
		|| { echo "no CPU build of torch at hand: the one of the index" && $(PIP) --require-hashes --no-deps -r requirements/torch.txt; }
	$(BIN)/python requirements/torch_needs_cuda.py || $(PIP) --require-hashes -r requirements/cuda.txt
endif
	$(PIP) --no-deps --no-build-isolation -e ./imprimatur -e .
	touch $@

# The documents as a site, which the service shows at /help. Built anew when a page or its order has changed.
site: service/pages/help/index.html

service/pages/help/index.html: $(VENV)/installed mkdocs.yml docs/site_hooks.py $(shell find docs bench/results -name '*.md')
	$(BIN)/mkdocs build --strict --quiet
	touch $@

demo: site
	$(BIN)/imprimatur demo

up: site
	$(BIN)/imprimatur up

# One thread each: workers that share cores would wait for one another in every small product. Bytecode is kept: a test starts
# dozens of processes, and each would compile the sources anew.
test: check site
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not slow and not long and not browser"

# Of these CI runs every one, too.
test-slow: $(VENV)/installed site
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "slow and not long"

# One process: all windows are of one browser, and each test waits for the service.
test-browser: $(VENV)/installed
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest tests/browser -rs

screenshots: $(VENV)/installed
	OMP_NUM_THREADS=1 $(BIN)/python -m docs.screenshots

test-long: $(VENV)/installed
	$(BIN)/python -m pytest -m long

# Elsewhere the same trainings run on a device made of the CPU, as part of make test.
test-gpu: $(VENV)/installed
	$(BIN)/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available() and "there is no CUDA GPU here")'
	$(BIN)/python -m pytest tests/workers/mechanism/test_on_a_gpu.py tests/workers/engines/test_replayed.py tests/workers/test_second_device.py

# Every interpreter in a virtual environment of its own, under .venv-pythons.
test-pythons:
	.ci/interpreters

# What `.ci/interpreters` runs for each: everything can be imported; Postgres and Redis; an order from upload to rows.
try-python: $(VENV)/installed
	$(BIN)/python -m pip check $(if $(WITHOUT_TORCH),|| true)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n 2 -p no:cacheprovider -m "not long" tests/service/test_imports.py tests/test_constraints.py \
		tests/service/platform $(if $(WITHOUT_TORCH),tests/service/local/test_embedded.py -k "not up_ and not signing_key and not worker",\
		tests/service/local/test_embedded.py tests/service/test_end_to_end.py tests/imprimatur/test_client.py)

translations: $(VENV)/installed
	$(BIN)/python -m supply translations

audit: $(VENV)/installed
	$(BIN)/python -m bench.audit

planted: $(VENV)/installed
	$(BIN)/python -m bench.planted --workers 3

check: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m docs.check_words
	$(BIN)/python -m supply check

audit-dependencies: $(VENV)/installed
	$(BIN)/python -m supply check

licences: $(VENV)/installed
	$(BIN)/python -m supply licences

sbom: $(VENV)/installed
	$(BIN)/python -m supply sbom sbom.json

advisories: $(VENV)/installed
	$(BIN)/python -m supply advisories $(DATABASE)

digests: $(VENV)/installed
	$(BIN)/python -m supply digests

format: $(VENV)/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The pins name versions only: no index, no local path, and torch without the suffix of one build. The client is a wheel
# of this tree while they are made: a package of its name on an index is not it.
constraints: $(VENV)/installed
	echo 'torch==2.13.0' > $(VENV)/pinned.txt
	rm -rf $(VENV)/wheels
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir $(VENV)/wheels ./imprimatur
	$(BIN)/python -m piptools compile --quiet --upgrade --all-extras --strip-extras --no-annotate --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--find-links $(VENV)/wheels --constraint $(VENV)/pinned.txt --output-file $(VENV)/constraints.txt \
		pyproject.toml imprimatur/pyproject.toml
	{ echo '# Exact versions, generated from both pyproject.toml by `make constraints`; do not edit.'; \
	  sed -e 's/^\(torch==[0-9.]*\)+.*/\1/' $(VENV)/constraints.txt | grep -v -e '^#' -e '^-' -e '^$$' -e '^imprimatur'; } > constraints.txt

	$(MAKE) locks
	@echo "Now: make licences check"

# uv reads hashes from the index without downloading files. It is needed here only.
locks: $(VENV)/installed
	$(PYTHON) -m venv $(VENV)/locking
	$(VENV)/locking/bin/python -m pip install --quiet --disable-pip-version-check uv==0.13.9
	$(BIN)/python -m supply locks $(VENV)/locking/bin/uv

clean:
	rm -rf .venv .venv-pythons sbom.json build dist *.egg-info imprimatur/build imprimatur/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-output
