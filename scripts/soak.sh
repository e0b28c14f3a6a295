#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: the long run of random histories of the BM25 index; `make test` runs a thousand.
#   soak.sh                          20,000 histories
#   SOAK=500 SOAK_FROM=19000 soak.sh  some of them
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$ROOT"
need_pg
export SOAK=${SOAK:-20000}
cargo test -p rag_server_tests --test lexical -- --nocapture
