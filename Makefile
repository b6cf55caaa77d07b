# Everything a contributor types. `make` alone lists it.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

# rustup would fetch the pinned toolchain even if the same version is here under the name `stable`.
PINNED := $(shell sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
ifneq ($(shell command -v rustup),)
ifeq ($(shell rustup toolchain list 2>/dev/null | grep -c '^$(PINNED)-'),0)
ifneq ($(shell rustup run stable rustc --version 2>/dev/null | grep -F 'rustc $(PINNED) '),)
export RUSTUP_TOOLCHAIN := stable
endif
endif
endif

DENY_VERSION := 0.20.2
MACHETE_VERSION := 0.9.2
FUZZ_VERSION := 0.13.2
MDBOOK_VERSION := 0.5.2
POSTGRES := scripts/postgres.sh run
# Most tests wait for another process, so three run on each core.
TEST_THREADS ?= $(shell expr 3 \* "$$(getconf _NPROCESSORS_ONLN)")

.PHONY: help ui pictures run test check fmt clippy doc tidy deny machete advisories bench chaos schemathesis deploy conformance tool-tokens test-agents setup soak newcomer remote-test delivery fuzz dist dist-test release-check book build-time recording simulation

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 14

ui: ## Build the web page, if its sources changed (needs Node.js 20)
	@scripts/ui.sh

run: setup ui ## Build from source, quickly, and start the server (cargo run --profile source -p matsu -- serve)
	cargo run --profile source --locked -p matsu -- serve

test: setup ui ## All tests, tidy among them, with a private PostgreSQL server and a real Chromium
	@scripts/setup.sh test
	RUST_TEST_THREADS=$(TEST_THREADS) MATSU_TEST_POSTGRES_FSYNC=off $(POSTGRES) scripts/test.sh
	scripts/page-tests.sh

check: fmt clippy test doc deny machete tidy book ## Everything a change must pass

fmt: ## Formatting, checked only
	cargo fmt --all --check

pictures: ## Take the book's pictures of the page, in a real Chromium
	MATSU_PICTURES=$(CURDIR)/docs/images scripts/page-tests.sh pictures

clippy: setup ## Lints and fences, warnings denied
	cargo clippy --workspace --all-targets --locked -- -D warnings

book: ## The book as HTML in target/book; every page is in docs/SUMMARY.md
	@mdbook --version 2>/dev/null | grep -qF 'v$(MDBOOK_VERSION)' || \
		cargo install --quiet --locked mdbook@$(MDBOOK_VERSION)
	mdbook build docs

doc: setup ## Rustdoc, warnings denied
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --document-private-items --locked

tidy: ## Layout, sizes, names, dependency direction, error pages, links
	cargo run --quiet --locked -p xtask -- tidy

deny: ## Licences, bans and sources of all dependencies
	@cargo deny --version 2>/dev/null | grep -qF ' $(DENY_VERSION)' || \
		cargo install --quiet --locked cargo-deny@$(DENY_VERSION)
	cargo deny --locked check licenses bans sources

machete: ## Dependencies that are not used
	@cargo machete --version 2>/dev/null | grep -qF '$(MACHETE_VERSION)' || \
		cargo install --quiet --locked cargo-machete@$(MACHETE_VERSION)
	cargo machete crates xtask

advisories: ## Known vulnerabilities; needs the advisory database
	@cargo deny --version 2>/dev/null | grep -qF ' $(DENY_VERSION)' || \
		cargo install --quiet --locked cargo-deny@$(DENY_VERSION)
	scripts/advisories.sh

bench: setup ## The figures, measured on this machine (see bench/)
	@scripts/setup.sh bench
	$(POSTGRES) bench/run

chaos: setup ## Kill, restart and starve it at random; SQLite and PostgreSQL
	@scripts/setup.sh chaos
	$(POSTGRES) env MATSU_CHAOS=1 cargo test --profile source --locked -p matsu --test it --test clients chaos:: -- --nocapture --test-threads=1

SEEDS ?= 1000000
simulation: ## The seeded simulation of the whole runtime, SEEDS=10000 for less; a seed that fails is named
	MATSU_SIMULATION_SEEDS=$(SEEDS) RUST_BACKTRACE=0 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
		cargo test --release --locked -p matsu-runtime --test it simulation:: -- --nocapture

remote-test: ## The recipes of docs/remote.md: Caddy, nginx and ssh -L in front of a server, on loopback
	scripts/remote.sh

delivery: setup ## Whether results reach the agents that wait for them, under faults (DELIVERY_COUNT=60, DELIVERY_REAL=5, DELIVERY_PEERS=5); writes docs/delivery.md
	$(POSTGRES) scripts/delivery.sh

RUNS ?= 1000000
fuzz: ## Fuzz every parser of foreign bytes (RUNS=10000 for less); needs a nightly compiler; writes docs/bench/fuzz.md
	@cargo fuzz --version 2>/dev/null | grep -qF ' $(FUZZ_VERSION)' || \
		cargo install --quiet --locked cargo-fuzz@$(FUZZ_VERSION)
	RUNS=$(RUNS) scripts/fuzz.sh

newcomer: ## A clean clone, `make run`, and the README's tour as it stands, timed
	scripts/newcomer.sh

build-time: ## How long a build from source takes, clean and after a change of one line; writes docs/bench/build.md
	scripts/build-time.sh

recording: ui ## Record the first minute anew, with the binary of `make run`
	@scripts/setup.sh recording
	cargo build --profile source --locked -p matsu
	scripts/recording.py "$${CARGO_TARGET_DIR:-target}/source/matsu"
	python3 -m venv target/recording
	target/recording/bin/pip install --disable-pip-version-check --quiet pyte==0.8.2 pillow==13.0.0
	target/recording/bin/python scripts/recording-picture.py docs/images/first-minute.cast docs/images/first-minute.gif

SOAK_SECONDS ?= 3600
soak: setup ## An hour of even load (SOAK_SECONDS=300 for less): memory flat, nothing left open
	$(POSTGRES) env MATSU_SOAK_SECONDS=$(SOAK_SECONDS) cargo test --release --locked -p matsu --test it soak:: -- --nocapture

test-agents: setup ## The real AI command lines (over 1 GB, from npm) against a scripted model on loopback
	programs=$$(scripts/agents.sh); log=$$(mktemp); status=0; \
	MATSU_TEST_AGENTS="$$programs" cargo test --locked -p matsu --test clients agents:: -- --nocapture --test-threads=1 | tee "$$log" || status=$$?; \
	scripts/agents-report.sh <"$$log" >docs/agents-tested.md; rm "$$log"; exit $$status

schemathesis: setup ## Property tests of the REST API against its own description
	scripts/schemathesis.sh

deploy: ## What can be checked of deploy/ without a cluster; says what was not
	scripts/deploy.sh

dist: ui ## Every artefact of this platform in dist/, with sums (MATSU_BINARY=PATH packs a finished binary)
	scripts/dist.sh

dist-test: ## Install every artefact of dist/ as its users do, plugins in the real AI command lines (over 1 GB, from npm); says what was not tried (MATSU_DIST_STRICT=1: fails then)
	scripts/agents.sh >/dev/null
	scripts/dist-test.sh

release-check: ## Whether this tree and dist/ can be published
	scripts/release-check.sh

tool-tokens: setup ## Tokens that a model reads of the lists of tools, against their limits
	scripts/tool-tokens.sh

conformance: setup ## The official MCP suite, the Inspector and the TypeScript SDK; writes docs/conformance.md
	scripts/conformance.sh

setup:
	@scripts/setup.sh
