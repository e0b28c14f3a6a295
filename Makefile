# Verbs only; the scripts hold the rest. PG_CONFIG=… chooses another server than the private one.
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-full install up down psql lint fmt unit regress isolation server-test soak fuzz eval eval-quick bench clean
export PG_CONFIG

help: ## list the verbs
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 14
setup: ## install what is missing (target/, apt)
	@scripts/setup.sh
demo: ## set up, install, ingest, answer three questions
	@scripts/demo.sh
test: ## everything a change can break, from nothing
	@scripts/setup.sh dev && scripts/lint.sh && scripts/install.sh && scripts/test.sh
test-full: ## the same with the long tests, symbols against ctags, and SQL on PostgreSQL 15, 16 and 17
	@scripts/test-full.sh
install: ## build and install into the server of PG_CONFIG
	@scripts/setup.sh && scripts/install.sh
up: ## start the private demo cluster
	@scripts/cluster.sh up
down: ## stop it
	@scripts/cluster.sh down
psql: ## a session on it; SQL on standard input works
	@scripts/cluster.sh psql
lint: ## formatting, clippy, layer rules, shell scripts
	@scripts/setup.sh dev && scripts/lint.sh
fmt: ## format the Rust code
	@cargo fmt --all && cargo fmt --manifest-path fuzz/Cargo.toml
unit: ## tests beside the code (no server)
	@scripts/setup.sh && scripts/test.sh unit
regress: ## one SQL verb after the other
	@scripts/setup.sh && scripts/install.sh && scripts/test.sh regress
isolation: ## two sessions at once
	@scripts/setup.sh && scripts/install.sh && scripts/test.sh isolation
server-test: ## crashes, restarts, files, the README
	@scripts/setup.sh && scripts/install.sh && scripts/test.sh server
soak: ## 20,000 histories of the BM25 index (SOAK=… for another number)
	@scripts/setup.sh && scripts/install.sh && scripts/soak.sh
fuzz: ## the parsers against mutated files, a minute each
	@scripts/setup.sh && scripts/fuzz.sh
eval: ## the experiments on all judged collections, against the reference baselines
	@scripts/setup.sh && scripts/install.sh && eval/run.sh
eval-quick: ## some of them, in minutes
	@scripts/setup.sh && scripts/install.sh && eval/run.sh quick
bench: ## speed and memory, 25 minutes; eval/bench/run.sh FIGURE… for some of it
	@scripts/setup.sh && scripts/install.sh && eval/bench/run.sh
clean: ## stop the demo cluster, remove everything built
	@scripts/clean.sh
