#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: the private demo cluster (up, down, psql, status): its data folder, its settings, its database "rag".
# It listens on a Unix socket only; whoever can reach the socket folder is its superuser.
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"

demo=$RUN/demo
[ "$PG_MAJOR" = 18 ] || demo=$RUN/demo-$PG_MAJOR
data=$demo/data
log=$demo/server.log
socket=$(socket_dir_for "$demo/socket")
export PGHOST=$socket PGPORT=5432 PGUSER=postgres PGDATABASE=rag
unset PGPASSWORD PGSERVICE PGOPTIONS

running() { as_server "$PG_BIN/pg_ctl" -D "$data" status >/dev/null 2>&1; }

# The third line of postmaster.pid is when the server started.
stale() {
  local started
  started=$(as_server sed -n 3p "$data/postmaster.pid")
  [ -n "$(find "$("$PG_CONFIG" --pkglibdir)/pg_rag.so" "$("$PG_CONFIG" --pkglibdir)/pg_rag" \
    "$("$PG_CONFIG" --sharedir)/pg_rag" -type f -newermt "@$started" 2>/dev/null | head -1)" ]
}

make_cluster() {
  server_dir "$demo"
  server_dir "$data"
  as_server "$PG_BIN/initdb" -D "$data" -U postgres --auth=trust --encoding=UTF8 --locale=C.UTF-8 >"$RUN/initdb.log" 2>&1 ||
    { cat "$RUN/initdb.log" >&2; die "initdb failed"; }
  as_server tee -a "$data/postgresql.conf" >/dev/null <<<"include 'pg_rag.conf'"
}

# Rewritten at each start, so that it follows the scripts and the place of the project.
write_settings() {
  local allowed="$ROOT/docs,$ROOT/README.md,$demo/files"
  [ -z "$DATA" ] || allowed="$allowed,$DATA/files"
  as_server tee "$data/pg_rag.conf" >/dev/null <<CONF
listen_addresses = ''
unix_socket_directories = '$socket'
port = $PGPORT
shared_buffers = 256MB
maintenance_work_mem = 256MB
max_worker_processes = 16
pg_rag.allowed_paths = '$allowed'
CONF
}

start() {
  server_dir "$socket"
  write_settings
  # With RUST_BACKTRACE set, every error would carry a backtrace.
  as_server env -u RUST_BACKTRACE "$PG_BIN/pg_ctl" -D "$data" -l "$log" -w -t 60 start >/dev/null ||
    { as_server tail -20 "$log" >&2; die "the demo server did not start" "Its log is $log."; }
}

stop() { as_server "$PG_BIN/pg_ctl" -D "$data" -m fast -w stop >/dev/null; }

sql() { "$PG_BIN/psql" -X -q -v ON_ERROR_STOP=1 "$@"; }

up() {
  need_pg
  [ -e "$("$PG_CONFIG" --pkglibdir)/pg_rag.so" ] || die "pg_rag is not installed in this server" "Run \`make install\`."
  as_server test -e "$data/PG_VERSION" || make_cluster
  if running && stale; then
    say "restarting: the installed files are newer than the running server"
    stop
  fi
  running || start
  if [ -z "$(sql -At -d postgres -c "SELECT 1 FROM pg_catalog.pg_database WHERE datname = 'rag'")" ]; then
    sql -d postgres -c 'CREATE DATABASE rag'
  fi
  PGOPTIONS='-c client_min_messages=warning' sql -c 'CREATE EXTENSION IF NOT EXISTS pg_rag CASCADE'
  say "up: PostgreSQL $PG_VERSION, database rag, socket $socket"
}

down() {
  if running; then
    stop
    say "down"
  else
    say "not running"
  fi
}

open_psql() {
  running || die "the demo cluster is not running" "Run \`make up\`."
  # Debian's psql has line editing, the wheel's has not.
  if [ -t 0 ]; then
    if /usr/bin/psql --version >/dev/null 2>&1; then exec /usr/bin/psql "$@"; fi
    exec "$PG_BIN/psql" "$@"
  fi
  sql "$@"
}

command=${1:-}
shift || true
case $command in
  up) up ;;
  down) down ;;
  psql) open_psql "$@" ;;
  status) if running; then say "running: socket $socket, log $log"; else say "not running"; exit 3; fi ;;
  *) die "usage: cluster.sh up|down|psql|status" ;;
esac
