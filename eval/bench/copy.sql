-- SPDX-License-Identifier: PostgreSQL
-- The rival's table: the passages of one collection with their vectors, indexed as one does by hand.
-- {collection} is a literal, {dimensions} a number. The only place where rag_eval reads vectors from an internal table, because
-- a second embedding of the corpus would take minutes and give the same vectors.
CREATE TABLE rag_bench.passage AS
SELECT k.id, d.external_id, coalesce(d.title, '') || ' ' || k.content AS content,
       to_tsvector('english', coalesce(d.title, '') || ' ' || k.content) AS tsv,
       e.embedding::halfvec({dimensions}) AS embedding
  FROM rag.collection c
  JOIN rag.chunk k ON k.collection_id = c.id AND k.current
  JOIN rag.document d ON d.id = k.document_id
  JOIN rag.chunk_embedding e ON e.chunk_id = k.id AND e.model_id = c.model_id
 WHERE c.name = {collection};
ALTER TABLE rag_bench.passage ADD PRIMARY KEY (id);
CREATE INDEX ON rag_bench.passage USING gin (tsv) WITH (fastupdate = off);
CREATE INDEX ON rag_bench.passage USING hnsw (embedding halfvec_cosine_ops);
ANALYZE rag_bench.passage;
