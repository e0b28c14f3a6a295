#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: fuzzing the parsers: builds fuzz/ with coverage and the address sanitizer, collects seeds, runs each target for a
# while under limits, and says what came of it. What a target does not survive stays in target/fuzz/found.
#   fuzz.sh [TARGET…]                  all of them, 60 s each
#   FUZZ_SECONDS=600 fuzz.sh html      one of them, longer
#   FUZZ_JOBS=4 fuzz.sh                so many at a time (as many as there are processors)
# shellcheck disable=SC2317 # seeds_* are called by name
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$ROOT"

SECONDS_EACH=${FUZZ_SECONDS:-60}
JOBS=${FUZZ_JOBS:-$(nproc)}
# A document that takes longer, or more memory, has found something; both allow for checks that users' builds do not have.
SECONDS_FOR_ONE=20
MEMORY_MB=2048
OUT=$TARGET/fuzz
HOST=$(rustc -vV | sed -n 's/^host: //p')

# Targets, and the bytes that an input may have.
declare -A LENGTH=([markdown]=16384 [html]=16384 [pdf]=65536 [archive]=65536 [code]=16384 [transcript]=8192
  [package]=16384 [records]=16384 [feed]=16384 [config]=16384)
targets=("$@")
[ $# -gt 0 ] || targets=(markdown html pdf archive code transcript package records feed config)
for target in "${targets[@]}"; do
  [ -n "${LENGTH[$target]:-}" ] || die "no such fuzz target: \"$target\"" "There are: ${!LENGTH[*]}."
done

# --- Seeds -----------------------------------------------------------------------------------------------

# seed TARGET FILE [LETTER]: a file as a seed, behind the letter that chooses what it is read as.
seed() {
  local to
  [ -f "$2" ] && [ "$(stat -c %s "$2")" -lt "${LENGTH[$1]}" ] || return 0
  to=$OUT/seeds/$1/$(cksum <"$2" | cut -d' ' -f1)${3:+-$3}
  { printf '%s' "${3:-}"; cat "$2"; } >"$to"
}

# seed_all TARGET FILE…
seed_all() {
  local target=$1 file
  shift
  for file in "$@"; do seed "$target" "$file"; done
}

# seed_by TARGET "EXTENSION…" FILE…: behind the letter that is the extension's place in the list (the first is `a`), as
# the target counts.
seed_by() {
  local target=$1 extension file letters=abcdefghijklmnopqrstuvwxyz index
  local -a list
  read -ra list <<<"$2"
  shift 2
  for file in "$@"; do
    for index in "${!list[@]}"; do
      extension=${list[$index]}
      [[ $file != *."$extension" ]] || seed "$target" "$file" "${letters:index:1}"
    done
  done
}

seeds_markdown() { seed_all markdown tests/fixtures/docs/* README.md docs/*.md ${DATA:+"$DATA"/files/md/* "$DATA"/files/nasty/*.md}; }
seeds_html() { seed_all html tests/fixtures/html/* ${DATA:+"$DATA"/files/nasty/*.html}; }
seeds_pdf() { seed_all pdf tests/fixtures/pdf/*.pdf ${DATA:+"$DATA"/files/pdf/*.pdf "$DATA"/files/nasty/*.pdf}; }
seeds_archive() {
  seed_all archive tests/fixtures/archive/*.{zip,tar,gz} tests/fixtures/docx/* tests/fixtures/epub/* \
    ${DATA:+"$DATA"/files/nasty/*.zip "$DATA"/files/nasty/*gz}
}
seeds_code() {
  seed_by code "rs py ts tsx js go java c h hpp cs rb php sh sql" tests/fixtures/code/* \
    crates/ingest/src/*.rs scripts/*.sh scripts/*.py sql/schema/*.sql
}
seeds_transcript() { seed_all transcript tests/fixtures/transcript/*; }
seeds_package() {
  local packed scratch=$OUT/unpacked letter=a
  for packed in tests/fixtures/docx/*.docx tests/fixtures/epub/*.epub; do
    [[ $packed != *.epub ]] || letter=b
    rm -rf "$scratch"
    python3 -m zipfile -e "$packed" "$scratch"
    while IFS= read -r member; do seed package "$member" "$letter"; done < <(find "$scratch" -name '*ml' -o -name '*.opf')
  done
}
seeds_records() {
  local file
  seed_by records "jsonl json csv tsv" tests/fixtures/*.jsonl tests/fixtures/csv/*
  for file in tests/fixtures/forum/*; do seed records "$file" e; done
  for file in tests/fixtures/issues/*; do seed records "$file" f; done
  seed records tests/fixtures/transcript/meetings.jsonl g
}
seeds_feed() {
  local file
  for file in tests/fixtures/feed/* tests/fixtures/hostile/*.rss; do
    case $file in *.json) seed feed "$file" b ;; *) seed feed "$file" a ;; esac
  done
}
seeds_config() { seed_by config "yaml toml json cfg properties conf" tests/fixtures/config/* Cargo.toml; }

# --- Build and run ---------------------------------------------------------------------------------------

# The compiler is the stable one: RUSTC_BOOTSTRAP lets it take the flags of a sanitizer. C code (tree-sitter's
# grammars, libgit2) gets the same sanitizer from the C compiler, and little optimisation, which takes minutes for tables;
# libFuzzer itself is C++ and must not.
build() {
  local flags=(-Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
    -Cllvm-args=-sanitizer-coverage-trace-compares -Cforce-frame-pointers=yes)
  env RUSTC_BOOTSTRAP=1 RUSTFLAGS="${flags[*]}" "CFLAGS_${HOST//-/_}=-fsanitize=address -fno-omit-frame-pointer -g1 -O1" \
    cargo build --release --locked --manifest-path fuzz/Cargo.toml --target "$HOST" --target-dir "$OUT/build"
}

# run TARGET: its log tells what happened, and its .status file how it ended.
run() {
  local target=$1 status=0
  mkdir -p "$OUT/corpus/$target" "$OUT/found/$target"
  ASAN_OPTIONS=quarantine_size_mb=64:allocator_may_return_null=1:detect_leaks=0 RUST_BACKTRACE=1 \
    "$OUT/build/$HOST/release/$target" -max_total_time="$SECONDS_EACH" -timeout="$SECONDS_FOR_ONE" \
    -rss_limit_mb="$MEMORY_MB" -max_len="${LENGTH[$target]}" -print_final_stats=1 -artifact_prefix="$OUT/found/$target/" \
    "$OUT/corpus/$target" "$OUT/seeds/$target" >"$OUT/$target.log" 2>&1 || status=$?
  printf '%s\n' "$status" >"$OUT/$target.status"
}

# stat TARGET NAME: a number of the final statistics.
stat_of() { sed -n "s/^stat::$2: *//p" "$OUT/$1.log" | tail -1; }

row() { printf '| %s | %s | %s | %s | %s | %s |\n' "$@"; }

say "building the fuzz targets"
mkdir -p "$OUT"
build
rm -rf "$OUT/seeds"
running=0
for target in "${targets[@]}"; do
  mkdir -p "$OUT/seeds/$target"
  "seeds_$target"
  [ "$running" -lt "$JOBS" ] || { wait -n; running=$((running - 1)); }
  run "$target" &
  running=$((running + 1))
done
wait

bad=()
row target seeds executions coverage "peak memory, MB" result | tee "$OUT/table.md"
row --- ---: ---: ---: ---: --- | tee -a "$OUT/table.md"
for target in "${targets[@]}"; do
  log=$OUT/$target.log result=passed
  case $(cat "$OUT/$target.status") in
    0) ;;
    70) result=hang ;;
    71) result="out of memory" ;;
    *) result=crash ;;
  esac
  [ "$result" = passed ] || bad+=("$target")
  row "$target" "$(find "$OUT/seeds/$target" -type f | wc -l)" "$(stat_of "$target" number_of_executed_units)" \
    "$(sed -n 's/.*\bcov: \([0-9]*\).*/\1/p' "$log" | tail -1)" "$(stat_of "$target" peak_rss_mb)" "$result" | tee -a "$OUT/table.md"
done
for target in "${bad[@]}"; do
  say "" "== $target" "$(grep -aE -A12 'panicked at|ERROR: |SUMMARY: ' "$OUT/$target.log" | head -40)"
done
[ "${#bad[@]}" -eq 0 ] || die "did not survive: ${bad[*]}" "The inputs are in $OUT/found; one is run again by \`$OUT/build/$HOST/release/TARGET FILE\`."
