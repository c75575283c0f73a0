# Everything works from a fresh clone: the first call of a target installs what it needs.
#   make demo       transcribe with the base install (no torch)
#   make lab        the lab, in the browser (no torch)
#   make test       lint, types, doctests and all quick tests
#   make test-all   the slow tests too
#   make coverage   the quick tests, and which lines they run: half as long again
#   make mutants    show that the tests can fail
#   make processors what holds on processors that qemu-user emulates: a table, then tests on each
#   make bench      every benchmark: a table each, then one JSON line
#   make compare    another library's checker beside our laws, in an environment of its own

PYTHON ?= python3
# Pinned for development; the range in pyproject.toml is what users may have.
TORCH ?= torch==2.13.0

BIN := .venv/bin
# What pip compiles, it compiles on one core, and most of it is never imported.
PIP_OPTIONS := --quiet --disable-pip-version-check --no-compile
# What is left out by hand, then, on all cores.
NOT_IMPORTED := /tests?/|/transformers/models/|/torch/(_inductor|ao|testing/_internal)/|$\
	/onnxruntime/(tools|transformers)/|/site-packages/(mypy|mypyc|pip|setuptools|torchgen)/
BENCHMARKS := $(filter-out benchmarks/_% benchmarks/against_%,$(wildcard benchmarks/*.py))

# Before 3.13, Python reads the path of an editable install in the locale's encoding, and in C, asked
# for by LC_ALL, it does not get past 한글. Unasked, it takes C for UTF-8.
ifneq ($(filter C POSIX,$(LC_ALL)),)
unexport LC_ALL
export LANG := C
endif

# Every process that the tests start would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

# Recordings that lie beside the project, unless another folder is named.
ifneq ($(wildcard ../shared/data),)
export NEARFUTURE_CORPORA ?= $(abspath ../shared/data)
endif

.PHONY: demo lab test quick test-all coverage mutants processors bench compare lint clean

demo: .venv-demo/installed
	.venv-demo/bin/nearfuture demo

lab: .venv-demo/installed
	.venv-demo/bin/nearfuture lab

# A process for each core, each with one thread, and one more, since some tests wait for a clock.
WORKERS ?= $(shell $(PYTHON) -c "import os; print(1 + (os.cpu_count() or 1))")
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
COVERAGE := --cov --cov-report=term:skip-covered

# Side by side: mypy runs on one core.
test: .venv/installed
	@$(MAKE) --no-print-directory -j 2 lint quick

quick: .venv/installed
	$(PYTEST) -m "not slow"

test-all: lint
	$(PYTEST) $(COVERAGE)

coverage: .venv/installed
	$(PYTEST) -m "not slow" $(COVERAGE)

mutants: .venv/installed
	$(BIN)/python -m tests.mutants

# Bundles are exported on this processor, with torch, and then run on the others.
EMULATED ?= Haswell Westmere
PROCESSOR_TESTS := $(addprefix tests/,runtime/test_processor.py runtime/test_engine.py \
	e2e/test_waveform_to_text.py export/test_quantization.py export/test_low_precision_products.py)

processors: .venv/installed
	@command -v qemu-x86_64 >/dev/null || { echo "make processors needs qemu-x86_64, which emulates \
	processors: apt-get install qemu-user" >&2; exit 1; }
	$(BIN)/python benchmarks/processors.py
	@set -e; NEARFUTURE_TEST_BUNDLES="$$(mktemp -d)"; export NEARFUTURE_TEST_BUNDLES; \
	trap 'rm -rf "$$NEARFUTURE_TEST_BUNDLES"' EXIT; \
	for one in "" $(EMULATED); do echo "== $${one:-this processor}"; \
	OMP_NUM_THREADS=1 $${one:+qemu-x86_64 -cpu $$one} $(BIN)/python -m pytest -q -p no:cacheprovider \
	-m "processor and not slow" $(PROCESSOR_TESTS); done

bench: .venv/installed
	@set -e; for script in $(BENCHMARKS); do echo "== $$script"; $(BIN)/python $$script; done

compare: .venv-compare/installed
	.venv-compare/bin/python benchmarks/against_sequence_layers.py

lint: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf .venv .venv-demo .venv-compare .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv-demo/installed: pyproject.toml
	$(PYTHON) -m venv --clear .venv-demo
	.venv-demo/bin/pip install $(PIP_OPTIONS) -e .
	touch $@

.venv/installed: pyproject.toml
	$(PYTHON) -m venv --clear .venv
	# The pip of an older Python takes twice as long to find out what fits together.
	$(BIN)/pip install $(PIP_OPTIONS) --upgrade pip
	$(BIN)/pip install $(PIP_OPTIONS) "$(TORCH)" -e ".[train,laws,media,phrases,dev]"
	# Here rather than in the tests, where a warning about another's syntax would be an error; some
	# packages ship templates that are no Python. Nobody imports half of it.
	$(BIN)/python -W ignore -m compileall -qq -j 0 -x '$(NOT_IMPORTED)' .venv/lib || true
	touch $@

.venv-compare/installed: pyproject.toml benchmarks/against_sequence_layers.txt
	$(PYTHON) -m venv --clear .venv-compare
	.venv-compare/bin/pip install $(PIP_OPTIONS) "$(TORCH)"
	.venv-compare/bin/pip install $(PIP_OPTIONS) -r benchmarks/against_sequence_layers.txt -e ".[laws]"
	touch $@
