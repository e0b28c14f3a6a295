#!/usr/bin/env bash
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
rag_eval() { cargo run -q --release -p rag_eval -- "$@"; }
model=${RAG_BENCH_MODEL:-all-MiniLM-L6-v2}
rag_eval import "$DATA/$set_name" --source bench --collection bench --model "$model" --truncate
rag_eval bench "$DATA/$set_name" --collection bench --out "$ROOT/eval/results/bench.md"
