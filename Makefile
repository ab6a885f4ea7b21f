# Needs Python (3.11 or newer) with pip, and make. Everything is installed into .venv in this folder.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install -q --disable-pip-version-check

DEMO_MODEL := .cache/models/ch_PP-OCRv4_rec_infer.onnx
MODEL      ?=
ARGS       ?=
TEXT       ?=
WORDS      ?=
MUTANTS    ?=
export MODEL TEXT WORDS

# What is installed, and since which pyproject.toml.
BASE := $(VENV)/.installed-base
TEST := $(VENV)/.installed-test
DEV  := $(VENV)/.installed-dev
DOCS := $(VENV)/.installed-docs
DATA := $(VENV)/.installed-experiments

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
# Two pip processes must not write into one environment at the same time.
.NOTPARALLEL:
.PHONY: help setup verify story test lint types bench figures notebooks docs mutants experiments experiments-smoke clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-17s %s\n", $$1, $$2 }' Makefile

setup: $(BASE) ## install the package; the command is then .venv/bin/argmaxable

# argmaxable verify exits with 0 (every class is argmaxable), 1 (some are proven unargmaxable), 2 (bad input)
# or 3 (some undecided). Here 0 and 1 both are success: every class was decided. Python itself exits with 1
# when the command cannot even be imported, so that is ruled out first.
verify: setup ## decide every class of MODEL=path (default: a small OCR model); more flags in ARGS="..."
	@$(BIN)/argmaxable --help > /dev/null
	@test -n "$$MODEL" || $(BIN)/python scripts/fetch_demo_model.py $(DEMO_MODEL)
	@model="$${MODEL:-$(DEMO_MODEL)}"; name="$$(basename "$$model")"; out="proofs/$${name%.*}"; \
	$(BIN)/argmaxable verify "$$model" --output "$$out" --report "$$out/report.html" $(ARGS) || \
	{ code=$$?; test $$code -eq 1 || exit $$code; }

story: $(TEST) ## teach PP-OCRv4 the characters it can't read and rewrite docs/stories/ocr.md (fonts: Debian's or PyPI's; WORDS=, TEXT= optional)
	$(BIN)/python -m scripts.tell_ocr_story $(ARGS) $${WORDS:+--words "$$WORDS"} $${TEXT:+--text "$$TEXT"}

# Hundreds of tests start the program: its modules are compiled once, also where the environment forbids it.
test: export PYTHONDONTWRITEBYTECODE :=
# PyTorch's compiler parses its headers once: what it makes of them stays from run to run.
test: export TORCHINDUCTOR_CACHE_DIR := $(CURDIR)/.cache/torchinductor
test: $(TEST) ## run the tests
	@scripts/install_chromium.sh
	scripts/with_fast_files.sh $(BIN)/pytest -n 2 --dist worksteal

lint: $(DEV) ## check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(DEV) $(TEST) ## check the types (against every optional library, so all are installed)
	$(BIN)/mypy

bench: $(TEST) ## run every program in benchmarks/ that needs no arguments
	@set -e; for program in $(filter-out benchmarks/_% benchmarks/teach_%,$(wildcard benchmarks/*.py)); do echo "== $$program"; $(BIN)/python "$$program"; done

figures: $(TEST) ## write the numbers of README.md and docs/ from what the benchmarks measured
	$(BIN)/python -m scripts.write_figures
	$(BIN)/python -m scripts.draw_benchmarks

# Small programs on two cores: more threads would only compete.
notebooks: export OPENBLAS_NUM_THREADS := 1
notebooks: export OMP_NUM_THREADS := 1
notebooks: $(TEST) $(DOCS) ## execute the tutorials of docs/tutorials, each from a clean kernel
	$(BIN)/python -m scripts.notebooks

docs: $(TEST) $(DOCS) ## build the documentation site into .site/ (after make notebooks); warnings and broken links are errors
	$(BIN)/python -m scripts.build_site

mutants: $(TEST) ## change the trusted code in many ways and see whether a test notices (docs/mutants.md; MUTANTS=part of a name); resumes
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m scripts.mutants $(MUTANTS)

experiments: $(TEST) $(DATA) ## run the papers' experiments on the text in TEXT=directory (valid.txt, test.txt); resumes
	@$(BIN)/python -m experiments

experiments-smoke: $(TEST) ## run every experiment once at a toy size
	@$(BIN)/python -m experiments --smoke

clean: ## remove the environment, the fetched model and all caches; proofs/ stays
	rm -rf $(VENV) .cache .site build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BASE): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "argmaxable needs Python 3.11 or newer, this is " + sys.version.split()[0] + ": make PYTHON=python3.11 ...")'
	@echo "Installing argmaxable into $(VENV)"
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) -e .
	@touch $@

$(TEST): $(BASE)
	@echo "Installing what the tests need into $(VENV)"
	@$(PIP) -e '.[test]'
	@touch $@

$(DEV): $(BASE)
	@echo "Installing the linter and the type checker into $(VENV)"
	@$(PIP) -e '.[dev]'
	@touch $@

$(DOCS): $(BASE)
	@echo "Installing what builds the site into $(VENV)"
	@$(PIP) -e '.[docs]'
	@touch $@

$(DATA): $(BASE)
	@echo "Installing what the experiments need into $(VENV)"
	@$(PIP) -e '.[experiments]'
	@touch $@
