#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# A real tree of some thousand files through rag.add_source and CALL rag.sync: as a folder, as a ZIP, and as the tar.gz that it
# came in. Compares what the history of syncs says with what Python counts; prints the page eval/results/django.md.
#   eval/bench/tree.sh [PACKAGE==VERSION]          (Django by default, from the registry of Python packages by pip)
#   RAG_TREE_MODEL=all-MiniLM-L6-v2-int8 …         also with the vectors of a real model; that takes about an hour on two cores
# On the server that PGHOST names, which must be allowed to read RAG_EVAL_STAGE; without PGHOST on a throwaway one.
# shellcheck source=eval/server.sh
. "$(dirname "$0")/../server.sh"
on_server "$0" "$@"
exec python3 "$ROOT/eval/oracle/tree.py" --stage "$RAG_EVAL_STAGE" --psql "$PG_BIN/psql" \
  --sharedir "$("$PG_CONFIG" --sharedir)" --model "${RAG_TREE_MODEL:-standin}" "${1:-Django==5.2.8}"
