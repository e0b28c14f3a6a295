# SPDX-License-Identifier: PostgreSQL
# Sourced by every script. Owns: where things lie (ROOT, TARGET, RUN, PG_CONFIG) and as whom servers run.
# shellcheck shell=bash disable=SC2034
set -euo pipefail

ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=scripts/versions.env
. "$ROOT/scripts/versions.env"
TARGET=$ROOT/target
CARGO_OUT=${CARGO_TARGET_DIR:-$TARGET}
STAMPS=$TARGET/stamps
VENV=$TARGET/venv
# Where the tests of the crates look by themselves.
MODELS=$TARGET/run/models
ONNXRUNTIME=$TARGET/run/onnxruntime
MODEL_NAMES=(all-MiniLM-L6-v2 all-MiniLM-L6-v2-int8)
mkdir -p "$TARGET"

say() { printf '%s\n' "$*" >&2; }
die() {
  printf 'error: %s\n' "$1" >&2
  shift
  for hint in "$@"; do printf 'HINT: %s\n' "$hint" >&2; done
  exit 1
}

# PostgreSQL refuses to run as root, so root's servers run as another user.
if [ "$(id -u)" -eq 0 ]; then
  RAG_SERVER_USER=${RAG_SERVER_USER:-nobody}
else
  RAG_SERVER_USER=$(id -un)
fi
export RAG_SERVER_USER

# Runs a command as the user that owns the servers' files.
as_server() {
  if [ "$(id -u)" -eq 0 ] && [ "$RAG_SERVER_USER" != root ]; then
    HOME=/tmp setpriv --reuid="$RAG_SERVER_USER" --regid="$(id -g "$RAG_SERVER_USER")" --clear-groups -- "$@"
  else
    "$@"
  fi
}

# The run folder holds what servers touch. A project under a closed folder (/root) is out of that user's reach.
PATH_HASH=$(printf '%s' "$ROOT" | cksum | cut -d' ' -f1)
if as_server test -x "$TARGET" 2>/dev/null; then
  RUN=$TARGET/run
else
  RUN=/var/tmp/pg_rag-$PATH_HASH
fi
mkdir -p "$RUN"
# /var/tmp is open to all: somebody else's folder under our name is not to be trusted.
[ -O "$RUN" ] || die "the run folder \"$RUN\" belongs to another user" "Remove it, or move the project."
export RAG_RUN=$RUN

# Makes a folder that the server's user owns, and its parents.
server_dir() {
  mkdir -p "$1"
  chmod 0700 "$1"
  [ "$(id -u)" -ne 0 ] || chown "$RAG_SERVER_USER" "$1"
}

# A folder for Unix sockets: their paths may have 107 bytes at most, ".s.PGSQL.5432" included.
socket_dir_for() {
  if [ "${#1}" -le 90 ]; then
    printf '%s' "$1"
  else
    printf '/tmp/pg_rag-%s' "$(printf '%s' "$1" | cksum | cut -d' ' -f1)"
  fi
}

PG_CONFIG=${PG_CONFIG:-$RUN/pg18/bin/pg_config}
case $PG_CONFIG in */*) ;; *) PG_CONFIG=$(command -v "$PG_CONFIG") || die "no such program: $PG_CONFIG" ;; esac
PG_VERSION=18
PG_BIN=$(dirname "$PG_CONFIG")
if [ -x "$PG_CONFIG" ]; then
  PG_VERSION=$("$PG_CONFIG" --version | sed 's/^PostgreSQL \([0-9.]*\).*/\1/')
  PG_BIN=$("$PG_CONFIG" --bindir)
fi
PG_MAJOR=${PG_VERSION%%.*}
export PG_CONFIG PG_BIN PGRX_HOME=$TARGET/pgrx PGRX_PG_CONFIG_PATH=$PG_CONFIG
# pgrx builds its bindings again and again for as long as this file is missing.
[ -e "$PGRX_HOME/config.toml" ] || { mkdir -p "$PGRX_HOME" && printf '[configs]\n' >"$PGRX_HOME/config.toml"; }
case $PG_MAJOR in
  15 | 16 | 17 | 18) ;;
  *) die "PostgreSQL $PG_VERSION is not supported (\"$PG_CONFIG\")" "Pass PG_CONFIG=… of PostgreSQL 15 to 18." ;;
esac
export PATH="$TARGET/tools/bin:$PATH"
# Where an ONNX Runtime and models are to be found without an installed server (unit tests, the engine's command line).
export ORT_DYLIB_PATH=${ORT_DYLIB_PATH:-$ONNXRUNTIME/libonnxruntime.so}
export PG_RAG_MODELS=${PG_RAG_MODELS:-$MODELS} RAG_TEST_MODELS=${RAG_TEST_MODELS:-$MODELS}

# Files to ingest and judged collections that lie beside a development checkout; absent in a user's clone.
DATA=$(cd "$ROOT/../shared/data" 2>/dev/null && pwd -P) || DATA=

need_pg() {
  [ -x "$PG_CONFIG" ] || die "there is no \"$PG_CONFIG\"" "Run \`make setup\`, or pass PG_CONFIG=… of an installed server."
}
