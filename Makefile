# Every target runs the same tools as CI. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
LLM_STAMP := $(VENV)/.installed-llm
BENCH_VENV := .venv-bench
BENCH_STAMP := $(BENCH_VENV)/.installed
# Settings file in local/profiles that `make up` starts.
PROFILE ?= embedded
# Test processes at once: many tests wait. 0 runs everything in one, which is slower and steadier.
WORKERS ?= 3
CODE := libs services gateway cli local evals bench deploy tests

.DEFAULT_GOAL := help
.PHONY: help setup setup-llm setup-bench demo up test lint type proto proto-check bench soak browser audit lock

help: ## list the targets
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## install the locked dependencies into .venv

$(STAMP): requirements.txt requirements-setup.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements-setup.txt
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BIN)/python --require-hashes requirements.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@

setup-llm: $(LLM_STAMP)

# After the others: they are synchronised, which takes away what is not among them.
$(LLM_STAMP): requirements-llm.txt $(STAMP)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --require-hashes -r requirements-llm.txt
	@touch $@

setup-bench: $(BENCH_STAMP)

# Not among ours: it asks for other versions.
$(BENCH_STAMP): requirements-bench.txt $(STAMP)
	$(PYTHON) -m venv $(BENCH_VENV)
	$(BIN)/uv pip sync --quiet --compile-bytecode --python $(BENCH_VENV)/bin/python --require-hashes requirements-bench.txt
	@touch $@

PROTOC := $(BIN)/python -m grpc_tools.protoc -Iproto
PROTOS := $(shell find proto -name '*.proto' | sort)

proto: $(STAMP) ## regenerate gen/ from proto/
	rm -rf gen/sluice && mkdir -p gen
	PATH=$(abspath $(BIN)):$$PATH $(PROTOC) --python_out=gen --grpc_python_out=gen --mypy_out=gen --mypy_grpc_out=gen $(PROTOS)

proto-check: $(STAMP) ## lint the contracts, refuse breaking changes and drift of gen/
	$(BIN)/buf lint
	$(BIN)/buf breaking --against proto/baseline.binpb
	rm -rf build/gen && mkdir -p build/gen
	PATH=$(abspath $(BIN)):$$PATH $(PROTOC) --python_out=build/gen --grpc_python_out=build/gen --mypy_out=build/gen --mypy_grpc_out=build/gen $(PROTOS)
	diff -r -x __pycache__ build/gen/sluice gen/sluice

lint: $(STAMP) ## ruff, the formatter and the layers
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/lint-imports --no-cache

type: $(STAMP) ## mypy, strict
	$(BIN)/mypy $(CODE)

test: $(STAMP) $(LLM_STAMP) ## set up and run every test but the browser's
	$(BIN)/pytest -n $(WORKERS) --ignore tests/web/browser

browser: $(STAMP) ## try the web page in Chromium, if this machine has one
	$(BIN)/pytest -rs tests/web/browser

soak: $(STAMP) ## run the long versions of the tests
	$(BIN)/pytest -m soak

bench: $(STAMP) ## run the benchmarks and print one table (make setup-bench: with LiteLLM beside them)
	$(BIN)/python -m bench

LOCKED := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-header

# The locks, after pyproject.toml asks for something else: versions that are locked stay.
lock:
	$(LOCKED) --extra local --extra dev pyproject.toml -o requirements.txt
	$(LOCKED) -c requirements.txt pyproject.toml -o requirements-runtime.txt
	$(LOCKED) --group pyproject.toml:peers -o requirements-bench.txt

# Needs the package index's vulnerability data: where that cannot be reached nothing is audited, and
# the target fails rather than say so in passing.
audit: $(STAMP)
	$(BIN)/pip-audit --strict --disable-pip --require-hashes --progress-spinner off -r requirements-runtime.txt

up: $(STAMP) $(if $(filter local-llm,$(PROFILE)),$(LLM_STAMP)) ## start the suite and stay (Ctrl-C stops it); PROFILE=local-llm writes answers
	$(BIN)/sluice up --profile $(PROFILE)

demo: $(STAMP) ## set up, start, ingest the examples, ask three questions, stop
	$(BIN)/sluice demo
