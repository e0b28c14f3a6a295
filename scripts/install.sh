#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: putting the extension, the engine, ONNX Runtime and the models into the server of PG_CONFIG.
# Only what changed is written, each file in one step: a running server may have the old one mapped.
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$ROOT"
need_pg
pkglibdir=$("$PG_CONFIG" --pkglibdir)
sharedir=$("$PG_CONFIG" --sharedir)

sudo=()
as_owner() { "${sudo[@]}" "$@"; }
for dir in "$pkglibdir" "$sharedir"; do
  [ -w "$dir" ] || sudo=(sudo)
done

# The date of a file that is the same stays: cluster.sh restarts a server that is older than its files.
changed=0
put() { # put MODE FROM TO
  ! cmp -s "$2" "$3" || return 0
  as_owner mkdir -p "$(dirname "$3")"
  as_owner install -m "$1" "$2" "$3.new"
  as_owner mv -f "$3.new" "$3"
  changed=$((changed + 1))
}
put_folder() { # put_folder FROM TO
  local file
  while IFS= read -r file; do
    put 644 "$1/$file" "$2/$file"
  done < <(cd "$1" && find . -type f ! -name '*.tmp' | sed 's|^\./||' | sort)
}

say "building: the extension for PostgreSQL $PG_MAJOR"
package=$TARGET/package/pg$PG_MAJOR
rm -rf "$package"
# cargo-pgrx links with flags of its own; in a folder of its own they do not make cargo build everything twice.
CARGO_TARGET_DIR=$CARGO_OUT/extension cargo pgrx package --no-default-features --features "pg$PG_MAJOR" --pg-config "$PG_CONFIG" --out-dir "$package"
say "building: the engine"
cargo build --release -p rag_engine

put 755 "$package$pkglibdir/pg_rag.so" "$pkglibdir/pg_rag.so"
put_folder "$package$sharedir/extension" "$sharedir/extension"
put 755 "$CARGO_OUT/release/pg_rag_engine" "$pkglibdir/pg_rag/pg_rag_engine"
put 755 "$ONNXRUNTIME/libonnxruntime.so" "$pkglibdir/pg_rag/libonnxruntime.so"
for name in "${MODEL_NAMES[@]}"; do
  put_folder "$MODELS/$name" "$sharedir/pg_rag/models/$name"
done
# The engine's command line looks for models beside the program.
[ "$(readlink "$pkglibdir/pg_rag/models")" = "$sharedir/pg_rag/models" ] ||
  as_owner ln -sfn "$sharedir/pg_rag/models" "$pkglibdir/pg_rag/models"
say "installed into $pkglibdir ($changed files changed)"
