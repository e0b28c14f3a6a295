#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# The BM25 leg: against GIN and ts_rank on a judged corpus, warm and after a restart (eval/results/lexical.md), and on an
# invented corpus that grows (eval/results/lexical-growth.md), and one with labels (eval/results/lexical-rights.md).
#   eval/bench/lexical.sh                    QMSum, 100,000 and 1,000,000 chunks, 100,000 chunks with labels
#   eval/bench/lexical.sh growth 5000000     one size; the page goes to standard output
# On the server that PGHOST names; without PGHOST on a throwaway one.
# shellcheck source=eval/server.sh
. "$(dirname "$0")/../server.sh"
on_server "$0" "$@"
cd "$ROOT"
cargo build -q --release -p rag_eval
program=$CARGO_OUT/release/rag_eval
if [ "${1:-}" = growth ]; then
  shift
  exec "$program" lexical-growth "$@"
fi

set_name=qmsum
if [ -d "${DATA:-}/$set_name" ]; then
  page=$("$program" lexical "$DATA/$set_name")
  if [ -n "${PGDATA:-}" ]; then
    as_server "$PG_BIN/pg_ctl" -D "$PGDATA" -w -m fast restart >/dev/null
    page+=$'\n\n'$("$program" lexical "$DATA/$set_name" --loaded)
  fi
  # shellcheck disable=SC2016 # the command is shown
  printf '%s\n\nCommand: `eval/bench/lexical.sh`.\n' "$page" >eval/results/lexical.md
else
  say "skipped: there is no ../shared/data/$set_name"
fi
page=$("$program" lexical-growth 100000 1000000)
# shellcheck disable=SC2016
printf '%s\n\nCommand: `eval/bench/lexical.sh`.\n' "$page" >eval/results/lexical-growth.md
page=$("$program" lexical-rights 100000)
# shellcheck disable=SC2016
printf '%s\n\nCommand: `eval/bench/lexical.sh`.\n' "$page" >eval/results/lexical-rights.md
