# SPDX-License-Identifier: PostgreSQL
# Sourced by run.sh and bench/run.sh. Owns: on which server they run and how the server gets to read the corpus.
# shellcheck shell=bash
# shellcheck source=scripts/env.sh
. "$(dirname "${BASH_SOURCE[0]}")/../scripts/env.sh"

# on_server SCRIPT [ARG…]: returns when PGHOST names a server; else runs SCRIPT again with a throwaway one and exits.
on_server() {
  if [ -n "${PGHOST:-}" ]; then
    [ -n "${RAG_EVAL_STAGE:-}" ] ||
      die "RAG_EVAL_STAGE is not set" "Set it to a folder beneath the server's pg_rag.allowed_paths."
    return
  fi
  RAG_EVAL_STAGE=$(mktemp -d)
  trap 'rm -rf "$RAG_EVAL_STAGE"' EXIT
  # The server's user reads it.
  chmod 0755 "$RAG_EVAL_STAGE"
  export RAG_EVAL_STAGE
  export THROWAWAY_CONF="pg_rag.allowed_paths = '$RAG_EVAL_STAGE'
shared_buffers = 256MB
maintenance_work_mem = 256MB"
  # shellcheck disable=SC2016 # for the inner shell
  "$ROOT/scripts/throwaway.sh" bash -c '
    set -e
    PGOPTIONS="-c client_min_messages=warning" "$PG_BIN/psql" -X -q -v ON_ERROR_STOP=1 -c "CREATE EXTENSION pg_rag CASCADE"
    exec "$0" "$@"' "$@"
  exit
}
