# hotspan's front door: every target sets up what it needs, once.
#
#   make demo            run a small torch training and see where its time goes
#   make test TORCH=2.11.0   the same tests against another torch, in a virtual environment of its own

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

PYTHON ?= python3
TORCH ?=
# Of torch, for `make hooks`, and processors for `make wheel`; all when empty.
RELEASES ?=
PROCESSORS ?= x86_64 aarch64
VENV := .venv$(if $(TORCH),-torch-$(TORCH))
BIN := $(VENV)/bin
STAMPS := $(VENV)/.stamps

# Outside the clone, so that a second clone builds warm.
CACHE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/hotspan
export CARGO_TARGET_DIR ?= $(CACHE)/target
export CARGO_TERM_COLOR ?= auto
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
unexport PYTHONHOME PYTHONPATH CONDA_PREFIX

# Reading traces is checked for other systems, where `rustup target add` has brought their standard library. A check links
# nothing, so that the C of zstd, for which it would take a compiler of that system, may be missing.
READING_TARGETS = $(filter %-apple-darwin %-windows-msvc,$(shell rustup target list --installed 2> /dev/null))
CHECK_READING := ZSTD_SYS_USE_PKG_CONFIG=1 PKG_CONFIG=echo PKG_CONFIG_ALLOW_CROSS=1 \
	cargo check -p hotspan --no-default-features --locked

# Linters are pinned: a new version must not turn an old commit red.
TOOLS := 'maturin>=1.9,<2' ruff==0.17.4 mypy==2.4.1 'pytest>=8.3' 'uv>=0.9'
WHEEL_TOOLS := ziglang==0.17.0 cargo-zigbuild==0.24.0 auditwheel==6.8.2
# The newest torchvision of a given torch is found by pip: each torchvision asks for exactly one torch.
TORCH_PACKAGES := $(if $(TORCH),torch==$(TORCH),torch) torchvision numpy
TEST_PACKAGES := pyarrow polars duckdb accelerate pandas plotly networkx pydot \
	line_profiler memory_profiler py-spy pyinstrument gprof2dot coverage
# HTA is read with, not worked in: without its notebooks it is small.
BARE_TEST_PACKAGES := HolisticTraceAnalysis
BENCH_PACKAGES := HolisticTraceAnalysis torch-tb-profiler setuptools \
	line_profiler memory_profiler py-spy psutil viztracer pyinstrument scalene

.PHONY: help
help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@echo "  TORCH=2.11.0    uses that torch, in a virtual environment of its own"

.PHONY: demo
demo: dev $(STAMPS)/torch ## Run a small torch training under hotspan and show its report
	@export PATH="$(CURDIR)/$(BIN):$$PATH" KINETO_LOG_LEVEL=5 TORCH_CPP_LOG_LEVEL=ERROR; mkdir -p build/demo; \
	show() { printf '\n$$ %s\n' "$$*"; "$$@"; }; \
	show hotspan run -o build/demo/train.hotspan examples/train.py; \
	show ls -l build/demo

# A step of a release. Only headers of torch's wheels are fetched; what is made is not kept in the repository.
.PHONY: hooks
hooks: dev ## Compile the torch hooks that the wheel carries, for the releases of the last two years
	$(BIN)/python shim/carry.py --output build/hooks $(RELEASES)
	@rm -rf python/hotspan/_hooks && cp -r build/hooks/$(shell uname -m) python/hotspan/_hooks

# Zig links against the C library of old systems, and for the other processor.
.PHONY: wheel
wheel: web $(STAMPS)/wheel ## Build manylinux wheels for x86-64 and aarch64, one for all Pythons
	@for processor in $(PROCESSORS); do \
		rustup target add $$processor-unknown-linux-gnu > /dev/null 2>&1 || true; \
		rustup target list --installed | grep -q $$processor-unknown-linux-gnu \
			|| { echo "no wheel for $$processor: its Rust library cannot be had"; continue; }; \
		rm -rf python/hotspan/_hooks; \
		if [ -d build/hooks/$$processor ]; then cp -r build/hooks/$$processor python/hotspan/_hooks; \
		else echo "the wheel for $$processor carries no torch hooks: make hooks comes first"; fi; \
		PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/maturin build --release --locked --zig --out build/wheels \
			--target $$processor-unknown-linux-gnu --compatibility manylinux_2_28; \
	done
	@rm -rf python/hotspan/_hooks; [ ! -d build/hooks/$(shell uname -m) ] \
		|| cp -r build/hooks/$(shell uname -m) python/hotspan/_hooks

.PHONY: test
test: dev $(STAMPS)/torch $(STAMPS)/tests real ## Run all tests, Rust and Python
	cargo test --workspace --locked
	@$(MAKE) --no-print-directory test-web
	$(BIN)/maturin build --release --locked --quiet --compatibility linux --out build/wheels-of-tests
	@$(MAKE) --no-print-directory free-threaded
	$(BIN)/python -m pytest

# One build serves all Pythons with a GIL. A free-threaded one needs its own, where there is such a Python.
.PHONY: free-threaded
free-threaded: $(STAMPS)/tests
	@python=$$($(BIN)/python python/tests/interpreters.py 3.14t); [ -z "$$python" ] || { \
		PYO3_PYTHON=$$python cargo build --release -p hotspan-python --no-default-features --locked --quiet && \
		install -m 755 $(CARGO_TARGET_DIR)/release/lib_core.so \
			python/hotspan/_core.cpython-314t-$$(uname -m)-linux-gnu.so; }

# Environments of their own, outside the clone: the libraries are large, and a second clone has them at once.
.PHONY: real
real: $(STAMPS)/tools
	@$(BIN)/python python/tests/environments.py

.PHONY: test-real
test-real: dev $(STAMPS)/torch $(STAMPS)/tests real ## Try the programs of well-known libraries alone
	$(BIN)/python -m pytest python/tests/test_real_*.py

.PHONY: test-peers
test-peers: dev $(STAMPS)/torch $(STAMPS)/tests real ## Run the test suites of other profilers with hotspan in their place
	$(BIN)/python -m pytest -rP python/tests/test_peers.py

.PHONY: stress
stress: dev $(STAMPS)/torch $(STAMPS)/tests ## Fork two thousand times while threads are born, recorded in each way
	HOTSPAN_FORKS=2000 $(BIN)/python -m pytest -q python/tests/test_fork_stress.py

.PHONY: bench
bench: dev $(STAMPS)/bench ## Compare hotspan with its peers on the same files; writes bench/RESULTS.md
	$(BIN)/python bench/run.py
	$(BIN)/python bench/profiler.py
	$(BIN)/python bench/lines.py
	$(BIN)/python bench/sampler.py
	$(BIN)/python bench/calls.py
	$(BIN)/python bench/native.py
	$(BIN)/python bench/run_overhead.py
	$(BIN)/python bench/view.py

FUZZ_SECONDS ?= 60

.PHONY: fuzz
fuzz: ## Fuzz all readers, analyses and exporters, FUZZ_SECONDS=60 each
	@$(PYTHON) fuzz/run.py --seconds $(FUZZ_SECONDS)

.PHONY: dev
dev: $(STAMPS)/tools web ## Build hotspan and install it, editable, into .venv
	@$(BIN)/maturin develop --release --locked --quiet

.PHONY: lint
lint: $(STAMPS)/tools ## Check format, lints, types and the rules of the house
	cargo fmt --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy -p hotspan --no-default-features --locked -- -D warnings
	for target in $(READING_TARGETS); do $(CHECK_READING) --target $$target; done
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	@$(MAKE) --no-print-directory lint-web
	$(BIN)/python -m pytest -q python/tests/test_tidy.py python/tests/test_docs.py

# The web app is embedded in the program. Without Node the program builds all the same, and its page says what is missing.
.PHONY: web
ifneq ($(shell command -v npm 2> /dev/null),)
web: web/dist/index.html

.PHONY: lint-web
lint-web: web/node_modules/.stamp
	cd web && npm run --silent lint

.PHONY: test-web
test-web: web/node_modules/.stamp
	cd web && npm test --silent
else
web:
	@echo "Node is not here: hotspan view will have no pages"

.PHONY: lint-web test-web
lint-web test-web:
	@echo "Node is not here: the web app is not checked"
endif

web/dist/index.html: web/node_modules/.stamp $(filter-out web/e2e/% web/test/%,$(shell git ls-files --cached --others --exclude-standard web 2> /dev/null))
	@echo "building the web app"
	@cd web && npm run --silent build -- --logLevel warn

web/node_modules/.stamp: web/package-lock.json
	@cd web && npm ci --silent && touch node_modules/.stamp

# Stamps: a group of packages is installed once, and again when this file changes.

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
		|| { echo "hotspan needs Python 3.10 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Try: make PYTHON=python3.12" >&2; exit 1; }
	@cargo --version > /dev/null 2>&1 \
		|| { echo "hotspan is built with Rust; install it with rustup and try again" >&2; exit 1; }
	@echo "setting up $(VENV)"
	@$(PYTHON) -m venv $(VENV)

define INSTALL
@echo "installing $(1) into $(VENV)"
@$(BIN)/python -m pip install --quiet $(1)
@mkdir -p $(STAMPS) && touch $@
endef

$(STAMPS)/tools: Makefile | $(BIN)/python
	$(call INSTALL,$(TOOLS))

$(STAMPS)/torch: Makefile | $(BIN)/python
	$(call INSTALL,$(TORCH_PACKAGES))

$(STAMPS)/tests: Makefile | $(BIN)/python
	@$(BIN)/python -m pip install --quiet --no-deps $(BARE_TEST_PACKAGES)
	$(call INSTALL,$(TEST_PACKAGES))

$(STAMPS)/wheel: Makefile $(STAMPS)/tools | $(BIN)/python
	$(call INSTALL,$(WHEEL_TOOLS))

$(STAMPS)/bench: Makefile $(STAMPS)/torch | $(BIN)/python
	$(call INSTALL,$(BENCH_PACKAGES))
