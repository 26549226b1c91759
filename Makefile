# Every chore by one name. `make run` and `make test` set up what they need: Rust, Python 3.11+, a C compiler and the package
# registries are all that must be there before.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
MACHINE := $(shell uname -m)
# uv makes the environment from the lock file; where there is none, one is installed from PyPI for this tree alone.
OWN_UV := target/uv/bin/uv
CHARTS := python/fanin/html/vega.js
UV := $(shell uv --version >/dev/null 2>&1 && echo uv || echo $(OWN_UV))

RUST := Cargo.toml Cargo.lock $(shell find crates \( -name '*.rs' -o -name Cargo.toml \) -not -path '*/tests/*' -not -path '*/benches/*') $(shell find data -name '*.csv' 2>/dev/null)

CAPTURE ?= data/captures/nginx_16to1_before.pcap.gz
OUT ?= out/nginx_16to1
FUZZ_SECONDS ?= 600
PROCESSORS ?= $(shell nproc)
# Property tests draw the same cases in every run, so that a run fails for what was changed; others: make test PROPTEST_RNG_SEED=7.
export PROPTEST_RNG_SEED ?= 1

.PHONY: lint-rust lint-python claim-mutants verdicts results wheel help run test goldens lint dependencies advisories mutants generated format docs host host-arm64 ci release-check linux bench performance build clean fuzz faults round-trip promises thresholds services trial stability regret
.DEFAULT_GOAL := help

help:
	@echo "make run     build, then compare every TCP on a shipped capture; prints where the report is"
	@echo "make test    build, then all tests (Rust and Python)"
	@echo "make results the manual's tables, from the data in results/"
	@echo "make goldens write tests/goldens anew, when numbers should have moved"
	@echo "make lint    formats, clippy, ruff, types, stubs"
	@echo "make advisories  known weaknesses of the locked dependencies (cargo-deny, pip-audit)"
	@echo "make dependencies  unused crates, licences, the oldest Rust (cargo-machete, cargo-deny)"
	@echo "make mutants each change that a test should notice, in the endpoint and the algorithms (cargo-mutants; hours)"
	@echo "make claim-mutants  the papers' claims with each algorithm robbed of its distinguishing rule: some must fail (an hour; resumes)"
	@echo "make verdicts    the tables of verdicts in the READMEs, from papers/verdicts.csv and the last \`fanin reproduce\`"
	@echo "make generated  writes the schemas, the reference pages and the stubs' lists anew"
	@echo "make format  what lint asks for"
	@echo "make docs    the manual (site/) and the Rust documentation; a dead link is an error"
	@echo "make linux   fanin-host and the testbed, for this tree (needs clang and libbpf-dev)"
	@echo "make host    fanin-host as one static file for any host of this architecture (host-arm64: for arm64)"
	@echo "make bench   the benchmarks (minutes)"
	@echo "make performance  every row of the table in docs/performance.md, on this machine as it is (ten minutes, idle)"
	@echo "make faults  every command without memory, disk, files, a home, a whole store or patience (an hour)"
	@echo "make fuzz    coverage-guided fuzzing of captures, workloads, scenarios, racks, hosts and plans, FUZZ_SECONDS each (600)"
	@echo "make wheel   one wheel in dist/ that works alone, tried in an empty environment"
	@echo "make release-check  what must hold before a release: version, dated CHANGELOG, tag, a wheel from a clean clone, the container"
	@echo "make round-trip  captures and replays 300 random scenarios (minutes)"
	@echo "make promises    captures under one TCP, replays under another, runs under it: is the promised gain got? (minutes)"
	@echo "make thresholds  halves and doubles each threshold of crates/capture: which test fails? (an hour)"
	@echo "make services    real services in namespaces, and what is read of their captures (root; minutes)"
	@echo "make trial       services captured, the answer typed on their hosts, measured again (root; half an hour)"
	@echo "make stability   twenty captures of one such service, and whether their answers are alike (root; ten minutes)"
	@echo "make regret      advice on drawn services beside every candidate on the virtual kernel (an hour)"
	@echo "make build   only the command: $(BIN)/fanin"
	@echo "make clean   everything that was built"

run: build
	$(BIN)/fanin compare $(CAPTURE) --out $(OUT)

# Files run beside each other, a processor each; what needs the machine's kernel or real time comes last, one test at a time.
test: build
	cargo test --workspace --quiet
	$(BIN)/pytest -n $(PROCESSORS) --dist loadfile --no-loadscope-reorder -m "not alone"
	$(BIN)/pytest -m alone

# What moved shows in `git diff tests/goldens`, and belongs into the CHANGELOG.
goldens: build
	FANIN_BLESS=1 $(BIN)/pytest tests/goldens

# The halves share nothing: make -j2 lint runs them beside each other.
lint: lint-rust lint-python

lint-rust: build
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo clippy -p fanin-cc --no-default-features --quiet -- -D warnings

lint-python: build
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	MYPYPATH=python $(BIN)/stubtest fanin._native

# Unused dependencies; licences, sources and advisories (deny.toml); no dependency that needs a newer Rust than Cargo.toml promises.
# A tool that is not installed is named and left out (cargo install cargo-machete cargo-deny).
dependencies:
	$(BIN)/python tools/msrv.py
	@if cargo machete --version >/dev/null 2>&1; then cargo machete; else echo "cargo-machete is not installed: unused dependencies are not looked for"; fi
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --log-level error check licenses bans sources; \
	  else echo "cargo-deny is not installed: licences are not looked at"; fi

# Known weaknesses of what is locked, in Rust and in Python. A tool that is not installed is named and left out (cargo install cargo-deny; uv tool install pip-audit).
advisories:
	@if cargo deny --version >/dev/null 2>&1; then cargo deny --log-level error check advisories; \
	  else echo "cargo-deny is not installed: Rust's advisories are not looked at"; fi
	@if pip-audit --version >/dev/null 2>&1; then $(UV) export --locked --all-extras --no-emit-project --quiet > target/requirements.txt \
	  && pip-audit --strict --requirement target/requirements.txt --disable-pip; \
	  else echo "pip-audit is not installed: Python's advisories are not looked at"; fi

# MUTANTS narrows it: make mutants MUTANTS="--in-diff changes.diff", or "--file crates/sim/src/tcp/rtt.rs".
MUTANTS ?= --file 'crates/sim/src/tcp/**' --file 'crates/cc/src/**'
mutants:
	cargo mutants --package fanin-sim --package fanin-cc --test-workspace=false --output target $(MUTANTS)

# CLAIMS narrows it to papers: make claim-mutants CLAIMS="gss dctcp".
CLAIMS ?=
claim-mutants: build
	$(BIN)/python tools/claim_mutants.py $(CLAIMS)

# papers/claims.json is what the last `fanin reproduce` found, where there is one.
verdicts: build
	$(BIN)/python tools/verdicts.py $(wildcard papers/claims.json)
	$(BIN)/python docs/gallery.py

# The manual's tables, from the data in results/.
results: build
	$(BIN)/python -m lab tables

# Files that are made from tables; a test fails where one is out of date.
generated: build
	FANIN_BLESS=1 cargo test --quiet --package fanin-scenario --test generated
	FANIN_BLESS=1 $(BIN)/pytest -q tests/python/test_schema.py

format:
	cargo fmt --all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: build
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	RUSTDOCFLAGS="-D warnings" cargo doc --workspace --no-deps --quiet

# The root-side binaries: `fanin-host` of this tree, with the twins compiled for BPF, and those of the testbed: apt install clang libbpf-dev libelf-dev zlib1g-dev pkg-config
linux:
	cargo build --release --package fanin-host --package fanin-testbed --package fanin-player --package fanin-shim --features fanin-host/bpf

# `fanin-host` and the launcher `fanin`, each one static file with everything inside, in target/host: what clang and libbpf-dev are for above, and Debian's musl-dev; without musl they are linked with glibc, which is said.
host:
	$(PYTHON) tools/host.py $(MACHINE) fanin-host fanin

# The same for arm64, by Debian's cross compiler (docs/how-to/host.md).
host-arm64:
	$(PYTHON) tools/host.py aarch64 fanin-host

# Run, capture, replay: 200 random scenarios on stars and 100 on other networks, a line each (minutes).
round-trip: build
	$(BIN)/python tests/python/round_trip.py 200
	$(BIN)/python tests/python/round_trip_nets.py 100

# Capture under one TCP, replay under another, and run under the other: all pairs of five, five scenarios each (minutes).
promises: build
	$(BIN)/python tests/python/round_trip.py promises 5

# Every threshold of the reader of captures, halved and doubled: results/thresholds.csv has a test that fails. ONLY narrows it to files or names.
ONLY ?=
thresholds: build
	$(BIN)/python -m lab.thresholds $(ONLY)

bench:
	cargo bench --workspace

# ROWS narrows it to rows with one of these words: make performance ROWS="compare help".
ROWS ?=
performance: build
	$(BIN)/python benches/table.py $(ROWS)

# Every command without memory, room, files, a home, a whole store or patience, and stopped by three signals; tests/python/test_faults.py has a part.
# FAULTS narrows it to commands: make faults FAULTS="rack trains".
FAULTS ?=
faults: build
	$(BIN)/python tests/python/faults.py 3 $(FAULTS)

fuzz:
	fuzz/run $(FUZZ_SECONDS)

build: $(VENV)/.extension $(CHARTS)

# Real services in network namespaces, and what is read of their captures beside their applications' logs: results/services.csv. Needs root.
services: build
	$(BIN)/python -m tests.services --results results

# Services captured, the answer typed on their hosts, measured again, and taken back: results/real_time.csv. Needs root; an idle machine for numbers to quote.
trial: build linux
	$(BIN)/python -m tests.services.trial --results results

# Twenty runs of one of these services captured, and an answer from each. Needs root.
stability: build
	$(BIN)/python -m tests.services.stability "incast 13" 20

# Advice on drawn services of the virtual kernel beside every candidate, run there. REGRET says how many.
REGRET ?= 12
regret: build
	$(BIN)/python tools/regret.py $(REGRET)

# The parts, as locked. Inexact: what is installed beside them (this package) stays when the engine then does not compile.
$(VENV)/.parts: pyproject.toml uv.lock | $(if $(filter uv,$(UV)),,$(OWN_UV))
	$(UV) sync --locked --inexact --no-install-project --compile-bytecode
	@touch $@

# The engine as a Python module, optimised; Cargo compiles only what changed.
$(VENV)/.extension: $(VENV)/.parts $(RUST)
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" PATH="$(CURDIR)/target/uv/bin:$$PATH" $(BIN)/maturin develop --release --uv
	cargo build --release --quiet --package fanin-launcher
	mv $(BIN)/fanin $(BIN)/fanin-python
	cp target/release/fanin $(BIN)/fanin
	@touch $@

# The script of the pages' charts, as the installed vl-convert has it.
$(CHARTS): $(VENV)/.parts | $(VENV)/.extension
	$(BIN)/python tools/charts.py

# One file that holds the command, the papers and the distributions. It is tried where nothing else is: an environment of its own, an empty folder.
wheel: build host
	rm -rf dist target/share
	PATH="$(CURDIR)/target/uv/bin:$$PATH" $(BIN)/maturin build --release --out dist --quiet
	$(BIN)/python tools/manpages.py target/share
	$(BIN)/python tools/wheel.py dist papers target/host target/share
	$(BIN)/python tools/try_wheel.py dist $(CAPTURE)

# Everything that must hold before a release; what a machine lacks is named and left out. CONTAINER is more words for the container's builder:
# make release-check CONTAINER="--build-arg BASE=..."
release-check:
	$(PYTHON) tools/release_check.py

# What the hosting's workflow calls.
ci:
	.ci/run

$(OWN_UV):
	$(PYTHON) -m venv target/uv
	target/uv/bin/pip install --quiet uv

clean:
	rm -rf target $(VENV) out site python/fanin/_native*.so $(CHARTS)
