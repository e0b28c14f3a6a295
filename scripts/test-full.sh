#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: the order of `make test-full`: all that `make test` does with the long tests, then real trees against other readers, and
# the homes that ask a server about SQL once more on each other supported version of PostgreSQL.
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$ROOT"
scripts/setup.sh dev
scripts/servers.sh
scripts/lint.sh
scripts/install.sh
homes=(unit regress isolation server eval oracle)
for major in 15 16 17; do
  [ -e "$RUN/pg$major.missing" ] || PG_CONFIG=$RUN/pg$major/bin/pg_config scripts/install.sh
  homes+=("regress@$major" "isolation@$major")
done
exec scripts/test.sh --full "${homes[@]}"
