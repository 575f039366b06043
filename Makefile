# Everything works on a fresh clone: what is needed is installed into .venv first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SANITIZE_VENV := .venv-sanitize
KERNELS := $(wildcard src/kernels/*.*pp src/kernels/*/*.*pp)
SOURCES := $(KERNELS) benchmarks/instructions.cpp
NATIVE := CMakeLists.txt $(KERNELS)

# Real ratings that tests use where they are; tests that need them skip elsewhere.
ifneq ($(wildcard ../shared/data),)
export MIXEDALS_DATA ?= $(abspath ../shared/data)
endif

.PHONY: demo test test-fast lint format types sanitize bench instructions docs dist nox clean

demo: $(VENV)/installed
	$(BIN)/python examples/demo.py

# In two processes, which a pool of threads for the BLAS of each would only make wait.
test test-fast: export OPENBLAS_NUM_THREADS = 1

test: $(VENV)/installed
	$(BIN)/pytest --numprocesses=2 --dist=loadgroup

test-fast: $(VENV)/installed
	$(BIN)/pytest --numprocesses=2 --dist=loadgroup -m "not slow"

lint: $(VENV)/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/clang-format --dry-run --Werror $(SOURCES)

format: $(VENV)/installed
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/clang-format -i $(SOURCES)

types: $(VENV)/installed
	$(BIN)/mypy

# The kernel tests with every memory access, every undefined operation and every race checked.
sanitize: $(SANITIZE_VENV)/installed
	$(call sanitized,address$(comma)undefined,libasan.so)
	$(call sanitized,thread,libtsan.so)

bench: $(VENV)/installed
	$(BIN)/python -m benchmarks

# Instructions of the main kernels beside those that they needed before; needs valgrind.
instructions: $(VENV)/installed
	$(BIN)/python -m benchmarks.instructions

# The site, with every notebook run; a warning is an error.
docs: $(VENV)/installed
	$(BIN)/pip install --quiet --group docs
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs build/docs

# The sdist, and the wheel made from it.
dist: $(VENV)/python
	$(BIN)/pip install --quiet build
	$(BIN)/python -m build --outdir dist .

# The tests against the installed wheel, for each Python, and with the lowest dependencies.
nox: $(VENV)/python
	$(BIN)/pip install --quiet nox uv
	PATH="$(abspath $(BIN)):$$PATH" $(BIN)/nox

clean:
	rm -rf $(VENV) $(SANITIZE_VENV) build dist

$(VENV)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "mixedals needs Python 3.11 or later: set PYTHON, as in make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/installed: $(VENV)/python pyproject.toml $(NATIVE)
	$(BIN)/pip install --quiet --group build --group dev
	$(BIN)/pip install --quiet --no-build-isolation --editable .
	touch $@

comma := ,
# $(call sanitized,SANITIZERS,RUNTIME): Python itself has none, so the runtime is loaded first.
define sanitized
	$(SANITIZE_VENV)/bin/pip install --quiet --no-build-isolation \
	  --config-settings=cmake.define.MIXEDALS_SANITIZE="$(1)" \
	  --config-settings=build-dir=build/$(2) .
	LD_PRELOAD="$$($(CXX) -print-file-name=$(2)) $$($(CXX) -print-file-name=libstdc++.so)" \
	  ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=ignore_noninstrumented_modules=1 \
	  $(SANITIZE_VENV)/bin/python -m pytest -q -p no:cacheprovider tests/kernels
endef

$(SANITIZE_VENV)/installed: pyproject.toml
	$(PYTHON) -m venv $(SANITIZE_VENV)
	$(SANITIZE_VENV)/bin/python -m pip install --quiet --upgrade pip
	$(SANITIZE_VENV)/bin/pip install --quiet --group build --group test
	touch $@
