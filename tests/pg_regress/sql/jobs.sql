-- rag.enqueue_sync, rag.retry, rag.jobs, rag.failed_jobs
CREATE FUNCTION public.settled(wanted bigint) RETURNS text LANGUAGE plpgsql AS $$
DECLARE found text;
BEGIN
    FOR i IN 1..600 LOOP
        SELECT state INTO found FROM rag.job WHERE id = wanted;
        EXIT WHEN found IN ('done', 'dead');
        PERFORM pg_sleep(0.1);
    END LOOP;
    RETURN found;
END $$;
CREATE FUNCTION public.idle() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    FOR i IN 1..300 LOOP
        PERFORM pg_stat_clear_snapshot();
        EXIT WHEN NOT EXISTS (SELECT FROM pg_stat_activity WHERE backend_type = 'pg_rag job worker');
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$;
SELECT rag.add_source('docs', 'markdown', public.fixtures() || '/docs') > 0 AS added;
SELECT rag.enqueue_sync('docs') AS job \gset
SELECT public.settled(:job);
SELECT kind, source, state, attempts, requested_by = current_user AS mine, worker_pid, lease_until FROM rag.jobs WHERE id = :job;
-- its chunks get their vectors from a job of its own
SELECT public.settled(max(id)) FROM rag.job WHERE kind = 'embed';
SELECT status, new > 0 AS new, failed, pending, coverage FROM rag.status WHERE source = 'docs';
SELECT title FROM rag.search('a vessel in the port', 1, mode => 'dense');
-- the worker that ended well has let go of its turn
SELECT public.idle();
SELECT count(*) AS locks_left FROM pg_locks WHERE locktype = 'object' AND classid = 'rag.job'::regclass;
-- twice is once
BEGIN;
SELECT rag.enqueue_sync('docs') AS first \gset
SELECT rag.enqueue_sync('docs') = :first AS same;
ROLLBACK;
-- (as after NOTIFY, nobody would tell the launcher)
BEGIN;
SELECT rag.enqueue_sync('docs') > 0 AS queued;
PREPARE TRANSACTION 'queued';
-- what would stop the workers of a database cannot be written
\set VERBOSITY terse
INSERT INTO rag.job (kind, source_id, attempts) SELECT 'sync', id, 2147483647 FROM rag.source;
INSERT INTO rag.job (kind, source_id, max_attempts) SELECT 'sync', id, 100000 FROM rag.source;
INSERT INTO rag.job (kind, source_id, run_after) SELECT 'sync', id, 'infinity' FROM rag.source;
INSERT INTO rag.job (kind, source_id, state, lease_until) SELECT 'sync', id, 'running', now() FROM rag.source, generate_series(1, 2);
\set VERBOSITY default
-- a job without a source is in nobody's way
INSERT INTO rag.job (kind, source_id) VALUES ('sync', 0);
SELECT rag.enqueue_sync('docs') AS job \gset
SELECT public.settled(:job);
SELECT count(*) AS orphans FROM rag.job WHERE source_id = 0;
-- a job that fails is tried again, later each time
SELECT rag.add_source('nowhere', 'markdown', public.fixtures() || '/nowhere') > 0 AS added;
SELECT rag.enqueue_sync('nowhere') AS job \gset
UPDATE rag.job SET max_attempts = 2 WHERE id = :job;
SELECT public.settled(:job);
SELECT attempts, sqlstate, message LIKE '%nowhere%' AS names_it FROM rag.failed_jobs WHERE job_id = :job;
SELECT count(*) AS failures FROM rag.job_failure WHERE job_id = :job;
SELECT status, error IS NOT NULL AS says_why FROM rag.status WHERE source = 'nowhere';
SELECT rag.retry(:job);
SELECT state IN ('pending', 'running') AS again, attempts <= 1 AS anew FROM rag.job WHERE id = :job;
SELECT rag.retry(:job);
SELECT rag.retry(0);
SELECT rag.retry(NULL);
SELECT rag.enqueue_sync('nowher');
SELECT rag.enqueue_sync(NULL);
SELECT rag.alter_source('docs', enabled => false);
SELECT rag.enqueue_sync('docs');
SELECT chunks FROM rag.ingest('x', 'y', 'text');
SELECT rag.enqueue_sync('inline');
-- no worker stays where there is nothing to do
SELECT rag.drop_source(name) FROM rag.sources ORDER BY name;
SELECT count(*) FROM rag.job;
SELECT public.idle();
SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'pg_rag job worker';
DROP FUNCTION public.settled, public.idle;
