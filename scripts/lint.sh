#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: the rules that a machine can check: formatting, clippy, who may depend on whom, where what may stand.
#   lint.sh               check the project
#   lint.sh --self-test   prove that each rule over the sources fires on a planted violation
# shellcheck disable=SC2317 # rules are called by name
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$ROOT"

# Rules over the sources read the tree under $tree, so that the self-test can show them another one.
tree=$ROOT
MAX_CODE_LINES=500

# rust_files PATH…: Rust sources under these paths of the tree, those that are there.
rust_files() {
  local path
  for path in "$@"; do
    [ ! -e "$tree/$path" ] || find "$tree/$path" -name '*.rs'
  done | sort
}

# code FILE: the file with comments blanked and line numbers kept (block comments are not used here).
code() { sed 's|//.*||' "$1"; }

# only_in PATTERN WHAT ALLOWED-REGEX PATHS…: PATTERN may stand only in files that ALLOWED-REGEX matches.
only_in() {
  local pattern=$1 what=$2 allowed=$3 file name hits bad=0
  shift 3
  while IFS= read -r file; do
    name=${file#"$tree"/}
    [[ ! $name =~ ^($allowed)$ ]] || continue
    hits=$(code "$file" | grep -nE -- "$pattern") || continue
    say "$name: $what: ${hits%%$'\n'*}"
    bad=1
  done < <(rust_files "$@")
  return "$bad"
}

rule_pg_extern() { only_in '\bpg_extern\b' "pg_extern belongs in src/api" 'src/api(/.*|)\.rs|src/api/.*' src; }

rule_spi() {
  only_in '\bSpi\b|\bSpiClient\b|\bSPI_[a-z]' "SPI belongs in src/spi" 'src/spi/.*' src
}

rule_unsafe() {
  only_in '\bunsafe\b' "unsafe code belongs in spi, vector, tsvector, json, am, engine_client, worker, guc and lib only" \
    'src/(vector|tsvector|json|am|engine_client|guc|lib)\.rs|src/(spi|worker)/.*' src
}

# api → sync, evaluate → retrieve → store → spi; settings are read where a call comes in and handed down.
rule_src_layers() {
  local bad=0
  only_in 'crate::api\b' "only lib may use api" 'src/lib\.rs|src/api/.*' src || bad=1
  only_in 'crate::(sync|evaluate)\b' "only api and worker may use sync and evaluate" 'src/lib\.rs|src/(api|sync|evaluate|worker)/.*' src || bad=1
  only_in 'crate::retrieve\b' "only api, evaluate and worker may use retrieve" 'src/lib\.rs|src/(api|evaluate|retrieve|worker)/.*' src || bad=1
  only_in 'crate::store\b' "store is used from above only" 'src/(api|sync|evaluate|retrieve|store|worker)/.*' src || bad=1
  only_in '\bguc::[a-z]' "settings are read in api and worker only" 'src/lib\.rs|src/(api|worker)/.*' src || bad=1
  return "$bad"
}

rule_spdx() {
  local file bad=0
  while IFS= read -r file; do
    # What is read by a test or asked about is content, not code.
    [[ $file != */fixtures/* && $file != */eval/corpora/* ]] || continue
    head -2 "$file" | grep -q 'SPDX-License-Identifier: PostgreSQL' || { say "${file#"$tree"/}: no SPDX line"; bad=1; }
  done < <(rust_files src crates eval tests fuzz)
  return "$bad"
}

rule_unfinished() {
  # Comments count here: an open end is most often announced in one.
  local file hits bad=0
  while IFS= read -r file; do
    hits=$(grep -nE '\b(TODO|FIXME|XXX)\b|\b(todo|unimplemented|dbg)!' "$file") || continue
    say "${file#"$tree"/}: unfinished: ${hits%%$'\n'*}"
    bad=1
  done < <(rust_files src crates eval tests fuzz)
  return "$bad"
}

# Lines of code, not blank lines, comments or the tests at the end of a file.
rule_file_length() {
  local file lines bad=0
  while IFS= read -r file; do
    lines=$(sed '/^#\[cfg(test)\]/,$d' "$file" | grep -cvE '^[[:space:]]*(//.*)?$' || true)
    [ "$lines" -le "$MAX_CODE_LINES" ] || { say "${file#"$tree"/}: $lines lines of code, more than $MAX_CODE_LINES"; bad=1; }
  done < <(rust_files src crates eval fuzz)
  return "$bad"
}

# --- Rules over the dependency graph and by other programs -----------------------------------------

# dependencies PACKAGE: names of everything it is built from.
dependencies() { cargo tree -q -p "$1" -e normal --prefix none --format '{p}' | sed 's/ .*//' | sort -u; }

# forbids PACKAGE NAME…: PACKAGE must not be built from any NAME.
forbids() {
  local package=$1 all name bad=0
  shift
  all=$(dependencies "$package") || return 1
  for name in "$@"; do
    ! grep -qxE "$name" <<<"$all" || { say "$package depends on $(grep -xE "$name" <<<"$all" | head -1)"; bad=1; }
  done
  return "$bad"
}

rule_core_layer() { forbids rag_core 'pgrx.*' tokio ort tokenizers git2 rayon reqwest ureq 'rag_.*(ingest|model|engine|eval)'; }
rule_ingest_layer() { forbids rag_ingest 'pgrx.*' rag_model ort; }
rule_model_layer() { forbids rag_model 'pgrx.*' rag_ingest; }
rule_extension_layer() { forbids pg_rag rag_ingest rag_model ort tokenizers git2; }
rule_eval_layer() { forbids rag_eval 'pgrx.*' rag_ingest rag_model; }

rule_one_pgrx_version() {
  grep -qE "^pgrx = .*\"=$CARGO_PGRX_VERSION\"" Cargo.toml || { say "Cargo.toml's pgrx is not $CARGO_PGRX_VERSION, cargo-pgrx is"; return 1; }
}

# The fuzz targets are a workspace of their own, which follows what the crates depend on.
rule_fuzz_lock() { cargo update -q --workspace --locked --manifest-path fuzz/Cargo.toml; }

rule_formatting() { cargo fmt --all --check && cargo fmt --manifest-path fuzz/Cargo.toml --check; }
rule_clippy() { cargo clippy -q --workspace --exclude pg_rag --all-targets -- -D warnings; }
rule_clippy_extension() { cargo clippy -q -p pg_rag --no-default-features --features "pg$PG_MAJOR" -- -D warnings; }
rule_shell() { shellcheck -x scripts/*.sh eval/*.sh eval/*/*.sh .ci/run; }
rule_python() { "$VENV/bin/python" -m compileall -q scripts eval; }

source_rules=(pg_extern spi unsafe src_layers spdx unfinished file_length)
other_rules=(core_layer ingest_layer model_layer extension_layer eval_layer one_pgrx_version fuzz_lock shell python formatting clippy clippy_extension)

# --- Self-test -------------------------------------------------------------------------------------

# plant RULE FILE CONTENT EXPECTED: the rule's answer (fires or silent) to a tree with this one file.
plant() {
  local rule=$1 file=$2 content=$3 expected=$4 answer=silent
  tree=$(mktemp -d "$TARGET/lint.XXXXXX")
  mkdir -p "$tree/$(dirname "$file")"
  printf '%s\n' "$content" >"$tree/$file"
  "rule_$rule" 2>/dev/null || answer=fires
  rm -rf "$tree"
  planted=$((planted + 1))
  [ "$answer" = "$expected" ] && return
  say "self-test: rule $rule on $file: $answer, expected: $expected"
  failed=1
}

self_test() {
  local planted=0 failed=0 long
  plant pg_extern src/store/chunk.rs '#[pg_extern] fn f() {}' fires
  plant pg_extern src/api/search.rs '#[pg_extern] fn f() {}' silent
  plant pg_extern src/store/chunk.rs '// not a pg_extern' silent
  plant spi src/api/search.rs 'Spi::run("SELECT 1")' fires
  plant spi src/retrieve/dense.rs 'Spi::run("SELECT 1")' fires
  plant spi src/worker/jobs.rs 'pg_sys::SPI_execute(text, false, 0)' fires
  plant spi src/spi/mod.rs 'Spi::connect(f)' silent
  plant unsafe src/store/chunk.rs 'unsafe { f() }' fires
  plant unsafe src/worker/jobs.rs 'unsafe { f() }' silent
  plant unsafe src/store/chunk.rs '#![deny(unsafe_code)]' silent
  plant src_layers src/store/chunk.rs 'use crate::sync;' fires
  plant src_layers src/spi.rs 'use crate::store::chunk;' fires
  plant src_layers src/sync/mod.rs 'let waits = guc::waits();' fires
  plant src_layers src/sync/mod.rs 'use crate::guc::Waits;' silent
  plant src_layers src/api/search.rs 'use crate::retrieve;' silent
  plant spdx src/store/chunk.rs '//! A table.' fires
  plant spdx eval/corpora/shop/repo/lib.rs '//! A shop.' silent
  plant spdx src/store/chunk.rs '// SPDX-License-Identifier: PostgreSQL' silent
  plant unfinished crates/core/src/lib.rs '// TODO later' fires
  plant unfinished crates/core/src/lib.rs 'dbg!(x);' fires
  plant unfinished crates/core/src/lib.rs 'let todo = 1;' silent
  long=$(seq -f 'const A%g: u8 = 0;' 501)
  plant file_length src/store/chunk.rs "$long" fires
  plant file_length src/store/chunk.rs "// ${long//$'\n'/$'\n'// }" silent
  plant file_length src/store/chunk.rs "#[cfg(test)]"$'\n'"$long" silent
  [ "$failed" -eq 0 ] || exit 1
  say "lint self-test: $planted plants, all answered as expected"
}

if [ "${1:-}" = --self-test ]; then
  self_test
  exit
fi

need_pg
(self_test)
bad=()
for rule in "${source_rules[@]}" "${other_rules[@]}"; do
  # Called outside a condition's reach it would end the script; so -e is off in rules, which return what they found.
  "rule_$rule" || bad+=("$rule")
done
[ "${#bad[@]}" -eq 0 ] || die "broken rules: ${bad[*]}"
say "lint: ${#source_rules[@]} source rules, ${#other_rules[@]} others, all kept"
