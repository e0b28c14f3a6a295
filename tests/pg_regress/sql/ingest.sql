-- rag.ingest
SELECT chunks, tokens > 0 AS counted FROM rag.ingest(E'# Title\n\nSome text.\n', 'one.md');
SELECT source, uri, title, media_type, current, chunks FROM rag.documents;
SELECT ordinal, content, heading_path, line_start, line_end, char_start, char_end, embedded FROM rag.chunks;
-- the same uri again replaces it; what stays the same keeps its id, key and vector
SELECT chunks FROM rag.ingest(E'# Title\n\nSome text.\n\n# Second\n\nMore text of the second part.\n', 'one.md');
CREATE TEMP TABLE before AS SELECT c.id, c.chunk_key, c.content, e.xmin AS vector
  FROM rag.chunk c JOIN rag.chunk_embedding e ON e.chunk_id = c.id;
SELECT chunks FROM rag.ingest(E'A new first line.\n\n# Second\n\nMore text of the second part.\n', 'one.md');
SELECT c.content, c.line_start, b.id IS NOT NULL AS same_row
  FROM rag.chunk c LEFT JOIN before b USING (id, chunk_key) ORDER BY ordinal;
-- a text that a collection has a vector of is not embedded again
SELECT chunks FROM rag.ingest('Twice.', 'a.txt', 'text');
SELECT chunks FROM rag.ingest('Twice.', 'b.txt', 'text');
SELECT count(*), count(DISTINCT e.text_sha256) AS texts FROM rag.chunk_embedding e JOIN rag.chunks c ON c.id = e.chunk_id
 WHERE c.content = 'Twice.';
-- bytes, metadata, repairs
SELECT chunks FROM rag.ingest('\x4142ff430044'::bytea, 'bytes.txt', 'text', '{"title": "Bytes", "team": "x"}');
SELECT title, metadata, repaired_bytes FROM rag.documents WHERE uri = 'bytes.txt';
SELECT content FROM rag.chunks WHERE uri = 'bytes.txt';
-- nothing in it
SELECT chunks, tokens FROM rag.ingest('', 'empty.md');
SELECT chunks, tokens FROM rag.ingest(E' \n\t\n', 'blank.txt', 'text');
-- already chunked
SELECT chunks FROM rag.ingest(repeat('word ', 150), 'whole.txt', 'text', options => '{"chunking": "none"}');
SELECT chunks > 1 AS cut_into_several FROM rag.ingest(repeat('word ', 1000), 'long.txt', 'text', options => '{"chunking": "none"}');
SELECT chunks FROM rag.ingest(repeat('word ', 1000), 'long.txt', 'text', options => '{"chunking": "none", "truncate": true}');
-- errors
SELECT * FROM rag.ingest('x', '');
SELECT * FROM rag.ingest('x', 'u', 'table');
SELECT * FROM rag.ingest('x', 'u', 'jsonl');
SELECT * FROM rag.ingest('x', 'u', collection => 'no');
SELECT * FROM rag.ingest('x', 'u', metadata => '[1]');
SELECT * FROM rag.ingest('x', 'u', options => '{"text_search_config": "simple"}');
SELECT * FROM rag.ingest('x', 'u', options => '{"glob": "*.md"}');
SELECT rag.add_source('x', 'markdown', '/srv') > 0 AS added;
CALL rag.sync('inline');
SELECT rag.alter_source('inline', location => '/srv');
SELECT rag.drop_source('x'), rag.drop_source('inline');
SELECT count(*) FROM rag.chunk;
SELECT count(*) FROM rag.chunk_embedding;
