#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Speed, memory and growth, as ratios of one run (make bench). Renews what it measures in eval/results/bench.json and in the
# pages beside it that are made of that file.
#   run.sh                                embed priority dense hybrid ingest memory lexical rights concurrency: 25 minutes
#   run.sh FIGURE… [OPTION…]              only these; `rag_eval bench --help` lists the options
#   run.sh growth --chunks 5000000        the BM25 index on so many invented chunks
#   run.sh concurrency --seconds 300      writers and searchers for five minutes each
#   run.sh parse | tree [PACKAGE==VER]    parsing on one core; a real tree through a sync (parse.sh, tree.sh)
# On the server that PGHOST names, which must be allowed to read RAG_EVAL_STAGE; without PGHOST on a throwaway one. What needs
# a judged collection is left out where there is none.
# shellcheck source=eval/server.sh
. "$(dirname "$0")/../server.sh"

# A page that another script prints, once it has printed all of it.
page() {
  local text
  text=$("${@:2}")
  printf '%s\n' "$text" >"$ROOT/eval/results/$1"
  exit
}
case ${1:-} in
  parse) page parsing.md "$ROOT/eval/bench/parse.sh" ;;
  tree) page django.md "$ROOT/eval/bench/tree.sh" "${@:2}" ;;
esac

on_server "$0" "$@"
cd "$ROOT"
cargo build -q --release -p rag_eval
program=$CARGO_OUT/release/rag_eval
options=(--json)
[ -z "$DATA" ] || options+=(--data "$DATA")
run=()
if [ -n "${PGDATA:-}" ]; then
  # A server of our own may be restarted, and its user may talk to the engine and read what its processes hold.
  log=$(dirname "$PGDATA")/server.log
  options+=(--restart "'$PG_BIN/pg_ctl' -D '$PGDATA' -l '$log' -w -m fast restart")
  if as_server test -x "$program"; then
    run=(as_server)
    [ "$(id -u)" -ne 0 ] || chown "$RAG_SERVER_USER" "$RAG_EVAL_STAGE"
  fi
fi
found=$(mktemp)
trap 'rm -f "$found"' EXIT
status=0
"${run[@]}" "$program" bench "$@" "${options[@]}" >"$found" || status=$?
# What was measured counts, also if something else failed.
[ ! -s "$found" ] || "$program" bench --from "$found" --results eval/results
exit "$status"
