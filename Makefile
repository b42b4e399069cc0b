# Needs only python3 (3.11 or newer), make and a package index; no root, no Docker, no running service.
PYTHON ?= python3
# Two more than cores on the smallest machine: many tests wait for leases to lapse and servers to start.
WORKERS ?= 4
BIN := .venv/bin

.PHONY: help demo up test test-long test-gpu audit planted check format constraints clean

help:
	@echo "make demo         publish the example table from start to end (first run installs into .venv)"
	@echo "make up           the whole service on this machine, data in ./imprimatur-data"
	@echo "make test         check, then every test that needs no GPU and less than a minute"
	@echo "make test-long    the tests that take longer"
	@echo "make test-gpu     where there is a CUDA GPU: engines, noise and whole trainings on it against the CPU"
	@echo "make audit        attack every mechanism: what can be proven against what is claimed (docs/audits.md)"
	@echo "make planted      put known mistakes into a copy of the tree; the tests must notice every one"
	@echo "make check        ruff, mypy (strict), import-linter"
	@echo "make constraints  pin every dependency anew, from both pyproject.toml"

# Installed exactly as pinned; made again when the pins or the requirements of either distribution change.
.venv/installed: pyproject.toml imprimatur/pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt \
		-e ./imprimatur -e '.[worker,embedded,dev]'
	touch $@

demo: .venv/installed
	$(BIN)/imprimatur demo

up: .venv/installed
	$(BIN)/imprimatur up

# One thread each: workers that share cores would wait for one another in every small product. Bytecode is kept: a test starts
# dozens of processes, and each would compile the sources anew.
test: check
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not long"

test-long: .venv/installed
	$(BIN)/python -m pytest -m long

# Elsewhere the same trainings run on a device made of the CPU, as part of make test.
test-gpu: .venv/installed
	$(BIN)/python -c 'import sys, torch; sys.exit(not torch.cuda.is_available() and "there is no CUDA GPU here")'
	$(BIN)/python -m pytest tests/workers/mechanism/test_on_a_gpu.py tests/workers/engines/test_replayed.py tests/workers/test_second_device.py

audit: .venv/installed
	$(BIN)/python -m bench.audit

planted: .venv/installed
	$(BIN)/python -m bench.planted --workers 3

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: .venv/installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# The pins name versions only: no index, no local path, and torch without the suffix of one build. The client is a wheel
# of this tree while they are made: a package of its name on an index is not it.
constraints: .venv/installed
	echo 'torch==2.13.0' > .venv/pinned.txt
	rm -rf .venv/wheels
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir .venv/wheels ./imprimatur
	$(BIN)/python -m piptools compile --quiet --upgrade --all-extras --strip-extras --no-annotate --no-header \
		--no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
		--find-links .venv/wheels --constraint .venv/pinned.txt --output-file .venv/constraints.txt \
		pyproject.toml imprimatur/pyproject.toml
	{ echo '# Exact versions, generated from both pyproject.toml by `make constraints`; do not edit.'; \
	  sed -e 's/^\(torch==[0-9.]*\)+.*/\1/' .venv/constraints.txt | grep -v -e '^#' -e '^-' -e '^$$' -e '^imprimatur'; } > constraints.txt

clean:
	rm -rf .venv build dist *.egg-info imprimatur/build imprimatur/*.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache demo-output
