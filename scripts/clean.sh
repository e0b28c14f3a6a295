#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: taking away what the other scripts made: the demo cluster, the run folder, target/. Committed files stay.
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
for data in "$RUN"/demo*/data; do
  [ ! -d "$data" ] || as_server "$PG_BIN/pg_ctl" -D "$data" -m fast -w stop >/dev/null 2>&1 || true
done
[ "$(socket_dir_for "$RUN/demo/socket")" = "$RUN/demo/socket" ] || rm -rf "$(socket_dir_for "$RUN/demo/socket")"
rm -rf "$RUN" "$TARGET"
say "clean"
