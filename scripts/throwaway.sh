#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Runs a command with a fresh cluster of its own: throwaway.sh CMD [ARG…]
# Owns: the life of that cluster. It is stopped and removed however CMD ends; its log stays if CMD failed.
# CMD sees PGHOST, PGPORT, PGUSER, PGDATABASE, PGDATA, PG_BIN. THROWAWAY_CONF holds further lines for postgresql.conf.
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
[ $# -gt 0 ] || die "usage: throwaway.sh CMD [ARG…]"
need_pg

# initdb takes seconds, a copy of its result does not.
key=$(printf '%s %s' "$PG_BIN" "$("$PG_BIN/postgres" --version)" | cksum | cut -d' ' -f1)
template=$RUN/initdb-template-$PG_VERSION-$key
make_template() {
  local fresh
  fresh=$(mktemp -d "$RUN/initdb.XXXXXX")
  server_dir "$fresh"
  as_server "$PG_BIN/initdb" -D "$fresh" -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 --no-sync \
    >"$RUN/initdb.log" 2>&1 || { cat "$RUN/initdb.log" >&2; rm -rf "$fresh"; die "initdb failed"; }
  # Two tests may get here at once; the first wins.
  mv -T "$fresh" "$template" 2>/dev/null || rm -rf "$fresh"
}
[ -d "$template" ] || make_template

cluster=$(mktemp -d "$RUN/throwaway.XXXXXX")
data=$cluster/data
log=$cluster/server.log
socket=$(socket_dir_for "$cluster")
child=
# shellcheck disable=SC2317 # called by the trap
finish() {
  local status=$?
  # A second signal must not interrupt the clean-up.
  trap '' INT TERM
  trap - EXIT
  [ -z "$child" ] || kill "$child" 2>/dev/null || true
  # Immediate is for the server that no longer listens to a polite request.
  as_server "$PG_BIN/pg_ctl" -D "$data" -m fast -w -t 20 stop >/dev/null 2>&1 ||
    as_server "$PG_BIN/pg_ctl" -D "$data" -m immediate -w -t 20 stop >/dev/null 2>&1 || true
  if [ "$status" -ne 0 ] && [ -s "$log" ]; then
    mkdir -p "$RUN/logs"
    cp "$log" "$RUN/logs/$(basename "$cluster").log"
    say "the server's log is $RUN/logs/$(basename "$cluster").log"
  fi
  rm -rf "$cluster"
  [ "$socket" = "$cluster" ] || rm -rf "$socket"
  exit "$status"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

server_dir "$cluster"
server_dir "$socket"
cp -a --reflink=auto "$template" "$data"
as_server tee -a "$data/postgresql.conf" >/dev/null <<CONF
listen_addresses = ''
unix_socket_directories = '$socket'
port = 5432
fsync = off
shared_buffers = 64MB
max_worker_processes = 16
pg_rag.allowed_paths = '$ROOT/tests/fixtures${DATA:+,$DATA/files}'
${THROWAWAY_CONF:-}
CONF
as_server env -u RUST_BACKTRACE "$PG_BIN/pg_ctl" -D "$data" -l "$log" -w -t 60 start >/dev/null ||
  die "the throwaway server did not start"
export PGHOST=$socket PGPORT=5432 PGUSER=postgres PGDATABASE=postgres PGDATA=$data
unset PGPASSWORD PGSERVICE PGOPTIONS
# In the background, because a trap waits for what runs in the foreground.
"$@" <&0 &
child=$!
status=0
wait "$child" || status=$?
child=
exit "$status"
