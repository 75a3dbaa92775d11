# Every target creates what it needs and is quick the second time.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
EXTRAS := networkx,frames,sklearn,opendp,accounting,postgres,sign
# numba keeps its compiled kernels here, so that they survive between runs
export NUMBA_CACHE_DIR ?= $(CURDIR)/.cache/numba
export MPLBACKEND ?= Agg
WORKERS ?= 2

.PHONY: run test lint test-services bench audit mutants docs clean

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "isotone needs Python 3.11 or newer; run: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing isotone and its tools into $(VENV) (once; a few minutes)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --upgrade pip
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --group dev --group docs -e '.[$(EXTRAS)]'
	@touch $@

run: $(STAMP)
	@$(BIN)/python examples/run.py

test: $(STAMP) lint
	@$(BIN)/python -m pytest -n $(WORKERS) -m "not services"

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

mutants: $(STAMP)
	@$(BIN)/python -m tests.mutants --workers $(WORKERS) $(FAULTS)

docs: $(STAMP)
	@$(BIN)/python docs/build.py

clean:
	rm -rf $(VENV) .cache .ruff_cache .hypothesis site build dist
