#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Retrieval quality against the reference baselines (make eval).
#   run.sh          SciFact with both models; writes eval/results/scifact.md
#   run.sh check    a small set with the fp32 model only; for `make test`
# On the server that PGHOST names, which must be allowed to read RAG_EVAL_STAGE; without PGHOST on a throwaway one.
# shellcheck source=eval/server.sh
. "$(dirname "$0")/server.sh"

case ${1:-} in
  '') set_name=scifact extra=(--also all-MiniLM-L6-v2-int8 --out "$ROOT/eval/results/scifact.md") ;;
  check) set_name=cranfield extra=() ;;
  *) die "usage: run.sh [check]" ;;
esac
if [ -z "$DATA" ] || [ ! -d "$DATA/$set_name" ]; then
  echo "ok 1 - $set_name # SKIP there is no ../shared/data/$set_name"
  exit 0
fi

on_server "$0" "$@"
cd "$ROOT"
cargo run -q --release -p rag_eval -- compare "$DATA/$set_name" --baselines "$DATA/BASELINES.md" "${extra[@]}"
