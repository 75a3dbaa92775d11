# Every target creates what it needs and is quick the second time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
EXTRAS := fast plot networkx frames sklearn programs opendp accounting postgres warehouse sign desk
# numba keeps its compiled kernels here, so that they survive between runs
export NUMBA_CACHE_DIR ?= $(CURDIR)/.cache/numba
export MPLBACKEND ?= Agg
# tests start Python often: it keeps its bytecode, whatever the machine's default
unexport PYTHONDONTWRITEBYTECODE
WORKERS ?= 2
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
UV := $(BIN)/uv pip install --quiet --python $(BIN)/python

.PHONY: run packages test units lint test-services bench audit mutants docs lock clean

# The lock names uv, too: it installs the same files as pip, by the same hashes, in about a quarter of pip's computing time.
$(STAMP): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11, 5))' || \
	  { echo "The tools of this clone need Python 3.11.5 or newer (isotone alone, pip install ., any 3.11); run: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing isotone and its tools into $(VENV) (once; a few minutes)"
	@awk '/^uv==/, !/\\$$/' requirements.lock > $(VENV)/uv.lock
	@{ $(PIP) --require-hashes -r $(VENV)/uv.lock && $(UV) --require-hashes -r requirements.lock && $(UV) --no-deps -e .; } || \
	  { echo "uv cannot install here: pip does"; $(PIP) --require-hashes -r requirements.lock && $(PIP) --no-deps -e .; }
	@touch $@

packages: $(STAMP)

run: $(STAMP)
	@$(BIN)/python examples/run.py

# The type checker uses one core only, so the tests run beside it.
test: $(STAMP)
	@$(MAKE) --no-print-directory -j 2 lint units

# Each worker computes in one thread: more would get into each other's way.
units mutants test-services: export OMP_NUM_THREADS := 1
units mutants test-services: export POLARS_MAX_THREADS := 1
# Every step of a ledger waits for the disk, and so does a rehearsal. Where memory serves as one, and has room, tests wait less.
MEMORY := $(shell df -k /dev/shm 2>/dev/null | awk 'NR > 1 && $$4 > 4000000 {print $$6}')
units: export PYTEST_DEBUG_TEMPROOT := $(MEMORY)
units: export TMPDIR := $(or $(MEMORY),$(TMPDIR))

units: $(STAMP)
	@$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -m "not services"

lint: $(STAMP)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/pyright

test-services: $(STAMP)
	@bash tests/services.sh $(BIN)

bench: $(STAMP)
	@$(BIN)/python -m benchmarks

audit: $(STAMP)
	@$(BIN)/python -m tests.audit

# cosmic-ray stands beside the lock: it changes copies of the code, and nothing of the project runs with it.
MUTATION := .cache/mutation
$(MUTATION)/.installed:
	@$(PYTHON) -m venv $(MUTATION) && $(MUTATION)/bin/python -m pip install --quiet --disable-pip-version-check cosmic-ray==8.7.0
	@touch $@

# make mutants RANDOM=400 draws so many faults, with the hash of the commit as their seed.
mutants: $(STAMP) $(if $(RANDOM),$(MUTATION)/.installed)
	@$(BIN)/python -m tests.mutants --workers $(WORKERS) $(if $(RANDOM),--random $(RANDOM) --operators $(MUTATION)/bin/python) $(FAULTS)

docs: $(STAMP)
	@$(BIN)/python docs/build.py

# Writes the exact versions and hashes that every other target installs. Run it after a change of dependencies.
lock:
	@$(PYTHON) -m venv .cache/lock && .cache/lock/bin/python -m pip install --quiet --disable-pip-version-check uv
	@.cache/lock/bin/uv pip compile --quiet --universal --python-version 3.11.5 --generate-hashes --no-emit-index-url \
	  --no-annotate --no-header $(addprefix --extra ,$(EXTRAS)) --group dev --group docs pyproject.toml -o requirements.lock

clean:
	rm -rf $(VENV) .cache .ruff_cache .hypothesis site build dist
