-- The index of the BM25 leg: rag.compact, rag.reindex_lexical, rag.lexical_status.
\pset format unaligned
SELECT rag.create_collection('lex') > 0 AS made;
-- Within a transaction that has merged nobody else merges, so that what is counted below is what was written.
BEGIN;
SELECT rag.compact('lex');
SELECT count(*) FROM generate_series(1, 9) g, rag.ingest('alpha ' || repeat('beta ', g), 'doc' || g, collection => 'lex');
CREATE FUNCTION pg_temp.best(query text) RETURNS SETOF text LANGUAGE sql AS $$
    SELECT s.uri || ' ' || round(s.bm25_score::numeric, 6) FROM rag.search(query, 3, collection => 'lex', mode => 'bm25') s $$;
CREATE FUNCTION pg_temp.state() RETURNS text LANGUAGE sql AS $$
    SELECT format('%s, %s segments (%s small, %s dead), %s documents, %s dead, %s postings', state, segments, small_segments,
                  dead_segments, documents, dead_documents, postings)
      FROM rag.lexical_status WHERE collection = 'lex' AND unit = 'chunk' $$;
SELECT pg_temp.state();
SELECT pg_temp.best('alpha beta');

-- What is deleted counts no more; nor does what is rolled back.
DELETE FROM rag.document WHERE uri IN ('doc9', 'doc8');
SELECT pg_temp.best('alpha beta');
SAVEPOINT b;
DELETE FROM rag.chunk c USING rag.document d WHERE d.id = c.document_id AND d.uri = 'doc7';
SELECT pg_temp.best('alpha beta');
SAVEPOINT a;
DELETE FROM rag.chunk c USING rag.document d WHERE d.id = c.document_id AND d.uri = 'doc6';
SELECT pg_temp.best('alpha beta');
ROLLBACK TO a;
SELECT pg_temp.best('alpha beta');
ROLLBACK TO b;
SELECT pg_temp.best('alpha beta');
SELECT pg_temp.state();

-- Merged, made anew, and read without it: the same.
SELECT rag.compact('lex') > 1 AS merged;
SELECT pg_temp.state();
COMMIT;
SELECT pg_temp.best('alpha beta');
SELECT rag.compact('lex');
SELECT rag.reindex_lexical('lex');
SELECT pg_temp.best('alpha beta');
INSERT INTO rag.lex_gap SELECT id FROM rag.collection WHERE name = 'lex';
SELECT pg_temp.state();
SELECT pg_temp.best('alpha beta');
SELECT * FROM rag.repair() WHERE object = 'lex';
SELECT pg_temp.state();
SELECT * FROM rag.repair() WHERE object = 'lex';

-- An entry is new when terms or label are, and only then, whatever is asked for.
BEGIN;
SELECT rag.compact('lex');
UPDATE rag.chunk SET line_start = 5 WHERE collection_id = (SELECT id FROM rag.collection WHERE name = 'lex');
SELECT pg_temp.state();
UPDATE rag.chunk c SET tsv = 'gamma:1', dl = 1 FROM rag.document d WHERE d.id = c.document_id AND d.uri = 'doc1'
   AND c.collection_id = (SELECT id FROM rag.collection WHERE name = 'lex');
SELECT pg_temp.best('gamma');
SELECT pg_temp.state();
UPDATE rag.chunk SET current = false WHERE collection_id = (SELECT id FROM rag.collection WHERE name = 'lex');
SELECT pg_temp.best('alpha');
SELECT pg_temp.state();
UPDATE rag.chunk SET current = true WHERE collection_id = (SELECT id FROM rag.collection WHERE name = 'lex');
SELECT pg_temp.best('alpha gamma');
UPDATE rag.chunk SET entry = entry + 1000000 WHERE collection_id = (SELECT id FROM rag.collection WHERE name = 'lex');
SELECT count(*), max(entry) < 1000000 AS kept FROM rag.chunk WHERE collection_id = (SELECT id FROM rag.collection WHERE name = 'lex');
CREATE TEMP TABLE kept AS SELECT c.* FROM rag.chunk c JOIN rag.document d ON d.id = c.document_id
    WHERE d.uri = 'doc3' AND c.collection_id = (SELECT id FROM rag.collection WHERE name = 'lex');
DELETE FROM rag.chunk c USING kept k WHERE c.id = k.id;
SELECT pg_temp.best('alpha gamma');
INSERT INTO rag.chunk SELECT * FROM kept;
SELECT pg_temp.state();
COMMIT;
SELECT pg_temp.best('alpha gamma');

-- Labels are places of their own, and moving between them moves the counts.
UPDATE rag.chunk c SET acl = 'secret' FROM rag.document d WHERE d.id = c.document_id AND d.uri = 'doc2'
   AND c.collection_id = (SELECT id FROM rag.collection WHERE name = 'lex');
SELECT s.acl, sum(CASE WHEN dead THEN -documents ELSE documents END) FROM rag.lex_segment s
  JOIN rag.collection c ON c.id = s.collection_id AND c.name = 'lex' WHERE s.unit = 'chunk' GROUP BY 1 ORDER BY 1;
SELECT pg_temp.best('alpha gamma');

-- Nobody is granted anything on the index, and its trigger serves no other table.
SELECT c.relname FROM pg_class c WHERE c.relnamespace = 'rag'::regnamespace AND c.relname LIKE 'lex%' AND c.relacl IS NOT NULL;
CREATE TABLE chunk (entry bigint);
CREATE TRIGGER mine AFTER INSERT ON chunk REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION rag.index_terms();
INSERT INTO chunk VALUES (1);
CREATE TRIGGER renew BEFORE UPDATE ON chunk FOR EACH ROW EXECUTE FUNCTION rag.renew_entry();
CREATE TRIGGER dropped AFTER DELETE ON chunk REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION rag.drop_segments();
DELETE FROM chunk;
CREATE TRIGGER single AFTER INSERT ON chunk FOR EACH ROW EXECUTE FUNCTION rag.index_terms();
DROP TRIGGER mine ON chunk;
INSERT INTO chunk VALUES (1);
DROP TRIGGER single ON chunk;
DROP TRIGGER dropped ON chunk;
INSERT INTO chunk VALUES (1);
UPDATE chunk SET entry = 2;
DROP TABLE chunk;
SELECT rag.compact('no such collection');
SELECT rag.lexical_state(0, 'page');
SELECT rag.reindex_lexical('no such collection');
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT rag.compact('lex');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT rag.reindex_lexical('lex');
ROLLBACK;

-- When nothing is left, nothing is kept.
DELETE FROM rag.document d USING rag.source s WHERE s.id = d.source_id AND s.collection_id = (SELECT id FROM rag.collection WHERE name = 'lex');
SELECT pg_temp.state();
SELECT rag.compact('lex') > 0 AS merged;
SELECT pg_temp.state();
SELECT rag.drop_source('inline/lex');
SELECT rag.drop_collection('lex');
SELECT count(*) FROM rag.lex_segment s WHERE NOT EXISTS (SELECT FROM rag.collection c WHERE c.id = s.collection_id);
