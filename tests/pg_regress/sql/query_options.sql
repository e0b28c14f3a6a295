-- What a query may say about its words: settings prefix, fuzzy and phrase.
\pset format unaligned
SELECT rag.create_collection('opts') > 0 AS made;
SELECT count(*) FROM (VALUES
    ('retrieval', 'Retrieval of passages from a retriever.'), ('retro', 'A retrospective of retro games.'),
    ('fusion', 'Reciprocal rank fusion of two legs.'), ('fusilli', 'Fusilli is a pasta, and fusing is not.'),
    ('harbor', 'The harbor has a tug.'), ('harbour', 'The harbour has two tugs; a harbour needs them.'),
    ('theory', 'The theory of the theatre.'), ('path', 'See src/store/sync.rs and rrf_k, then rrf_j.'),
    ('version', 'Version v0.8.6 and v0.8.7 of 2024 and 2025.'), ('words', E'The **exact**\nwords, and other Words.'),
    ('exactly', 'Exactly a word: words exact.'), ('ja', '全文検索エンジンを使う。'),
    ('mail', 'Write to jane@mail.example, read-only, at 3.14 or -5 degrees.'), ('stop', 'To be or not to be.'), ('both', 'Here are exact words and a tug in the harbour.')) AS v (uri, content),
       LATERAL rag.ingest(v.content, v.uri, collection => 'opts') i;

CREATE FUNCTION pg_temp.found(query text, settings jsonb, filter jsonb = '{}') RETURNS SETOF text LANGUAGE sql AS $$
    SELECT s.uri || ' ' || round(s.bm25_score::numeric, 6)
      FROM rag.search(query, 20, filter, 'opts', 'bm25', settings => settings) s $$;
CREATE FUNCTION pg_temp.chunks() RETURNS SETOF rag.chunk LANGUAGE sql AS $$
    SELECT c.* FROM rag.chunk c JOIN rag.collection k ON k.id = c.collection_id AND k.name = 'opts' WHERE c.current $$;

-- The naive way: every term of every passage compared, every passage scored.
CREATE FUNCTION pg_temp.edits(a text, b text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE d int[] := array_fill(0, ARRAY[length(a) + 1, length(b) + 1], ARRAY[0, 0]);
BEGIN
    FOR i IN 0..length(a) LOOP FOR j IN 0..length(b) LOOP
        d[i][j] := CASE WHEN i = 0 THEN j WHEN j = 0 THEN i ELSE
            least(d[i-1][j] + 1, d[i][j-1] + 1, d[i-1][j-1] + (substr(a, i, 1) <> substr(b, j, 1))::int) END;
        IF i > 1 AND j > 1 AND substr(a, i, 1) = substr(b, j - 1, 1) AND substr(a, i - 1, 1) = substr(b, j, 1) THEN
            d[i][j] := least(d[i][j], d[i-2][j-2] + 1);
        END IF;
    END LOOP; END LOOP;
    RETURN d[length(a)][length(b)];
END $$;
CREATE FUNCTION pg_temp.naive(query text, prefix bool, fuzzy int) RETURNS SETOF text LANGUAGE sql AS $$
    WITH own AS (SELECT u.lexeme AS term, cardinality(u.positions)::float8 AS weight FROM unnest(rag.terms(query)) u),
         word AS (SELECT w.word, u.lexeme AS form FROM regexp_split_to_table(trim(query), '\s+') w (word), unnest(rag.terms(w.word)) u
                  UNION SELECT w.word, lower(w.word) FROM regexp_split_to_table(trim(query), '\s+') w (word)
                   WHERE rag.terms(w.word) <> ''),
         last AS (SELECT lower((regexp_match(query, '\S+$'))[1]) AS form UNION
                  SELECT u.lexeme FROM unnest(to_tsvector('english', (regexp_match(query, '\S+$'))[1])) u),
         vocabulary AS (SELECT DISTINCT u.lexeme AS term FROM pg_temp.chunks() c, unnest(c.tsv) u),
         others AS (SELECT v.term, 0.5 AS weight FROM vocabulary v JOIN last l ON prefix AND starts_with(v.term, l.form)
                    UNION ALL
                    SELECT v.term, CASE e.edits WHEN 2 THEN 0.25 ELSE 0.5 END FROM vocabulary v JOIN word w ON left(v.term, 1) = left(w.form, 1)
                     CROSS JOIN LATERAL (SELECT pg_temp.edits(v.term, w.form) AS edits) e
                     WHERE w.form !~ '\d' AND e.edits <= least(fuzzy, CASE WHEN length(w.form) < 3 THEN 0 WHEN length(w.form) < 6 THEN 1 ELSE 2 END)
                       AND least(fuzzy, CASE WHEN length(w.form) < 3 THEN 0 WHEN length(w.form) < 6 THEN 1 ELSE 2 END) > 0),
         terms AS (SELECT term, weight FROM own UNION ALL
                   SELECT o.term, max(o.weight) FROM others o WHERE NOT EXISTS (SELECT FROM own WHERE own.term = o.term) GROUP BY 1),
         counts AS (SELECT c.document_id, c.dl, u.lexeme AS term, cardinality(u.positions) AS tf FROM pg_temp.chunks() c, unnest(c.tsv) u),
         n AS (SELECT count(*)::float8 AS n, avg(dl)::float8 AS avgdl FROM pg_temp.chunks()),
         weighed AS (SELECT t.term, t.weight * ln(1 + (n.n - count(*) + 0.5) / (count(*) + 0.5)) AS idf
                       FROM terms t JOIN counts c USING (term) CROSS JOIN n GROUP BY t.term, t.weight, n.n)
    SELECT d.uri || ' ' || round(sum(w.idf * c.tf * 2.2 / (c.tf + 1.2 * (0.25 + 0.75 * c.dl / n.avgdl)))::numeric, 6)
      FROM weighed w JOIN counts c USING (term) CROSS JOIN n JOIN rag.document d ON d.id = c.document_id
     GROUP BY d.uri, d.id ORDER BY sum(w.idf * c.tf * 2.2 / (c.tf + 1.2 * (0.25 + 0.75 * c.dl / n.avgdl))) DESC, d.id $$;
CREATE TEMP TABLE asked AS SELECT q AS query, p AS prefix, f AS fuzzy
  FROM unnest(ARRAY['retr', 'rank fus', 'fusoin', 'fusoin retreival', 'harbur tugs', 'harbur tug tug', 'the', 'th', 'rrf', 'theorie', 'exac word', 'Harbors', 'ha']) q,
       unnest(ARRAY[false, true]) p, unnest(ARRAY[0, 1, 2]) f;
CREATE FUNCTION pg_temp.differences() RETURNS SETOF text LANGUAGE sql AS $$
    SELECT format('%s prefix %s fuzzy %s: %s is not %s', query, prefix, fuzzy, is_, right_) FROM asked,
           LATERAL (SELECT ARRAY(SELECT pg_temp.found(query, jsonb_build_object('prefix', prefix, 'fuzzy', fuzzy))) AS is_,
                           ARRAY(SELECT pg_temp.naive(query, prefix, fuzzy)) AS right_) r
     WHERE is_ <> right_ $$;
SELECT pg_temp.differences();

-- The last word stands for what begins with it, unless white space follows it.
SELECT pg_temp.found('retr', '{}');
SELECT pg_temp.found('retr', '{"prefix": true}');
SELECT pg_temp.found('retr ', '{"prefix": true}');
SELECT pg_temp.found('the', '{"prefix": true}');
SELECT pg_temp.found('src/sto', '{"prefix": true}');
SELECT pg_temp.found('検索エ', '{"prefix": true}');
-- Words stand for what is written nearly like them; numbers and short words do not.
SELECT pg_temp.found('fusoin', '{}');
SELECT pg_temp.found('fusoin', '{"fuzzy": 1}');
SELECT pg_temp.found('harbur', '{"fuzzy": 1}');
SELECT pg_temp.found('2026', '{"fuzzy": 2}');
SELECT pg_temp.found('tu', '{"fuzzy": 2}');
SELECT pg_temp.found('xarbour', '{"fuzzy": 2}');
-- What words stand for is scored in whatever leg a passage was found.
SELECT count(*), bool_and(h.bm25_score = coalesce(b.bm25_score, 0)) AS same
  FROM rag.search('harbur', 2, collection => 'opts', candidate_k => 2, settings => '{"fuzzy": 1, "bm25_weight": 0.01}') h
  LEFT JOIN rag.search('harbur', 20, collection => 'opts', mode => 'bm25', settings => '{"fuzzy": 1}') b USING (chunk_id);

-- Phrases: every result has each of them, in whatever way it was found.
SELECT pg_temp.found('"exact words"', '{}');
SELECT pg_temp.found('"exact words"', '{"phrase": true}');
SELECT pg_temp.found('"EXACT words" tug', '{"phrase": true}');
SELECT pg_temp.found('"exact words" "a tug"', '{"phrase": true}');
SELECT pg_temp.found('"words exact" harbour', '{"phrase": true}');
SELECT pg_temp.found('"検索エンジン"', '{"phrase": true}');
SELECT pg_temp.found('"検索ンジエ"', '{"phrase": true}');
SELECT pg_temp.found('"jane@mail.example"', '{"phrase": true}');
SELECT pg_temp.found('"read only at 3.14"', '{"phrase": true}');
SELECT pg_temp.found('"read-only" "5 degrees"', '{"phrase": true}');
SELECT pg_temp.found('"read" "store/sync.rs"', '{"phrase": true}');
SELECT pg_temp.found('"store/sync.rs"', '{"phrase": true}');
SELECT pg_temp.found('"rrf_k then rrf_j"', '{"phrase": true}');
SELECT pg_temp.found('"exact words"', '{"phrase": true}', '{"uri": "bo*"}');
SELECT pg_temp.found('"exact words" harbur', '{"phrase": true, "fuzzy": 1}');
SELECT pg_temp.found('tug "exact wor"', '{"phrase": true, "prefix": true, "fuzzy": 2}');
SELECT uri, bm25_rank FROM rag.search('"to be or not to be"', collection => 'opts', settings => '{"phrase": true}');
SELECT mode, string_agg(uri, ' ' ORDER BY uri) AS found, bool_and(content ~* 'exact\W+words') AS all_have_it
  FROM unnest(ARRAY['hybrid', 'dense', 'bm25']) mode, LATERAL rag.search('"exact words" harbour', 20, collection => 'opts', mode => mode, settings => '{"phrase": true}')
 GROUP BY 1 ORDER BY 1;

-- Without the index: the same.
CREATE TEMP TABLE answers AS SELECT a.*, ARRAY(SELECT pg_temp.found(query, jsonb_build_object('prefix', prefix, 'fuzzy', fuzzy))) AS answer FROM asked a;
CREATE TEMP TABLE phrases AS SELECT q AS query, ARRAY(SELECT pg_temp.found(q, '{"phrase": true, "fuzzy": 2}')) AS answer
  FROM unnest(ARRAY['"exact words"', '"exact words" harbur', '"words exact" harbour', '"検索エンジン"', '"or not" tug']) q;
SELECT count(*) AS answers, count(*) FILTER (WHERE answer <> '{}') AS not_empty FROM answers;
BEGIN;
INSERT INTO rag.lex_gap SELECT id FROM rag.collection WHERE name = 'opts';
SELECT DISTINCT state FROM rag.lexical_status WHERE collection = 'opts';
SELECT query, prefix, fuzzy FROM answers WHERE answer <> ARRAY(SELECT pg_temp.found(query, jsonb_build_object('prefix', prefix, 'fuzzy', fuzzy)));
SELECT query FROM phrases WHERE answer <> ARRAY(SELECT pg_temp.found(query, '{"phrase": true, "fuzzy": 2}'));
ROLLBACK;
BEGIN;
DELETE FROM rag.lex_segment s USING rag.collection k WHERE k.id = s.collection_id AND k.name = 'opts';
SELECT DISTINCT state FROM rag.lexical_status WHERE collection = 'opts';
SELECT query, prefix, fuzzy FROM answers WHERE answer <> ARRAY(SELECT pg_temp.found(query, jsonb_build_object('prefix', prefix, 'fuzzy', fuzzy)));
ROLLBACK;

-- What was deleted is no term any more.
BEGIN;
DELETE FROM rag.document d USING rag.source s WHERE s.id = d.source_id AND s.name = 'inline/opts' AND d.uri IN ('retrieval', 'fusion');
SELECT pg_temp.differences();
SELECT pg_temp.found('retr', '{"prefix": true}');
ROLLBACK;

-- Nor is what the caller may not see: neither found, nor counted, nor named.
CREATE ROLE rag_options_reader;
CREATE ROLE rag_options_member;
GRANT USAGE ON SCHEMA rag TO rag_options_reader, rag_options_member;
GRANT SELECT ON rag.chunk, rag.document, rag.source, rag.collection, rag.chunk_embedding, rag.model, rag.profile, rag.acl
   TO rag_options_reader, rag_options_member;
GRANT EXECUTE ON FUNCTION rag.search, rag.terms TO rag_options_reader, rag_options_member;
INSERT INTO rag.acl VALUES ('rag_options_member', 'secret');
SET ROLE rag_options_reader;
CREATE TEMP TABLE before AS SELECT q.query, ARRAY(SELECT s.uri || s.bm25_score FROM rag.search(query, 20, collection => 'opts', mode => 'bm25', settings => '{"prefix": true, "fuzzy": 2}') s) AS answer
  FROM unnest(ARRAY['retrieveable', 'retr', 'harbor', 'fusoin']) q (query);
RESET ROLE;
SELECT count(*) FROM generate_series(1, 60) i, rag.ingest('retrievable' || i || ' retrievers retr' || chr(96 + i % 26) || repeat('x', i) || ' fusoin harbors', 'secret' || i, collection => 'opts', acl => 'secret');
SET ROLE rag_options_reader;
SELECT query FROM before WHERE answer <> ARRAY(SELECT s.uri || s.bm25_score FROM rag.search(query, 20, collection => 'opts', mode => 'bm25', settings => '{"prefix": true, "fuzzy": 2}') s);
SET ROLE rag_options_member;
-- A bound that was met is told, to whom it is met.
SELECT count(*), count(*) FILTER (WHERE uri LIKE 'secret%') AS secret FROM rag.search('retr', 100, collection => 'opts', mode => 'bm25', settings => '{"prefix": true}');
RESET ROLE;
-- The same bounds without the index.
BEGIN;
CREATE TEMP TABLE bounded AS SELECT s.uri || s.bm25_score AS answer FROM rag.search('retr', 100, collection => 'opts', mode => 'bm25', settings => '{"prefix": true}') s;
INSERT INTO rag.lex_gap SELECT id FROM rag.collection WHERE name = 'opts';
SELECT count(*) FROM bounded b FULL JOIN (SELECT s.uri || s.bm25_score AS answer FROM rag.search('retr', 100, collection => 'opts', mode => 'bm25', settings => '{"prefix": true}') s) a USING (answer)
 WHERE a.answer IS NULL OR b.answer IS NULL;
SET ROLE rag_options_reader;
SELECT s.uri FROM rag.search('retr', 100, collection => 'opts', mode => 'bm25', settings => '{"prefix": true}') s;
RESET ROLE;
ROLLBACK;
SELECT count(*) FROM rag.search('fusion ' || repeat('a', 70) || ' ' || repeat('b', 70), collection => 'opts', mode => 'bm25', settings => '{"fuzzy": 2}');

-- A profile may have them, and they are checked.
INSERT INTO rag.profile (name, settings) VALUES ('typing', '{"prefix": true, "fuzzy": 1, "mode": "bm25"}');
SELECT uri FROM rag.search('harbur fus', 3, collection => 'opts', profile => 'typing', filter => '{"uri": ["fus*", "harb*"]}');
DELETE FROM rag.profile WHERE name = 'typing';
SELECT * FROM rag.search('x', collection => 'opts', settings => '{"fuzzy": 3}');
SELECT * FROM rag.search('x', collection => 'opts', settings => '{"fuzzy": "yes"}');
SELECT * FROM rag.search('x', collection => 'opts', settings => '{"prefix": 1}');
SELECT * FROM rag.search('x', collection => 'opts', settings => '{"prefx": true}');
SELECT * FROM rag.search('some "exact words', collection => 'opts', settings => '{"phrase": true}');
\echo :LAST_ERROR_SQLSTATE
SELECT * FROM rag.search('some "..." words', collection => 'opts', settings => '{"phrase": true}');
\echo :LAST_ERROR_SQLSTATE
SELECT count(*) > 0 AS punctuation FROM rag.search('some "exact words', collection => 'opts', mode => 'bm25');

SELECT rag.drop_source('inline/opts');
SELECT rag.compact('opts') > 0 AS merged;
SELECT rag.drop_collection('opts');
DELETE FROM rag.acl WHERE role LIKE 'rag_options%';
DROP OWNED BY rag_options_reader, rag_options_member;
DROP ROLE rag_options_reader, rag_options_member;
