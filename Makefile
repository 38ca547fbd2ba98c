# Two commands do everything: `make run` and `make test`. Each sets up .venv by itself.

PYTHON ?= python3
# The CPU build where one is at hand. For a GPU: make TORCH="torch>=2.13,<2.16" ...
TORCH  ?= torch==2.13.0
ARGS   ?=

VENV := .venv
BIN  := $(VENV)/bin
# One thread per process: two under contention cost several times the CPU.
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help setup run test lint format bench docs football clean

help:
	@echo "make run        set up and run the main job       (ARGS=... passes options on)"
	@echo "make test       set up and run the tests          (ARGS=... passes options on)"
	@echo "make setup      only set up $(VENV)"
	@echo "make lint       style, types, formatting"
	@echo "make format     mend style and formatting where that can be done by itself"
	@echo "make bench      speed and memory, each against its peers in one run"
	@echo "make docs       the documentation, into site/"
	@echo "make football   build the football engine into $(VENV)"
	@echo "make clean      remove $(VENV) and everything that was generated"

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "sipo_trl needs Python 3.11 or newer; $(PYTHON) is" `$(PYTHON) --version`. \
	  "Say which one to use: make PYTHON=python3.11 ..."; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	@touch $@

# Torch first and by itself, so that no later dependency pulls another build.
$(VENV)/.torch: $(VENV)/.python
	$(BIN)/pip install --quiet "$(TORCH)"
	@touch $@

$(VENV)/.setup: $(VENV)/.torch pyproject.toml
	$(BIN)/pip install --quiet --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.setup
	$(BIN)/pip install --quiet --editable ".[dev]"
	@touch $@

$(VENV)/.docs: $(VENV)/.setup
	$(BIN)/pip install --quiet --editable ".[docs]"
	@touch $@

setup: $(VENV)/.setup

RUN := runs/humanoid/$(shell date +%Y-%m-%d_%H-%M-%S)

run: $(VENV)/.setup
	$(BIN)/python launch/itr.py +env=humanoid run_dir=$(RUN) $(ARGS)
	$(BIN)/python -m evaluation report $(RUN)

test: $(VENV)/.dev
	$(BIN)/python -m pytest $(ARGS)

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks $(ARGS)

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

# gfootball has no wheels: it is compiled, against Debian's libraries, with the Python of $(VENV)
# first on the PATH, because its build asks whichever python3 it finds there for psutil.
FOOTBALL := gfootball==2.10.2
# Its many small functions are in files of their own: inlined when they are linked, a step takes a
# quarter less time, and every number stays the same.
FOOTBALL_FLAGS := CXXFLAGS="-flto=auto -fno-semantic-interposition" LDFLAGS="-flto=auto"
FOOTBALL_LIBRARIES := build-essential cmake libgl1-mesa-dev libopengl-dev libegl-dev \
  libglu1-mesa-dev libsdl2-dev libsdl2-image-dev libsdl2-ttf-dev libsdl2-gfx-dev \
  libboost-python-dev libboost-thread-dev libboost-filesystem-dev libboost-system-dev

$(VENV)/.football: $(VENV)/.setup
	@if dpkg -s $(FOOTBALL_LIBRARIES) > /dev/null 2>&1; then \
	  echo "The libraries that the engine is built against are there."; \
	elif command -v apt-get > /dev/null && [ "$$(id -u)" = 0 ]; then \
	  apt-get update -qq && apt-get install -y -qq --no-install-recommends $(FOOTBALL_LIBRARIES); \
	else \
	  echo "Not root on Debian: if the build fails, install what corresponds to:"; \
	  echo "  $(FOOTBALL_LIBRARIES)"; \
	fi
	$(BIN)/pip install --quiet --editable ".[football]" setuptools wheel
	PATH="$(CURDIR)/$(BIN):$$PATH" $(FOOTBALL_FLAGS) \
	  $(BIN)/pip install --no-build-isolation --no-deps $(FOOTBALL)
	$(BIN)/python -c "import gfootball.env as e; \
	  env = e.create_environment('academy_empty_goal_close', representation='simple115v2'); \
	  env.reset(); \
	  steps = next(n for n in range(1, 1000) if env.step(env.action_space.sample())[2]); \
	  print('gfootball works: it played an episode of', steps, 'steps')"
	@touch $@

football: $(VENV)/.football

clean:
	rm -rf $(VENV) build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
