#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Retrieval quality: the classic experiments on all judged collections, against the reference baselines (make eval).
#   run.sh          all collections; renews eval/results/experiments.json and the tables of experiments.md and docs/evaluation.md
#   run.sh quick    three collections, printed (make eval-quick)
#   run.sh --only NAME…   these collections, printed
#   run.sh check    one set against its baselines, through rag.search; for `make test`
# On the server that PGHOST names, which must be allowed to read RAG_EVAL_STAGE; without PGHOST on a throwaway one.
# shellcheck source=eval/server.sh
. "$(dirname "$0")/server.sh"

case ${1:-} in
  '' | quick | --only) ;;
  check)
    set_name=cranfield
    if [ -z "$DATA" ] || [ ! -d "$DATA/$set_name" ]; then
      echo "ok 1 - $set_name # SKIP there is no ../shared/data/$set_name"
      exit 0
    fi
    ;;
  *) die "usage: run.sh [quick|check|--only NAME…]" ;;
esac

# The handbook is a PDF made of texts.
handbook=$ROOT/eval/corpora/handbook
if [ "${1:-}" != quick ] && [ "${1:-}" != check ] && [ -z "$(find "$handbook/handbook.pdf" -newer "$handbook/build.py" 2>/dev/null)" ]; then
  venv=$TARGET/handbook-venv
  [ -x "$venv/bin/python" ] || python3 -m venv "$venv"
  "$venv/bin/pip" install -q -r "$handbook/requirements.txt" >&2
  "$venv/bin/python" "$handbook/build.py" "$handbook/handbook.pdf" >&2
fi

on_server "$0" "$@"
cd "$ROOT"
cargo build -q --release -p rag_eval
program=$CARGO_OUT/release/rag_eval
data=()
[ -z "$DATA" ] || data=(--data "$DATA")
case ${1:-} in
  '')
    "$program" experiments "${data[@]}" --corpora eval/corpora --out eval/results/experiments.json \
      --page eval/results/experiments.md --page docs/evaluation.md
    ;;
  --only) "$program" experiments "${data[@]}" --corpora eval/corpora "$@" ;;
  quick) "$program" experiments "${data[@]}" --corpora eval/corpora --quick ;;
  check) "$program" compare "$DATA/$set_name" --baselines "$DATA/BASELINES.md" ;;
esac
