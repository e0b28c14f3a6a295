#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# How fast the engine's command line parses and chunks on one core with the tokens of a real model, and where the time goes.
#   eval/bench/parse.sh > eval/results/parsing.md
# Corpora: the Markdown files beside the project, the code of the project, and the code of the sdist of Django (by pip).
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../../scripts/env.sh"
cd "$ROOT"
cargo build -q --release -p rag_engine
exec python3 "$ROOT/eval/bench/parse.py" --program "$CARGO_OUT/release/pg_rag_engine" --models "$MODELS" --markdown "${DATA:+$DATA/files/md}"
