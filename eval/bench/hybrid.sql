-- SPDX-License-Identifier: PostgreSQL
-- Hybrid search as one writes it by hand: $1 question, $2 its vector as text, $3 not used (so that all contenders take the
-- same parameters), $4 results. {words} is the tsquery of the question, {lexical} the best hundred by words with their scores.
-- The vector is read from its text once: a generic plan that casts $2 beside the operator parses it again for every row,
-- which makes this statement look ten times slower than it is.
WITH question AS MATERIALIZED (
    SELECT {words} AS words, $2::text::halfvec AS vector
), dense AS MATERIALIZED (
    SELECT id, row_number() OVER (ORDER BY distance, id) AS rank
      FROM (SELECT id, embedding <=> (SELECT vector FROM question) AS distance
              FROM rag_bench.passage
             ORDER BY embedding <=> (SELECT vector FROM question)
             LIMIT 100) AS nearest
), lexical AS MATERIALIZED (
    SELECT id, row_number() OVER (ORDER BY score DESC, id) AS rank
      FROM ({lexical}) AS matching
), fused AS (
    SELECT id, sum(1.0 / (60 + rank)) AS score
      FROM (SELECT * FROM dense UNION ALL SELECT * FROM lexical) AS both_legs
     GROUP BY id
     ORDER BY score DESC, id
     LIMIT $4::int4
)
SELECT p.external_id, row_number() OVER (ORDER BY f.score DESC, f.id) AS rank
  FROM fused f
  JOIN rag_bench.passage p USING (id)
 WHERE $3::text IS NOT NULL
 ORDER BY rank
