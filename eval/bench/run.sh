#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Latency against floors and against hand-written SQL, as ratios of one run (make bench); writes eval/results/bench.md.
# On the server that PGHOST names, which must be allowed to read RAG_EVAL_STAGE; without PGHOST on a throwaway one.
# shellcheck source=eval/server.sh
. "$(dirname "$0")/../server.sh"

set_name=scifact
if [ -z "$DATA" ] || [ ! -d "$DATA/$set_name" ]; then
  say "skipped: there is no ../shared/data/$set_name"
  exit 0
fi

on_server "$0" "$@"
cd "$ROOT"
cargo build -q --release -p rag_eval
program=$CARGO_OUT/release/rag_eval
model=${RAG_BENCH_MODEL:-all-MiniLM-L6-v2}
"$program" import "$DATA/$set_name" --source bench --collection bench --model "$model" --truncate
# The engine talks to the server's user only; without that its two floors are left out.
if [ -n "${PGDATA:-}" ] && as_server test -x "$program"; then
  as_server "$program" bench "$DATA/$set_name" --collection bench
else
  "$program" bench "$DATA/$set_name" --collection bench
fi | tee "$ROOT/eval/results/bench.md"
