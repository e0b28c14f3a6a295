-- CALL rag.sync
SELECT rag.add_source('docs', 'markdown', public.fixtures() || '/docs', '{"chunk_tokens": 60}') > 0 AS added;
CALL rag.sync('docs');
SELECT uri, title, language, published_at AT TIME ZONE 'UTC' AS published, chunks FROM rag.documents ORDER BY uri;
SELECT uri, ordinal, heading_path, line_start, line_end, char_start, char_end FROM rag.chunks ORDER BY uri, ordinal;
-- the span of every chunk is its content in the file
SELECT count(*) FILTER (WHERE content = substr(pg_read_file(public.fixtures() || '/docs/' || uri),
                                               char_start::int + 1, (char_end - char_start)::int)) = count(*) AS exact
  FROM rag.chunks;
-- again: nothing is written
CREATE TEMP TABLE before AS SELECT id, xmin AS version FROM rag.chunk;
CALL rag.sync('docs');
SELECT count(*) = (SELECT count(*) FROM before) AS untouched FROM rag.chunk c JOIN before b ON b.id = c.id AND b.version = c.xmin;
SELECT source, status, new, modified, unchanged, deleted, failed, chunks > 0 AS chunks, pending, coverage FROM rag.status;
SELECT seen, total, documents, chunks > 0 AS chunks, symbols FROM rag.sync ORDER BY id DESC LIMIT 1;
-- other options: everything is read again
SELECT rag.alter_source('docs', options => '{"chunk_tokens": 120}');
CALL rag.sync('docs');
-- records
SELECT rag.add_source('records', 'jsonl', public.fixtures() || '/records.jsonl', '{"chunking": "none"}') > 0 AS added;
\set VERBOSITY terse
CALL rag.sync('records');
\set VERBOSITY default
SELECT uri, external_id, title, metadata FROM rag.documents WHERE source = 'records' ORDER BY uri;
SELECT uri, state, i.error FROM rag.sync_item i JOIN rag.sync y ON y.id = i.sync_id JOIN rag.source s ON s.id = y.source_id
 WHERE s.name = 'records' AND i.state = 'failed' ORDER BY i.ordinal;
-- errors
CALL rag.sync('doc');
SELECT rag.add_source('outside', 'markdown', '/etc') > 0 AS added;
CALL rag.sync('outside');
SELECT rag.add_source('missing', 'markdown', public.fixtures() || '/missing') > 0 AS added;
\set VERBOSITY sqlstate
CALL rag.sync('missing');
\set VERBOSITY default
-- why it failed is kept
SELECT source, status, error LIKE 'location "%/missing" does not exist' AS says_why FROM rag.status WHERE source = 'missing';
-- the steps must be taken in order
SELECT rag.sync_begin('docs') AS run \gset
SELECT 'sync N' AS listed_first WHERE NOT EXISTS (SELECT FROM rag.sync WHERE id = :run AND total IS NOT NULL);
\set VERBOSITY sqlstate
SELECT rag.sync_batch(:run);
\set VERBOSITY default
SELECT count(*) FROM rag.documents WHERE source = 'docs';
BEGIN;
CALL rag.sync('docs');
ROLLBACK;
SELECT rag.sync_batch(123456789);
SELECT rag.drop_source(name) FROM rag.sources WHERE name IN ('outside', 'missing') ORDER BY name;
SELECT name, documents FROM rag.sources ORDER BY name;
SELECT rag.drop_source(name) FROM rag.sources ORDER BY name;
