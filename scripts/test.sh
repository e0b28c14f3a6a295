#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: the homes of the tests, what each runs and how its tests are counted. A home that ran nothing has failed.
# A test that lacks what it needs (judged data, a long run not asked for) says "skipped: …" or "# SKIP" and is not counted.
#   test.sh [unit] [regress] [isolation] [server] [eval]     (all by default; they need `setup.sh` and `install.sh`)
#   test.sh oracle                                            real trees against other readers (needs `setup.sh dev`; fetches)
#   test.sh --accept regress isolation                        what they print becomes what is expected (read the diff)
#   test.sh --full …                                          also the long tests (RAG_TEST_FULL=1)
#   test.sh regress@15 isolation@16 …                         a home on a server of servers.sh instead of PG_CONFIG's
# shellcheck disable=SC2317 # home_* and count_* are called by name
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$ROOT"
need_pg
out=$TARGET/test
mkdir -p "$out"

# Each home_* prints to standard output; a count_* beside it reads that output.

home_unit() { cargo test --no-fail-fast --workspace --exclude pg_rag --exclude rag_server_tests --exclude rag_eval -- --show-output; }
home_server() { cargo test --no-fail-fast -p rag_server_tests -- --show-output; }
count_cargo() { sed -n 's/^test result: .* \([0-9]*\) passed; \([0-9]*\) failed.*/\1 \2/p' | awk '{ s += $1 + $2 } END { print s + 0 }'; }
count_unit() { count_cargo; }
count_server() { count_cargo; }

# pg_regress reports "ok 1 - name" from PostgreSQL 16 on, "test name … ok" before.
count_tap() { grep -cE '^(not )?ok [0-9]+|^test .* \.\.\. +(ok|FAILED)' || true; }

regress_program() { dirname "$("$PG_CONFIG" --pgxs)" | sed 's|/makefiles$||; s|$|/test/|'; }

# run_regress NAME PROGRAM FOLDER TESTS…: one of PostgreSQL's two drivers on a throwaway cluster.
run_regress() {
  local name=$1 program=$2 folder=$3 results=${log%.log}
  shift 3
  rm -rf "$results"
  mkdir -p "$results"
  local load=(--load-extension=vector --load-extension=pg_rag)
  [ "${1:-}" != setup ] || load=()
  # Without an expected file the driver gives up at once; with an empty one it shows what came, and goes on.
  local test
  mkdir -p "$folder/expected"
  for test in "$@"; do [ -e "$folder/expected/$test.out" ] || : >"$folder/expected/$test.out"; done
  scripts/throwaway.sh "$program" --bindir="$PG_BIN" --dbname="rag_$name" "${load[@]}" \
    --inputdir="$ROOT/$folder" --outputdir="$results" "$@" && return
  if [ "$accept" = yes ]; then
    cp "$results"/results/*.out "$folder/expected/"
    say "accepted: look at \`git diff $folder/expected\`"
    return
  fi
  [ ! -e "$results/regression.diffs" ] || cat "$results/regression.diffs"
  return 1
}

# names FOLDER EXTENSION: the tests of a folder, "setup" first because the others build on it.
names() {
  local file
  [ ! -e "$1/setup.$2" ] || echo setup
  for file in "$1"/*."$2"; do
    file=$(basename "$file" ".$2")
    [ "$file" = setup ] || [ "$file" = '*' ] || echo "$file"
  done
}

home_regress() {
  local tests
  mapfile -t tests < <(names tests/pg_regress/sql sql)
  [ "${#tests[@]}" -gt 0 ] || return 0
  run_regress regress "$(regress_program)regress/pg_regress" tests/pg_regress "${tests[@]}"
}
count_regress() { count_tap; }

home_isolation() {
  local tests
  mapfile -t tests < <(names tests/isolation/specs spec)
  [ "${#tests[@]}" -gt 0 ] || return 0
  run_regress isolation "$(regress_program)isolation/pg_isolation_regress" tests/isolation "${tests[@]}"
}
count_isolation() { count_tap; }

# The client's own tests; then eval/run.sh checks a small judged set against its baseline, an "ok N - …" for each check.
home_eval() {
  local failed=0
  cargo test --no-fail-fast -p rag_eval -- --show-output || failed=1
  eval/run.sh check || failed=1
  return "$failed"
}
count_eval() {
  local all
  all=$(cat)
  echo "$(($(count_cargo <<<"$all") + $(count_tap <<<"$all")))"
}

# Other readers of whole trees, an "ok N - …" for each check. The example is built with the features of `unit`.
home_oracle() {
  cargo build -q --workspace --exclude pg_rag --exclude rag_server_tests --exclude rag_eval --example code_symbols
  "$VENV/bin/python" eval/oracle/code_symbols.py --program "$CARGO_OUT/debug/examples/code_symbols"
}
count_oracle() { count_tap; }

# Of one cargo run its result line says how many failed; a name may be torn from its "FAILED" by what a test prints.
count_failed() {
  sed -n -e 's/^test result: .* \([0-9]*\) failed.*/\1/p' -e 's/^not ok .*/1/p' | awk '{ s += $1 } END { print s + 0 }'
}

count_skipped() { grep -cE '^skipped: |^ok [0-9]+ .*# SKIP' || true; }

accept=no
if [ "${1:-}" = --accept ]; then
  accept=yes
  shift
fi
if [ "${1:-}" = --full ]; then
  export RAG_TEST_FULL=1
  shift
fi
[ $# -gt 0 ] || set -- unit regress isolation server eval

# row HOME SERVER COUNT SKIPPED SECONDS RESULT
row() { printf '%-10s | %-10s | %9s | %7s | %7s | %s' "$@"; }

table=() passed=0 failed=0 bad=0
for word in "$@"; do
  home=${word%@*} server=$PG_MAJOR config=$PG_CONFIG bin=$PG_BIN
  case $home in unit | regress | isolation | server | eval | oracle) ;; *) die "no such home of tests: $home" ;; esac
  printf '\n== %s\n' "$word"
  if [ "$word" != "$home" ]; then
    server=${word#*@} config=$RUN/pg${word#*@}/bin/pg_config bin=$RUN/pg${word#*@}/bin
    if [ -e "$RUN/pg$server.missing" ]; then
      echo "skipped: $(cat "$RUN/pg$server.missing")"
      table+=("$(row "$home" "$server" 0 all 0 "skipped: $(cat "$RUN/pg$server.missing")")")
      continue
    fi
  fi
  case $home in unit | oracle) server=none ;; esac
  status=0 started=$SECONDS log=$out/$word.log
  # A condition or a pipe with -e on would end this script; the home itself keeps it.
  set +e
  (set -e; PG_CONFIG=$config PG_BIN=$bin; "home_$home") 2>&1 | tee "$log"
  status=${PIPESTATUS[0]}
  set -e
  skipped=$(count_skipped <"$log")
  count=$(($("count_$home" <"$log") - skipped))
  result=passed
  if [ "$status" -ne 0 ]; then
    result="FAILED (see $log)"
  elif [ "$count" -eq 0 ]; then
    result="FAILED: no test ran"
  fi
  if [ "$accept" = yes ] && [ "$result" = passed ]; then
    result="accepted, not tested"
  elif [ "$result" = passed ]; then
    passed=$((passed + count))
  else
    bad=1 broken=$(count_failed <"$log")
    [ "$broken" -gt 0 ] || broken=1
    failed=$((failed + broken))
    [ "$count" -le "$broken" ] || passed=$((passed + count - broken))
  fi
  table+=("$(row "$home" "$server" "$count" "$skipped" "$((SECONDS - started))" "$result")")
done

printf '\n%s\n' "$(row home PostgreSQL 'tests run' skipped seconds result)"
printf -- '-----------|------------|-----------|---------|---------|-------\n'
printf '%s\n' "${table[@]}" ''
printf '%d passed, %d failed\n' "$passed" "$failed"
exit "$bad"
