#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# The quality of the BM25 leg on six judged collections: eval/lexical/quality.sh [DATA] > eval/results/lexical-quality.md
# Fetches the reference implementation with pip.
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/../../scripts/env.sh"
DATA=${1:-$DATA}
[ -n "$DATA" ] || die "there is no ../shared/data" "Pass the folder of the judged collections."
venv=$TARGET/lexical-venv
if [ ! -x "$venv/bin/python" ]; then
  python3 -m venv "$venv"
  "$venv/bin/pip" install -q bm25s==0.3.16 PyStemmer==3.1.0 numpy scipy >&2
fi
here=$ROOT/eval/lexical
cat "$here/quality.head.md"
# shellcheck disable=SC2016 # for the inner shell
"$ROOT/scripts/throwaway.sh" bash -c '
  set -e
  PGOPTIONS="-c client_min_messages=warning" "$PG_BIN/psql" -X -q -v ON_ERROR_STOP=1 -c "CREATE EXTENSION pg_rag CASCADE"
  exec "$@"' - "$venv/bin/python" "$here/quality.py" "$DATA"
