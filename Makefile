# Two commands on a fresh machine: `make demo` and `make test`. Both set everything up by themselves.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
ARGS ?=
# one worker more than cores: many tests wait for servers, browsers and time limits
WORKERS ?= $(shell echo $$(( $$(nproc 2>/dev/null || echo 2) + 1 )))
SHELL := /bin/bash
# hundreds of tests start a process of their own, which would compile every module again
unexport PYTHONDONTWRITEBYTECODE
# the workers of the tests share the cores: more threads for linear algebra would spin while they wait for each other
tests quick: export OPENBLAS_NUM_THREADS := 1
tests quick: export OMP_NUM_THREADS := 1
# as root nothing is needed; elsewhere sudo is
SUDO := $(shell [ "$$(id -u)" = 0 ] || echo sudo)

.PHONY: demo test quick setup checklist papers rooms errors theorems sql proofs docs screenshots lint types tests bench peers lock clean wheels release-check

demo: setup ## a first private answer over the bundled data, then a server until Ctrl-C (ARGS=--once: no waiting)
	@echo "demo: private answers over the bundled health data"
	@$(BIN)/hubbub demo $(ARGS)

# Types take a minute of one processor if nothing is cached, so they are checked beside the tests; errors are shown at the end.
test: $(VENV)/.dev $(VENV)/.system lint ## lint, types, doctests and tests
	@report=$$(mktemp); trap 'rm -f "$$report"' EXIT; trap 'kill $$types 2>/dev/null; exit 130' INT TERM; \
	$(MAKE) --no-print-directory types >"$$report" 2>&1 & types=$$!; \
	$(MAKE) --no-print-directory tests; tests=$$?; \
	wait $$types; types=$$?; \
	[ $$types = 0 ] || { cat "$$report"; echo "test: strict types FAILED, as shown above"; }; \
	[ $$tests = 0 ] || echo "test: tests FAILED, as shown further above"; \
	[ $$types = 0 ] && [ $$tests = 0 ]

quick: $(VENV)/.dev ## unit tests that need no root, PostgreSQL, Spark or browser and take seconds
	@$(BIN)/pytest -n auto --dist worksteal -m "not postgres and not spark and not browser and not campaign and not slow" tests $(ARGS)

setup: $(VENV)/.run ## the virtual environment with what the product needs

$(VENV)/bin/python:
	@echo "setup: a virtual environment in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "hubbub needs Python 3.11 or newer"; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "setup: installing python3-venv"; \
		$(SUDO) apt-get -qq update && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y python3-venv >/dev/null; }
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.run: $(VENV)/bin/python requirements/run.lock pyproject.toml
	@echo "setup: installing hubbub and its pinned requirements"
	@$(PIP) install -q --require-hashes -r requirements/run.lock
	@$(PIP) install -q --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.lock
	@echo "setup: installing the pinned tools and oracles of the tests"
	@$(PIP) install -q --require-hashes -r requirements/dev.lock
	@touch $@

# The tests start a real PostgreSQL server, a real Spark (on Java) and a real browser; Debian keeps the server's programs in /usr/lib/postgresql.
$(VENV)/.system: $(VENV)/.run Makefile
	@ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 && command -v strace >/dev/null && command -v chromium >/dev/null \
		&& command -v java >/dev/null && command -v systemd-analyze >/dev/null && [ -x /usr/sbin/pgbouncer ] \
		&& $(SUDO) ldconfig -p | grep -q libatomic.so.1 || { \
		echo "setup: installing postgresql, pgbouncer, java, strace, systemd (for its checks of the unit) and chromium (with what its driver needs), which the tests start"; \
		$(SUDO) apt-get -qq update && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y postgresql pgbouncer openjdk-17-jre-headless strace systemd chromium libatomic1 >/dev/null; }
	@touch $@

lint: $(VENV)/.dev
	@echo "test: lint and format"
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

types: $(VENV)/.dev
	@echo "test: strict types"
	@$(BIN)/mypy

tests: $(VENV)/.dev $(VENV)/.system
	@echo "test: doctests and tests, in parallel, in shuffled order"
	@rm -f .pytest_cache/v/cache/lastfailed
	@$(BIN)/pytest --doctest-modules --doctest-glob='*.md' -n $(WORKERS) --dist worksteal $(ARGS) || $(BIN)/python -m tests.repeat_failed $$?

checklist: $(VENV)/.dev ## for each construct of the founding papers: the command that a user types, and its figure (ARGS="--row 61")
	@$(BIN)/python -m tests.checklist.run $(ARGS)

papers: $(VENV)/.dev ## run the checklist, record its figures and write docs/papers.md
	@$(BIN)/python -m tests.checklist.run --write

rooms: $(VENV)/.dev ## write the tables of packages in CONTRIBUTING.md and docs/decisions/0001-rooms.md
	@$(BIN)/python -m tests.project.rooms

errors: $(VENV)/.dev ## write docs/errors.md from the source
	@$(BIN)/python -m tests.project.errors

theorems: $(VENV)/.dev ## write docs/theorems.md from the docstrings
	@$(BIN)/python -m tests.project.theorems

sql: $(VENV)/.dev ## write docs/sql.md from the allow-lists
	@$(BIN)/python -m tests.project.sql_reference

proofs: $(VENV)/.dev ## let Coq check the laws of the samplers (proofs/), and record what it has checked
	@command -v coqc >/dev/null || { echo "setup: installing coq and its interval arithmetic"; \
		$(SUDO) apt-get -qq update && $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends coq libcoq-interval >/dev/null; }
	@$(BIN)/python -m tests.project.proofs

docs: $(VENV)/.dev ## build the documentation site in site/; it needs no network, to build or to read
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict && echo "docs: open site/index.html"

screenshots: $(VENV)/.dev $(VENV)/.system ## draw the pages of docs/pages.md anew
	@$(BIN)/python -m tests.project.screenshots

bench: $(VENV)/.dev peers ## every benchmark, beside its peers (HUBBUB_CAMPAIGN=full for large figures)
	@for script in $$(ls benchmarks/*.py | grep -v accuracy_); do name=$$(basename $$script .py); echo "bench: $$name"; $(BIN)/python -m benchmarks.$$name || exit 1; done

# What a peer needs does not go with ours (or its own tests would hide ours), so each has an environment of its own.
peers: $(patsubst requirements/peers/%.lock,.peers/%/.done,$(wildcard requirements/peers/*.lock)) ## what benchmarks run beside us

.peers/%/.done: requirements/peers/%.lock
	@echo "setup: the peer $* in .peers/$*"
	@$(PYTHON) -m venv --clear .peers/$* && .peers/$*/bin/python -m pip --disable-pip-version-check install -q --require-hashes -r $<
	@touch $@

wheels: setup ## the whole package and the light client, in dist/
	@$(PIP) wheel -q --no-deps --no-build-isolation -w dist . ./packaging/client && ls dist

release-check: setup ## a bill of materials (CycloneDX) in dist/, and an audit of the locked versions (ARGS="--advisories PATH")
	@$(BIN)/python packaging/release_check.py $(ARGS)

lock: ## pin anew what pyproject.toml asks for (needs uv)
	uv pip compile pyproject.toml requirements/build.in --extra server --extra postgres --extra plot --extra attack --universal --python-version 3.11 --generate-hashes --no-header -q -o requirements/run.lock
	uv pip compile pyproject.toml --group dev -c requirements/run.lock --universal --python-version 3.11 --generate-hashes --no-header -q -o requirements/dev.lock
	for peer in requirements/peers/*.in; do uv pip compile $$peer --python-version 3.11 --generate-hashes --no-header -q -o $${peer%.in}.lock; done

clean:
	rm -rf $(VENV) .peers .mypy_cache .ruff_cache .pytest_cache
