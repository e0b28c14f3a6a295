#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Eight writers and eight searchers on one collection, with merging on and off under the same load; writes
# eval/results/lexical-concurrency.md. Needs an installed pg_rag (`make install`).
#   concurrency.sh [SECONDS]      60 each by default: without merging it is slow soon
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../../scripts/env.sh"
cd "$ROOT"
need_pg
seconds=${1:-60}
result=$ROOT/eval/results/lexical-concurrency.md
measure() {
  RAG_LOAD_SECONDS=$seconds RAG_LOAD_MERGING=$1 cargo test -q -p rag_server_tests --test lexical_load -- --nocapture |
    sed -n 's/^.*load: /- /p'
}
off=$(measure off)
on=$(measure on)
if [ -z "$off" ] || [ -z "$on" ]; then
  die "a run failed" "Look at: cargo test -p rag_server_tests --test lexical_load"
fi
{
  cat <<TEXT
# BM25 under writers and searchers

Eight sessions write (inserts, updates, labels, deletes, some rolled back; 10 ms apart) and eight search (one to three
words, best 20; 10 ms apart) in one collection that begins with 2,000 passages. One search in twenty is compared with the
formula over the same snapshot, and all is compared at the end. With merging on, rag.compact and rag.reindex_lexical
are called every 3 s besides; with it off, a transaction holds the lock of merges. PostgreSQL $PG_MAJOR, $(nproc) processors, $(date -I).
Made by \`eval/bench/concurrency.sh $seconds\`.

$off
$on
TEXT
} >"$result"
cat "$result"
