-- rag.search
SET client_min_messages = error;
SELECT rag.add_source('docs', 'markdown', public.fixtures() || '/docs', '{"chunk_tokens": 60}') > 0 AS added;
CALL rag.sync('docs');
SELECT rag.add_source('records', 'jsonl', public.fixtures() || '/records.jsonl') > 0 AS added;
CALL rag.sync('records');
RESET client_min_messages;
SELECT rank, uri, citation, dense_rank IS NOT NULL AS dense, bm25_rank, current, complete, degraded
  FROM rag.search('how much is the harbour fee', 2);
-- the columns are frozen
SELECT string_agg(a.name || ' ' || a.type, ', ' ORDER BY n)
  FROM pg_proc p, ROWS FROM (unnest(p.proargnames), unnest(p.proargmodes::text[]),
                             unnest((SELECT array_agg(format_type(t, NULL) ORDER BY o)
                                       FROM unnest(p.proallargtypes) WITH ORDINALITY u(t, o))))
       WITH ORDINALITY AS a (name, mode, type, n)
 WHERE p.oid::regproc = 'rag.search'::regproc AND a.mode = 't';
SELECT pg_get_function_arguments('rag.search'::regproc);
-- content is the span, the locator says where
SELECT content, locator FROM rag.search('which tug is stronger', 1, mode => 'dense');
-- fused scores are the formula of reciprocal rank fusion
SELECT count(*) > 3 AS several,
       bool_and(abs(fused_score - (coalesce(1.0 / (60 + dense_rank), 0) + coalesce(2.0 / (60 + bm25_rank), 0))) < 1e-12) AS right,
       bool_and(score = fused_score) AS same
  FROM rag.search('mooring at the quay', 20, settings => '{"bm25_weight": 2}');
-- or of the convex combination of scores: BM25 in parts of the best
SELECT bool_and(abs(fused_score - (alpha * dense_score + (1 - alpha) * bm25_score / best)) < 1e-12) AS right, bool_and(rank = place) AS in_order
  FROM unnest('{0,0.3,1}'::float8[]) AS alpha,
       LATERAL (SELECT *, max(bm25_score) OVER () AS best, row_number() OVER (ORDER BY fused_score DESC, chunk_id) AS place
                  FROM rag.search('mooring at the quay', 20, settings => jsonb_build_object('fusion', 'convex', 'alpha', alpha))) s;
SELECT * FROM rag.search('x', settings => '{"fusion": "convex", "alpha": 7}');
-- a candidate of one leg has its score by the other
SELECT bool_and(dense_score IS NOT NULL AND bm25_score IS NOT NULL) AS filled FROM rag.search('mooring at the quay', 20);
-- exact cosine, as pgvector computes it
SELECT bool_and(abs(s.dense_score - (1 - (e.embedding::vector <=> rag.embed_query('rising dough')))) < 1e-3) AS cosine
  FROM rag.search('rising dough', 5, mode => 'dense') s JOIN rag.chunk_embedding e ON e.chunk_id = s.chunk_id;
-- BM25 as written down, over terms counted here, those of titles three times: k1 1.2, b 0.75, idf ln(1 + (N - df + 0.5) / (df + 0.5))
WITH texts AS (SELECT c.id, concat_ws(E'\n', nullif(d.title, c.content), d.path, array_to_string(c.heading_path, E'\n'), c.context, c.content) AS text,
                        nullif(d.title, c.content) AS title
                 FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id),
     counts AS (SELECT id, lexeme, sum(tf)::float8 AS tf
                  FROM (SELECT t.id, u.lexeme, cardinality(u.positions) AS tf FROM texts t, unnest(rag.terms(t.text)) u
                        UNION ALL SELECT t.id, u.lexeme, 2 * cardinality(u.positions) FROM texts t, unnest(rag.terms(t.title)) u) c
                 GROUP BY 1, 2),
     lengths AS (SELECT id, sum(tf)::float8 AS dl FROM counts GROUP BY id),
     corpus AS (SELECT count(*)::float8 AS n, avg(dl) AS mean FROM lengths),
     terms AS (SELECT u.lexeme, count(k.id)::float8 AS df FROM unnest(rag.terms('ship harbour tug bread fee')) u
                 LEFT JOIN counts k USING (lexeme) GROUP BY u.lexeme),
     scores AS (SELECT k.id, sum(ln(1 + (n - df + 0.5) / (df + 0.5)) * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * dl / mean))) AS score
                  FROM counts k JOIN terms USING (lexeme) JOIN lengths l ON l.id = k.id CROSS JOIN corpus GROUP BY k.id)
SELECT count(*) AS matches, count(*) FILTER (WHERE abs(s.bm25_score - o.score) < 1e-9) AS equal
  FROM scores o FULL JOIN rag.search('ship harbour tug bread fee', 100, mode => 'bm25') s ON s.chunk_id = o.id;
-- a word that is said twice counts twice
SELECT bool_and(abs(t.bm25_score - 2 * s.bm25_score) < 1e-9) AS twice FROM rag.search('ship', 50, mode => 'bm25') s
  JOIN rag.search('ship ships', 50, mode => 'bm25') t USING (chunk_id);
-- a vector of one's own
SELECT uri FROM rag.search('anything', 1, mode => 'dense', query_embedding => rag.embed_query('kneading dough'));
SELECT uri FROM rag.search('anything', 1, query_embedding => '[1,2,3]');
SELECT uri FROM rag.search('anything', 1, query_embedding => (SELECT array_agg(0)::real[]::vector FROM generate_series(1, 384)));
-- one leg
SELECT rank, uri, score = bm25_score AS score, dense_score, fused_score FROM rag.search('rice pots', 3, mode => 'bm25');
SELECT count(*) FROM rag.search('the of and', 3, mode => 'bm25');
SELECT count(*) FROM rag.search('zzzzqqq', 3, mode => 'bm25');
-- top_k rows come back whenever they exist
SELECT count(*) = (SELECT count(*) FROM rag.chunk) AS everything FROM rag.search('ship', 1000);
-- a record that is nothing but a title is found by it
SELECT title, content FROM rag.search('whale', 1);
-- filters
SELECT DISTINCT source FROM rag.search('fish', 50, '{"source": "records"}');
SELECT DISTINCT uri FROM rag.search('ship', 50, '{"path": "kitchen*"}');
SELECT DISTINCT uri FROM rag.search('ship', 50, '{"uri": ["harbour.md", "*.jsonl#r1"]}') ORDER BY 1;
SELECT DISTINCT title FROM rag.search('animal', 50, '{"metadata.team": ["pets"]}') ORDER BY 1;
SELECT DISTINCT uri FROM rag.search('ship', 50, '{"published_at": {"gte": "2025-01-01", "lt": "2026-01-01"}}');
SELECT count(*) FROM rag.search('ship', 50, '{"language": "de"}');
SELECT bool_and((locator->>'line_end')::int >= 20) AS late FROM rag.search('ship', 50, '{"line": {"gte": 20}, "source": "docs"}');
SELECT count(*) FROM rag.search('ship', 50, '{"source": "docs'' OR true --"}');
-- a filter changes who is eligible, not how a chunk is scored
SELECT count(*) FROM rag.search('ship fee', 50, '{"path": "harbour.md"}', mode => 'bm25') f
  JOIN rag.search('ship fee', 50, mode => 'bm25') a USING (chunk_id) WHERE f.bm25_score <> a.bm25_score;
-- metadata is any JSON, and its numbers keep their digits
SELECT chunks FROM rag.ingest('A quokka smiles.', 'quokka', 'text', '{"big": 1e400, "n": 12345678901234567890, "o": {"a": [1]}, "z": null}');
SELECT length(metadata->>'big') AS digits, metadata->>'n' AS n FROM rag.search('quokka', 1);
SELECT uri FROM rag.search('quokka', 5, '{"metadata.o": {"a": [1]}}');
SELECT uri FROM rag.search('quokka', 5, '{"metadata.z": null}');
SELECT uri FROM rag.search('quokka', 5, '{"metadata.n": 12345678901234567890}');
-- a dropped text search configuration costs its source the BM25 leg, and is told
CREATE TEXT SEARCH CONFIGURATION public.passing (COPY = english);
SELECT rag.add_source('passing', 'markdown', '/srv/passing', '{"text_search_config": "passing"}') > 0 AS added;
DROP TEXT SEARCH CONFIGURATION public.passing;
SELECT uri FROM rag.search('quokka', 1, mode => 'bm25');
SELECT rag.drop_source('passing');
-- within a query
SELECT s.name, r.uri FROM rag.source s, LATERAL rag.search('water', 1, jsonb_build_object('source', s.name)) r ORDER BY 1;
PREPARE q AS SELECT uri FROM rag.search($1, 1);
EXECUTE q('bread');
-- nothing leaks into the session
SELECT current_setting('hnsw.ef_search', true) IN ('', '40') AS untouched, current_setting('jit');
-- errors
SELECT * FROM rag.search('');
SELECT count(*) FROM rag.search(repeat('word ', 4000));
SELECT count(*) > 0 AS found FROM rag.search(repeat('word ', 600));
SELECT * FROM rag.search('x', 0);
SELECT * FROM rag.search('x', 10001);
SELECT * FROM rag.search('x', filter => '{"sorce": "docs"}');
SELECT * FROM rag.search('x', filter => '{"page": "two"}');
SELECT * FROM rag.search('x', filter => '{"published_at": {"gte": "0000-01-01"}}');
SELECT * FROM rag.search('x', collection => 'defualt');
SELECT * FROM rag.search('x', mode => 'sparse');
SELECT * FROM rag.search('x', candidate_k => 0);
SELECT * FROM rag.search('x', rrf_k => -1);
SELECT * FROM rag.search('x', rerank => 'some');
SELECT * FROM rag.search('x', profile => 'fast');
SELECT * FROM rag.search('x', settings => '{"rrfk": 3}');
SELECT * FROM rag.search('x', settings => '{"fusion": "auto"}');
SELECT * FROM rag.search('x', settings => '{"dense_weight": 0, "bm25_weight": 0}');
SELECT * FROM rag.search('x', mode => 'hybrid', settings => '{"mode": "dense", "dense_weight": 0, "bm25_weight": 0}');
SELECT count(*) FROM rag.search(NULL);
-- Settings of the caller's change nothing.
SET quote_all_identifiers = on;
SELECT count(*) > 0 AS found FROM rag.search('quokka', mode => 'bm25');
RESET quote_all_identifiers;

-- A cosine does not ask for the length of a vector, so neither a tiny nor a huge one is a problem.
SELECT count(*) FROM rag.search('x', 3, mode => 'dense', query_embedding => (SELECT array_agg(1e-30)::vector FROM generate_series(1, 384)))
 WHERE dense_score = 'NaN' OR dense_score IS NULL;
SELECT count(*) FROM rag.search('x', 3, mode => 'dense', query_embedding => (SELECT array_agg(1e30)::vector FROM generate_series(1, 384)))
 WHERE dense_score = 'NaN' OR dense_score IS NULL;

-- What is too much is said to be too much.
SELECT * FROM rag.search('x', filter => ('{"metadata.a": ' || repeat('[', 200) || repeat(']', 200) || '}')::jsonb);
SELECT * FROM rag.search('x', filter => (SELECT jsonb_object_agg('metadata.k' || i, 1) FROM generate_series(1, 1001) i));
SELECT * FROM rag.search('x', filter => jsonb_build_object('uri', repeat('a', 1001)));
SELECT count(*) FROM rag.search('quokka', filter => '{"published_at": {"gte": "2020-01-01T00:00:00+23:00"}}');
SELECT count(*) FROM rag.search('quokka', filter => '{"source": ["no1", "no2", "no3"]}');
\set VERBOSITY terse
SELECT * FROM rag.search('quokka', collection => repeat('c', 5000));
\set VERBOSITY default
SELECT rag.drop_source(name) FROM rag.sources ORDER BY name;
