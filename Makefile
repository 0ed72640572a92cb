# Commands for people and for CI; `make help` lists them. Needs Python 3.11 to 3.13 and make, nothing else.

SHELL := /bin/sh
MAKEFLAGS += --no-print-directory
.DEFAULT_GOAL := help

BIN := .venv/bin
PY := $(BIN)/python
PIP := -m pip install -qq --disable-pip-version-check
# A lock is complete, so nothing is left to resolve; and pip would refuse a pin without the extra that someone asks for.
LOCKED := --no-deps --require-hashes -r
SETUP := .venv/.stamp-project
ARGS ?=
SEEDS ?= 20000
# Processes of `make test`; a file of tests stays in one, because its fixtures are made once a file.
WORKERS ?= auto

say = @printf '== %s\n' '$(1)'

.PHONY: help
help:  ## List the commands
	@sed -n 's/^\([a-z][a-z0-9-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s%s\n", $$1, $$2}'

# ---- Environments: one for each lock file, made again when the lock changes ----

.PHONY: setup
setup: $(SETUP)  ## Make or update the environment in .venv

.venv/.stamp-lock: requirements/dev.txt
	$(call say,environment: .venv (a minute at first))
	@python="$$(sh tools/find-python)" && "$$python" -m venv .venv
	@$(PY) $(PIP) $(LOCKED) requirements/dev.txt
	@touch $@

$(SETUP): .venv/.stamp-lock pyproject.toml
	$(call say,environment: this project)
	@$(PY) $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

.venv-%/.stamp-lock: requirements/%.txt
	$(call say,environment: .venv-$*)
	@python="$$(sh tools/find-python)" && "$$python" -m venv --clear .venv-$*
	@.venv-$*/bin/python $(PIP) $(LOCKED) requirements/$*.txt
	@touch $@

# ---- What to run ----

.PHONY: demo
demo: $(SETUP)  ## Run an order through the local stack and show what happens
	@$(PY) -m examples.orders.demo $(ARGS)

.PHONY: test
test: $(SETUP)  ## Run the tests, except the slow and the end-to-end ones (ARGS="-k name")
	$(call say,tests)
	@$(PY) -m pytest -q -n $(WORKERS) --dist loadfile $(ARGS)

CHECKS := lint formatted types public-types contracts templates
.PHONY: check $(CHECKS)
check: $(SETUP)  ## Lint, types, import contracts, templates: all of them, even if one fails
	@$(MAKE) --keep-going $(CHECKS)
	$(call say,all checks passed)

lint: $(SETUP)
	$(call say,ruff check)
	@$(PY) -m ruff check --quiet --output-format concise .

formatted: $(SETUP)
	$(call say,ruff format --check)
	@$(PY) -m ruff format --check --output-format concise . || { echo 'Run "make format".' >&2; exit 1; }

types: $(SETUP)
	$(call say,pyright)
	@$(PY) -m pyright

public-types: $(SETUP)
	$(call say,mypy)
	@if [ -d tests/public_types ]; then $(PY) -m mypy --no-error-summary; fi

contracts: $(SETUP)
	$(call say,import contracts)
	@$(BIN)/lint-imports --no-logo --no-cache

templates: $(SETUP)
	$(call say,cfn-lint)
	@set -- $$(ls template.yaml infra/*.yaml 2>/dev/null); [ $$# -eq 0 ] || $(BIN)/cfn-lint "$$@"
	@if [ -x .venv-sam/bin/sam ] && [ -e template.yaml ]; then \
	    echo '== sam validate --lint'; \
	    SAM_CLI_TELEMETRY=0 AWS_DEFAULT_REGION=eu-central-1 .venv-sam/bin/sam validate --lint >/dev/null; \
	fi

.PHONY: format
format: $(SETUP)  ## Format the code and apply ruff's safe fixes
	@$(PY) -m ruff check --quiet --fix-only .
	@$(PY) -m ruff format --quiet .

.PHONY: e2e
e2e: $(SETUP) .venv-sam/.stamp-lock .venv-ministack/.stamp-lock  ## Deploy template.yaml with SAM to a second emulator and drive it
	$(call say,end-to-end tests)
	@$(PY) -m pytest -q -m e2e --timeout 400 $(ARGS)

.PHONY: budget
budget: $(SETUP)  ## Count AWS requests and write units against the budget
	@$(PY) -m benchmarks.budget $(ARGS)

.PHONY: load
load: $(SETUP)  ## Run 2,000 runs at once in virtual time on the in-memory ports; fails where anything is lost
	@$(PY) -m benchmarks.load $(ARGS)

.PHONY: bench
bench: $(SETUP)  ## Measure steps, replay and turns on the in-memory ports
	@$(PY) -m benchmarks.engine $(ARGS)

.PHONY: soak
soak: $(SETUP)  ## Run the slow tests: long simulations over many seeds
	$(call say,slow tests)
	@$(PY) -m pytest -q -m 'soak or slow' --timeout 3600 $(ARGS) || [ $$? -eq 5 ]
	$(call say,simulation)
	@$(PY) -m durable.testing.simulation --seeds $(SEEDS) --first "$$(date +%s)"

.PHONY: mutations
mutations: $(SETUP)  ## Break each rule of the protocols on purpose: one line says which seed notices (ARGS="NAME ...")
	@$(PY) -m tests.simulation.search $(ARGS)

.PHONY: matrix
matrix:  ## Run the tests on every supported Python that is installed
	@failed=; for version in 3.11 3.12 3.13; do \
	    if sh tools/find-python $$version >/dev/null 2>&1; then \
	        $(MAKE) matrix-one VERSION=$$version || failed="$$failed $$version"; \
	    else echo "== Python $$version: not installed, skipped"; fi; \
	done; \
	if [ -n "$$failed" ]; then echo "Failed on Python$$failed" >&2; exit 1; fi

.PHONY: matrix-one
matrix-one: .venv-$(VERSION)/.stamp-matrix
	$(call say,tests on Python $(VERSION))
	@.venv-$(VERSION)/bin/python -m pytest -q $(ARGS)

.venv-3.%/.stamp-matrix: requirements/dev.txt pyproject.toml
	$(call say,environment: .venv-3.$*)
	@python="$$(sh tools/find-python 3.$*)" && "$$python" -m venv .venv-3.$*
	@.venv-3.$*/bin/python $(PIP) $(LOCKED) requirements/dev.txt
	@.venv-3.$*/bin/python $(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# ---- Housekeeping ----

.PHONY: lock
lock:  ## Resolve the dependencies again and write requirements/*.txt (ARGS=--upgrade)
	@sh tools/lock $(ARGS)

.PHONY: clean
clean:  ## Remove environments, caches and build output
	@rm -rf .venv .venv-* .aws-sam .build .durable build dist
	@rm -rf .pytest_cache .ruff_cache .mypy_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
