-- The recipes of docs/security.md, row-level security, and callers with a search path of their own.
CREATE ROLE rag_test_reader;
GRANT USAGE ON SCHEMA rag TO rag_test_reader;
GRANT SELECT ON rag.chunk, rag.document, rag.source, rag.collection, rag.chunk_embedding, rag.model, rag.profile,
                rag.acl, rag.sources, rag.documents, rag.chunks, rag.profiles TO rag_test_reader;
GRANT EXECUTE ON FUNCTION rag.search, rag.search_many, rag.diff_profiles, rag.profile_settings, rag.export_profiles, rag.health, rag.rrf, rag.embed, rag.embed_query, rag.count_tokens TO rag_test_reader;
CREATE ROLE rag_test_ingester IN ROLE rag_test_reader;
GRANT INSERT, UPDATE, DELETE ON rag.source, rag.document, rag.chunk, rag.chunk_embedding TO rag_test_ingester;
GRANT SELECT, INSERT, UPDATE, DELETE ON rag.sync, rag.sync_item TO rag_test_ingester;
GRANT SELECT, INSERT, UPDATE ON rag.job TO rag_test_ingester;
GRANT SELECT ON rag.job_failure, rag.status, rag.jobs, rag.failed_jobs TO rag_test_ingester;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA rag TO rag_test_ingester;
GRANT EXECUTE ON FUNCTION rag.add_source, rag.alter_source, rag.drop_source, rag.sync_begin, rag.sync_list, rag.sync_batch,
                          rag.sync_fail, rag.enqueue_sync, rag.retry,
                          rag.ingest(text, text, text, jsonb, text, jsonb, text),
                          rag.ingest(bytea, text, text, jsonb, text, jsonb, text) TO rag_test_ingester;
GRANT EXECUTE ON PROCEDURE rag.sync TO rag_test_ingester;

SET ROLE rag_test_ingester;
SELECT chunks FROM rag.ingest('Red apples grow on this tree.', 'red.txt', 'text', '{"team": "red"}');
SELECT chunks FROM rag.ingest('Green apples grow on that tree.', 'green.txt', 'text', '{"team": "green"}');
SELECT rag.create_collection('mine');
SET ROLE rag_test_reader;
SELECT uri FROM rag.search('green apples') ORDER BY rank;
SELECT chunks FROM rag.ingest('x', 'y');
CALL rag.sync('inline');
RESET ROLE;

-- what a policy hides is neither found nor counted
CREATE POLICY red ON rag.document AS RESTRICTIVE USING (metadata->>'team' = 'red');
SET ROLE rag_test_reader;
SELECT uri FROM rag.search('green apples') ORDER BY rank;
-- one visible document: idf = ln(1 + 0.5 / 1.5), its length is the mean, tf is 1
SELECT round(bm25_score::numeric, 6) = round(ln(1 + 0.5 / 1.5)::numeric * 2.2 / 2.2, 6) AS counted_alone
  FROM rag.search('apples', mode => 'bm25');
RESET ROLE;
DROP POLICY red ON rag.document;

-- labels: seen by roles that have them and their members, by nobody else, wherever one looks
CREATE ROLE rag_test_legal IN ROLE rag_test_ingester;
CREATE ROLE rag_test_alice IN ROLE rag_test_legal;
INSERT INTO rag.acl VALUES ('rag_test_legal', 'legal'), ('rag_test_gone', 'legal');
SELECT public.fixtures() || '/docs' AS docs \gset
SET ROLE rag_test_legal;
SELECT chunks FROM rag.ingest('Golden apples are a secret.', 'gold.txt', 'text', acl => 'legal');
SELECT chunks FROM rag.ingest('Silver apples are one too.', 'silver.txt', 'text', acl => 'board');
SELECT rag.add_source('contracts', 'markdown', :'docs', acl => 'legal') > 0 AS added;
CALL rag.sync('contracts');
SET ROLE rag_test_alice;
SELECT uri FROM rag.search('golden apples', 1);
SELECT DISTINCT source FROM rag.search('ship', 50, mode => 'dense') ORDER BY 1;
SELECT role, label FROM rag.acl;
SET ROLE rag_test_ingester;
SELECT uri FROM rag.search('golden apples') ORDER BY rank;
SELECT count(*) FROM rag.search('ship bread water', 50);
SELECT name FROM rag.sources;
SELECT uri FROM rag.documents ORDER BY uri;
SELECT count(*) FROM rag.chunks WHERE source = 'contracts';
SELECT count(*) FROM rag.status WHERE source = 'contracts';
SELECT count(*) AS vectors FROM rag.chunk_embedding WHERE acl IS NOT NULL;
SELECT (SELECT count(*) FROM rag.sync) AS runs, (SELECT count(*) FROM rag.sync_item) AS items, (SELECT count(*) FROM rag.acl) AS labels;
SELECT rag.drop_source('contracts');
SELECT rag.alter_source('contracts', acl => '');
SELECT rag.enqueue_sync('contracts');
CALL rag.sync('contracts');
SELECT chunks FROM rag.ingest('Golden apples, stolen.', 'gold.txt', 'text');
INSERT INTO rag.job (kind, source_id, requested_by) SELECT 'sync', id, 'postgres' FROM rag.source WHERE name = 'inline';
-- nobody adds to what he does not see, nor drops it
RESET ROLE;
SELECT id AS hidden FROM rag.document WHERE acl = 'legal' ORDER BY id LIMIT 1 \gset
SET ROLE rag_test_ingester;
INSERT INTO rag.chunk (chunk_key, document_id, ordinal, content, content_sha256, token_count, tsv, dl, collection_id, source_id)
VALUES (gen_random_uuid(), :hidden, 0, 'forged', sha256('forged'), 1, 'forged', 1, 1, 1);
SELECT rag.drop_source('inline');
RESET ROLE;
SELECT uri, acl FROM rag.document WHERE acl IS NOT NULL AND uri = 'gold.txt';
-- a new version keeps the label unless told otherwise
SELECT chunks FROM rag.ingest('Golden apples are still a secret.', 'gold.txt', 'text');
SELECT d.acl, c.acl, e.acl FROM rag.document d JOIN rag.chunk c ON c.document_id = d.id
  JOIN rag.chunk_embedding e ON e.chunk_id = c.id WHERE d.uri = 'gold.txt';
SELECT chunks FROM rag.ingest('Golden apples are no secret.', 'gold.txt', 'text', acl => '');
SELECT d.acl IS NULL AND c.acl IS NULL AND e.acl IS NULL AS open FROM rag.document d JOIN rag.chunk c ON c.document_id = d.id
  JOIN rag.chunk_embedding e ON e.chunk_id = c.id WHERE d.uri = 'gold.txt';
-- old snapshots would leave behind what others have added meanwhile
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT rag.alter_source('contracts', acl => 'board');
ROLLBACK;
BEGIN ISOLATION LEVEL REPEATABLE READ;
SELECT rag.drop_source('contracts');
ROLLBACK;
BEGIN ISOLATION LEVEL SERIALIZABLE;
SELECT rag.drop_collection('default');
ROLLBACK;
TRUNCATE rag.source;
DELETE FROM rag.source WHERE name = 'contracts';
DELETE FROM rag.model WHERE id = 2;
-- a trigger of the extension is of no use on other tables
CREATE TABLE public.document (id bigint);
CREATE TRIGGER aimed AFTER DELETE ON public.document REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.cascade_delete();
DELETE FROM public.document;
DROP TABLE public.document;
SET ROLE rag_test_ingester;
-- a new label holds at once, for everything
RESET ROLE;
SELECT rag.alter_source('contracts', acl => 'board');
SELECT rag.alter_source('inline', acl => 'board');
SET ROLE rag_test_alice;
SELECT count(*) FROM rag.search('ship bread water', 50);
SELECT count(*) FROM rag.chunk_embedding WHERE acl = 'board';
RESET ROLE;
SELECT rag.alter_source('contracts', acl => '');
SET ROLE rag_test_reader;
SELECT count(*) > 0 AS visible FROM rag.search('ship bread water', 50, '{"source": "contracts"}');
RESET ROLE;
SELECT rag.drop_source('contracts') > 0 AS dropped;
DELETE FROM rag.acl;

-- operators and functions of somebody else are not taken for PostgreSQL's own
CREATE FUNCTION public.stolen() RETURNS text LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
CREATE FUNCTION public.unnest(bigint[]) RETURNS SETOF bigint LANGUAGE sql AS $$ SELECT public.stolen()::bigint $$;
CREATE FUNCTION public.unnest(text[]) RETURNS SETOF text LANGUAGE sql AS $$ SELECT public.stolen() $$;
CREATE FUNCTION public.cardinality(smallint[]) RETURNS integer LANGUAGE sql AS $$ SELECT public.stolen()::integer $$;
CREATE FUNCTION public.minus(integer, double precision) RETURNS double precision LANGUAGE sql AS $$ SELECT public.stolen()::float8 $$;
CREATE OPERATOR public.- (LEFTARG = integer, RIGHTARG = double precision, FUNCTION = public.minus);
CREATE FUNCTION public.same(text, text) RETURNS boolean LANGUAGE sql AS $$ SELECT public.stolen()::boolean $$;
CREATE OPERATOR public.= (LEFTARG = text, RIGHTARG = text, FUNCTION = public.same);
SELECT rag.create_collection('passing') > 0 AS created;
SET search_path = public, pg_catalog;
SELECT rag.drop_collection('passing');
SELECT uri FROM rag.search('green apples', 1, filter => '{"source": "inline"}');
SELECT chunks FROM rag.ingest('Blue apples do not exist.', 'blue.txt', 'text');
SELECT rag.add_source('docs', 'markdown', public.fixtures() || '/docs') > 0 AS added;
CALL rag.sync('docs');
SELECT engine_state FROM rag.health();
RESET search_path;
DROP OPERATOR public.= (text, text);
DROP OPERATOR public.- (integer, double precision);
DROP FUNCTION public.same, public.minus, public.cardinality(smallint[]), public.unnest(text[]), public.unnest(bigint[]), public.stolen;
SET search_path = '';
SELECT uri FROM rag.search('blue apples', 1);
RESET search_path;

-- nothing is left in the caller's transaction
BEGIN;
SELECT count(*) > 0 AS found FROM rag.search('apples');
SELECT coalesce(current_setting('hnsw.ef_search', true), '40') AS ef_search, current_setting('jit') AS jit, current_setting('search_path') AS path;
COMMIT;

-- a cancelled statement that the caller catches leaves the session whole
SET statement_timeout = '300ms';
DO $$
BEGIN
    BEGIN
        PERFORM chunks FROM generate_series(1, 5000) i, rag.ingest(repeat('apples and pears ', 200) || i, 'many/' || i, 'text');
    EXCEPTION WHEN query_canceled THEN
        RAISE NOTICE 'cancelled';
    END;
END $$;
RESET statement_timeout;
BEGIN;
SELECT 1 AS alive;
COMMIT;
SELECT uri FROM rag.search('blue apples', 1);

SELECT rag.drop_source(name) FROM rag.sources ORDER BY name;
DROP OWNED BY rag_test_ingester, rag_test_reader, rag_test_legal, rag_test_alice;
DROP ROLE rag_test_alice, rag_test_legal, rag_test_ingester, rag_test_reader;
