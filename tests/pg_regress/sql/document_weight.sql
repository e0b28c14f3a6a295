-- The document prior: whole documents scored by BM25, and the setting document_weight.
\pset format unaligned
SELECT rag.create_collection('whole') > 0 AS made;
-- Documents of one to six passages.
CREATE FUNCTION pg_temp.put(d int, version text) RETURNS bigint LANGUAGE sql AS $$
    SELECT chunks FROM rag.ingest((SELECT string_agg(version || ' ' || repeat('harbour ', (p * d) % 5) || repeat('lighthouse ', (p + d) % 3)
                                          || repeat('weather of the day ', 5), E'\n\n' ORDER BY p)
                                     FROM generate_series(1, 1 + d % 6) p),
                                  'paper' || d, collection => 'whole', options => '{"chunk_tokens": 32}') $$;
SELECT sum(pg_temp.put(d, 'first')) FROM generate_series(1, 24) d;

-- BM25 by the book (k1 1.2, b 0.75, the idf of Lucene), over documents as the sums of their passages.
CREATE FUNCTION pg_temp.by_the_book(terms text[]) RETURNS TABLE (document_id bigint, score double precision) LANGUAGE sql AS $$
    WITH chunk AS (SELECT c.* FROM rag.chunk c JOIN rag.collection k ON k.id = c.collection_id AND k.name = 'whole' WHERE c.current),
         document AS (SELECT c.document_id, sum(c.dl)::double precision AS dl FROM chunk c GROUP BY 1),
         tf AS (SELECT c.document_id, u.lexeme, sum(cardinality(u.positions))::double precision AS tf
                  FROM chunk c, unnest(c.tsv) u WHERE u.lexeme = ANY (terms) GROUP BY 1, 2),
         counts AS (SELECT count(*)::double precision AS n, avg(dl) AS average FROM document),
         idf AS (SELECT lexeme, ln(1 + ((SELECT n FROM counts) - count(*) + 0.5) / (count(*) + 0.5)) AS idf FROM tf GROUP BY 1)
    SELECT t.document_id, sum(i.idf * t.tf * 2.2 / (t.tf + 1.2 * (0.25 + 0.75 * d.dl / c.average)))
      FROM tf t JOIN idf i USING (lexeme) JOIN document d USING (document_id) CROSS JOIN counts c GROUP BY 1 $$;
-- Rows whose fused score is not what the ranks of the passage and of its document give, among the documents of all candidates.
CREATE FUNCTION pg_temp.wrong(weight double precision) RETURNS TABLE (rows bigint, wrong bigint) LANGUAGE sql AS $$
    WITH found AS (SELECT s.document_id, s.bm25_rank, s.fused_score
                     FROM rag.search('harbour lighthouse', 200, collection => 'whole', mode => 'bm25', candidate_k => 200,
                                     settings => jsonb_build_object('document_weight', weight)) s),
         documents AS (SELECT b.document_id, rank() OVER (ORDER BY round(b.score::numeric, 9) DESC) AS rank
                         FROM pg_temp.by_the_book(ARRAY['harbour', 'lighthous']) b
                        WHERE b.document_id IN (SELECT f.document_id FROM found f))
    SELECT count(*), count(*) FILTER (WHERE coalesce(abs(f.fused_score - 1.0 / (60 + f.bm25_rank) - weight / (60 + d.rank)) > 1e-12, true))
      FROM found f LEFT JOIN documents d USING (document_id) $$;
SELECT * FROM pg_temp.wrong(1);
SELECT * FROM pg_temp.wrong(2.5);

-- New versions and deletions leave documents in pieces; merging makes them whole; without the index they are added up.
SELECT sum(pg_temp.put(d, 'second')) FROM generate_series(1, 24, 3) d;
DELETE FROM rag.chunk c USING rag.document d WHERE d.id = c.document_id AND d.uri ~ '^paper.[25]$' AND c.ordinal = 1;
UPDATE rag.chunk c SET document_id = t.id FROM rag.document f, rag.document t
 WHERE f.id = c.document_id AND f.uri = 'paper8' AND t.uri = 'paper9' AND c.ordinal = 0;
SELECT * FROM pg_temp.wrong(1);
SELECT unit, state, segments > 1 AS several FROM rag.lexical_status WHERE collection = 'whole' ORDER BY 1;
SELECT rag.compact('whole') > 1 AS merged;
SELECT * FROM pg_temp.wrong(1);
SELECT unit, state, segments, dead_segments, documents FROM rag.lexical_status WHERE collection = 'whole' ORDER BY 1;
SELECT count(DISTINCT c.document_id) AS documents, count(*) AS passages FROM rag.chunk c
  JOIN rag.collection k ON k.id = c.collection_id AND k.name = 'whole' WHERE c.current;
SELECT rag.reindex_lexical('whole') > 0 AS made;
SELECT * FROM pg_temp.wrong(1);
INSERT INTO rag.lex_gap SELECT id FROM rag.collection WHERE name = 'whole';
SELECT * FROM pg_temp.wrong(1);
SELECT * FROM rag.repair() WHERE object = 'whole';

-- A filter narrows passages, not documents.
SELECT count(*) = 1 AS one, bool_and(abs(s.fused_score - 2.0 / 61) < 1e-12) AS first
  FROM rag.search('lighthouse', 1, '{"uri": "paper5"}', 'whole', 'bm25', settings => '{"document_weight": 1}') s;
-- With both legs and with the dense one alone; without a word that any document has there is no prior.
SELECT count(*) AS rows, count(*) FILTER (WHERE s.fused_score IS NULL) AS unfused
  FROM rag.search('harbour', 5, collection => 'whole', settings => '{"document_weight": 0.5}') s;
SELECT count(*) AS rows, count(*) FILTER (WHERE s.fused_score IS NULL) AS unfused
  FROM rag.search('harbour', 5, collection => 'whole', mode => 'dense', settings => '{"document_weight": 0.5}') s;
SELECT bool_and(abs(s.fused_score - 1.0 / (60 + s.dense_rank)) < 1e-12) AS dense_only
  FROM rag.search('zebra', 5, collection => 'whole', mode => 'dense', settings => '{"document_weight": 0.5}') s;
SELECT * FROM rag.search('harbour', 5, collection => 'whole', settings => '{"document_weight": -1}') s;
SELECT * FROM rag.search('harbour', 5, collection => 'whole', settings => '{"document_wait": 1}') s;
