#!/usr/bin/env bash
# SPDX-License-Identifier: PostgreSQL
# Owns: the first five minutes: from a clone to three answered questions on a private cluster, which stays up.
# shellcheck source=scripts/env.sh
. "$(dirname "$0")/env.sh"
cd "$ROOT"
scripts/setup.sh
scripts/install.sh
scripts/cluster.sh up

sql() { scripts/cluster.sh psql "$@"; }

# What the server's user cannot read is copied to where it can.
place=$RUN/demo/files
if [ -n "$DATA" ] && as_server test -r "$DATA/files/md"; then
  place=$DATA/files/md
elif [ -n "$DATA" ]; then
  as_server mkdir -p "$place"
  tar -C "$DATA/files/md" -cf - . | as_server tar -C "$place" -xf -
else
  as_server mkdir -p "$place"
  tar -C "$ROOT" -cf - README.md docs | as_server tar -C "$place" -xf -
fi

say "ingesting: $place"
# The source may be there from an earlier run; another place makes it another source. The files that lie beside a
# checkout hold one page twice, with other line ends, and the answers need it once.
sql -v place="$place" <<'SQL'
SELECT rag.drop_source(name) FROM rag.sources WHERE name = 'demo' AND location <> :'place' \g /dev/null
SELECT rag.add_source('demo', 'markdown', :'place', '{"ignore": ["*.crlf.md"]}')
 WHERE NOT EXISTS (SELECT FROM rag.sources WHERE name = 'demo') \g /dev/null
CALL rag.sync('demo');
SQL

if [ -n "$DATA" ]; then
  questions=("How do I build an HNSW index?" "connection pooling with PgBouncer" "When does a destructor run?")
else
  questions=("How are dense and BM25 results fused?" "How do I keep a source fresh?" "Which files may the server read?")
fi
for question in "${questions[@]}"; do
  printf '\n» %s\n' "$question"
  sql -v question="$question" -P pager=off <<'SQL'
SELECT rank, round(score::numeric, 4) AS score, left(citation, 80) AS citation, left(regexp_replace(content, '\s+', ' ', 'g'), 70) AS content
  FROM rag.search(:'question', 3) ORDER BY rank;
SQL
done
printf '\nThe cluster stays up. Ask it yourself:\n  make psql          an interactive session; for instance\n'
printf "                     SELECT rank, citation, content FROM rag.search('%s');\n" "${questions[0]}"
printf '  make down          stop it\n'
