-- SPDX-License-Identifier: PostgreSQL
-- From 0.1.0 to 0.2.0: labels with row-level security, durable jobs, repair.
-- The changed functions are dropped and made again, so rights granted on them must be granted again.

-- Text travels as UTF-8 between server, engine and files; in another encoding it would be stored as what it is not.
DO $$
DECLARE
    found text := (SELECT pg_catalog.pg_encoding_to_char(d.encoding) FROM pg_catalog.pg_database d
                    WHERE d.datname = pg_catalog.current_database());
BEGIN
    IF found <> 'UTF8' THEN
        RAISE EXCEPTION USING ERRCODE = 'feature_not_supported',
            MESSAGE = pg_catalog.format('database "%s" has encoding "%s", and pg_rag needs UTF8', pg_catalog.current_database(), found),
            HINT = 'CREATE DATABASE ... ENCODING ''UTF8'' TEMPLATE template0;';
    END IF;
END
$$;

ALTER TABLE rag.source ADD COLUMN acl text CONSTRAINT source_acl_check CHECK (acl <> '');
ALTER TABLE rag.document ADD COLUMN acl text CONSTRAINT document_acl_check CHECK (acl <> '');
ALTER TABLE rag.chunk ADD COLUMN acl text CONSTRAINT chunk_acl_check CHECK (acl <> '');
ALTER TABLE rag.chunk_embedding ADD COLUMN acl text CONSTRAINT chunk_embedding_acl_check CHECK (acl <> '');
COMMENT ON COLUMN rag.source.acl IS 'label that a role needs in rag.acl to see it; null: no label needed';
COMMENT ON COLUMN rag.document.acl IS 'label needed to see it, copied from the source or given to rag.ingest';
COMMENT ON COLUMN rag.chunk.acl IS 'label needed to see it, copied from the document';
COMMENT ON COLUMN rag.chunk_embedding.acl IS 'label needed to see it, copied from the chunk';

-- The configuration that a document was read by; until now that of its source.
ALTER TABLE rag.document ADD COLUMN text_search_config text;
UPDATE rag.document d SET text_search_config = s.text_search_config FROM rag.source s WHERE s.id = d.source_id;
-- By an expression, lest it be taken for a way to a document of a source.
CREATE INDEX document_text_search_config ON rag.document ((source_id + 0), text_search_config) WHERE current;
COMMENT ON COLUMN rag.source.text_search_config IS 'schema-qualified text search configuration of the BM25 leg, or auto: that of each document''s language';
COMMENT ON COLUMN rag.document.text_search_config IS 'schema-qualified text search configuration that its chunks were read by; null: that of its source';

-- What a sync saw and what the source had after it.
ALTER TABLE rag.sync ADD COLUMN seen bigint, ADD COLUMN documents bigint, ADD COLUMN chunks bigint, ADD COLUMN symbols bigint;
COMMENT ON COLUMN rag.sync.seen IS 'files, members of archives or records that were looked at, documents or not; null until all are listed';
COMMENT ON COLUMN rag.sync.total IS 'documents of the source, those of a supported format; null until all are listed';
COMMENT ON COLUMN rag.sync.documents IS 'documents that the source had at the end; null until then';
COMMENT ON COLUMN rag.sync.chunks IS 'chunks that they had';
COMMENT ON COLUMN rag.sync.symbols IS 'symbols of code that they had, each counted once however many chunks it has';

-- More kinds of sources.
ALTER TABLE rag.source DROP CONSTRAINT source_kind_check;
ALTER TABLE rag.source ADD CONSTRAINT source_kind_check CHECK (kind IN ('text', 'markdown', 'code', 'config', 'pdf', 'html', 'article', 'docx', 'epub', 'zip', 'git', 'forum', 'issues',
        'blog', 'transcript', 'jsonl', 'inline'));

-- References are kept by triggers from now on: a parallel restore loads tables in no order.
ALTER TABLE rag.collection DROP CONSTRAINT collection_model_id_fkey;
ALTER TABLE rag.source DROP CONSTRAINT source_collection_id_fkey;
ALTER TABLE rag.sync DROP CONSTRAINT sync_source_id_fkey;
ALTER TABLE rag.sync_item DROP CONSTRAINT sync_item_sync_id_fkey;
ALTER TABLE rag.document DROP CONSTRAINT document_source_id_fkey;
ALTER TABLE rag.chunk DROP CONSTRAINT chunk_document_id_fkey, DROP CONSTRAINT chunk_parent_id_fkey;
ALTER TABLE rag.chunk_embedding DROP CONSTRAINT chunk_embedding_model_id_fkey,
    DROP CONSTRAINT chunk_embedding_chunk_id_fkey;
ALTER TABLE rag.job DROP CONSTRAINT job_source_id_fkey;

-- Nothing was queued before 0.2.0.
ALTER TABLE rag.job RENAME CONSTRAINT job_check TO job_lease_check;
ALTER TABLE rag.job
    DROP COLUMN payload,
    ADD COLUMN max_attempts integer NOT NULL DEFAULT 5
        CONSTRAINT job_max_attempts_check CHECK (max_attempts BETWEEN 1 AND 1000),
    DROP CONSTRAINT job_attempts_check,
    ADD CONSTRAINT job_attempts_check CHECK (attempts BETWEEN 0 AND 1000),
    ADD CONSTRAINT job_run_after_check CHECK (pg_catalog.isfinite(run_after)),
    ADD COLUMN worker_pid integer,
    ADD COLUMN requested_by text NOT NULL DEFAULT current_user,
    ADD COLUMN finished_at timestamptz,
    ADD COLUMN progress bigint,
    ADD CONSTRAINT job_finished_check CHECK ((state IN ('done', 'dead')) = (finished_at IS NOT NULL));
CREATE UNIQUE INDEX job_waiting ON rag.job (kind, source_id) WHERE state = 'pending';
CREATE UNIQUE INDEX job_running ON rag.job (kind, source_id) WHERE state = 'running';
COMMENT ON TABLE rag.job IS 'durable queue of background work';
COMMENT ON COLUMN rag.job.id IS 'key';
COMMENT ON COLUMN rag.job.kind IS 'sync: as CALL rag.sync; embed: vectors for chunks that have none';
COMMENT ON COLUMN rag.job.source_id IS 'source it works on';
COMMENT ON COLUMN rag.job.state IS 'pending, running (under a lease), done or dead (out of attempts)';
COMMENT ON COLUMN rag.job.attempts IS 'times it was tried';
COMMENT ON COLUMN rag.job.max_attempts IS 'times it may be tried before it is dead';
COMMENT ON COLUMN rag.job.run_after IS 'not before this time';
COMMENT ON COLUMN rag.job.lease_until IS 'when another worker may take it over; renewed after each batch';
COMMENT ON COLUMN rag.job.worker_pid IS 'process id of the worker that runs it';
COMMENT ON COLUMN rag.job.requested_by IS 'role that queued it; it runs with this role''s rights';
COMMENT ON COLUMN rag.job.created_at IS 'when it was queued';
COMMENT ON COLUMN rag.job.finished_at IS 'when it was done or given up';
COMMENT ON COLUMN rag.job.progress IS 'documents (sync) or chunks (embed) settled so far by the current attempt';

CREATE TABLE rag.job_failure (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    job_id bigint NOT NULL,
    attempt integer NOT NULL,
    failed_at timestamptz NOT NULL DEFAULT pg_catalog.clock_timestamp(),
    sqlstate text NOT NULL,
    message text NOT NULL,
    detail text,
    hint text
);
CREATE INDEX job_failure_job ON rag.job_failure (job_id, id);
COMMENT ON TABLE rag.job_failure IS 'why attempts of jobs failed, one row each';
COMMENT ON COLUMN rag.job_failure.id IS 'key';
COMMENT ON COLUMN rag.job_failure.job_id IS 'the job';
COMMENT ON COLUMN rag.job_failure.attempt IS 'which attempt, from 1';
COMMENT ON COLUMN rag.job_failure.failed_at IS 'when it failed';
COMMENT ON COLUMN rag.job_failure.sqlstate IS 'SQLSTATE of the error';
COMMENT ON COLUMN rag.job_failure.message IS 'message of the error';
COMMENT ON COLUMN rag.job_failure.detail IS 'detail of the error';
COMMENT ON COLUMN rag.job_failure.hint IS 'hint of the error';

CREATE TABLE rag.acl (
    role text NOT NULL,
    label text NOT NULL CONSTRAINT acl_label_check CHECK (label <> ''),
    PRIMARY KEY (role, label)
);
COMMENT ON TABLE rag.acl IS 'which roles, and members of which roles, see what is labelled; read by the row-level security policies';
COMMENT ON COLUMN rag.acl.role IS 'name of a role';
COMMENT ON COLUMN rag.acl.label IS 'label of sources, documents and chunks it may see';

CREATE FUNCTION rag.cascade_delete() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    -- Whoever may call functions of the extension must not aim this one by a table of his own.
    IF TG_TABLE_SCHEMA <> 'rag' THEN
        RAISE insufficient_privilege USING MESSAGE = 'this trigger belongs to the tables of pg_rag';
    END IF;
    CASE TG_TABLE_NAME
        WHEN 'source' THEN
            DELETE FROM rag.sync t USING gone g WHERE t.source_id = g.id;
            DELETE FROM rag.job t USING gone g WHERE t.source_id = g.id;
        WHEN 'sync' THEN
            DELETE FROM rag.sync_item t USING gone g WHERE t.sync_id = g.id;
        WHEN 'document' THEN
            DELETE FROM rag.chunk t USING gone g WHERE t.document_id = g.id;
        WHEN 'chunk' THEN
            DELETE FROM rag.chunk_embedding t USING gone g WHERE t.chunk_id = g.id;
        WHEN 'job' THEN
            DELETE FROM rag.job_failure t USING gone g WHERE t.job_id = g.id;
        WHEN 'question_set' THEN
            DELETE FROM rag.run t USING gone g WHERE t.set_id = g.id;
            DELETE FROM rag.question t USING gone g WHERE t.set_id = g.id;
        WHEN 'question' THEN
            DELETE FROM rag.gold t USING gone g WHERE t.question_id = g.id;
        WHEN 'run' THEN
            DELETE FROM rag.run_question t USING gone g WHERE t.run_id = g.id;
            DELETE FROM rag.run_list t USING gone g WHERE t.run_id = g.id;
            DELETE FROM rag.run_metric t USING gone g WHERE t.run_id = g.id;
    END CASE;
    RETURN NULL;
END
$function$;
COMMENT ON FUNCTION rag.cascade_delete() IS 'trigger: deletes what belongs to deleted rows';

CREATE TRIGGER cascade_delete AFTER DELETE ON rag.source REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.cascade_delete();
CREATE TRIGGER cascade_delete AFTER DELETE ON rag.sync REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.cascade_delete();
CREATE TRIGGER cascade_delete AFTER DELETE ON rag.document REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.cascade_delete();
CREATE TRIGGER cascade_delete AFTER DELETE ON rag.chunk REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.cascade_delete();
CREATE TRIGGER cascade_delete AFTER DELETE ON rag.job REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.cascade_delete();

CREATE FUNCTION rag.refuse_delete() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $function$
DECLARE
    used boolean;
BEGIN
    IF TG_OP = 'TRUNCATE' THEN
        RAISE foreign_key_violation USING MESSAGE = format('table rag.%I cannot be truncated', TG_TABLE_NAME),
            HINT = CASE TG_TABLE_NAME WHEN 'run' THEN 'Delete runs with rag.drop_run.'
                        WHEN 'question' THEN 'Drop question sets with rag.drop_question_set.'
                        WHEN 'question_set' THEN 'Drop question sets with rag.drop_question_set.'
                        ELSE 'Drop sources with rag.drop_source.' END;
    END IF;
    CASE TG_TABLE_NAME
        WHEN 'source' THEN
            -- Also those that the caller may not see: they are not his to delete.
            used := EXISTS (SELECT FROM rag.document d WHERE d.source_id = OLD.id);
        WHEN 'collection' THEN
            used := EXISTS (SELECT FROM rag.source s WHERE s.collection_id = OLD.id)
                    OR EXISTS (SELECT FROM rag.question_set q WHERE q.collection_id = OLD.id);
        WHEN 'question' THEN
            -- Its values are part of the means of runs.
            used := EXISTS (SELECT FROM rag.question_set q JOIN rag.run r ON r.set_id = q.id WHERE q.id = OLD.set_id);
        WHEN 'model' THEN
            used := EXISTS (SELECT FROM rag.collection c WHERE c.model_id = OLD.id)
                    OR EXISTS (SELECT FROM rag.chunk_embedding e WHERE e.model_id = OLD.id);
    END CASE;
    IF used THEN
        RAISE foreign_key_violation USING MESSAGE = format('%s "%s" is in use', TG_TABLE_NAME,
            coalesce(to_jsonb(OLD) ->> 'name', to_jsonb(OLD) ->> 'key'));
    END IF;
    RETURN OLD;
END
$function$;
COMMENT ON FUNCTION rag.refuse_delete() IS 'trigger: refuses to delete rows that others refer to';

CREATE TRIGGER refuse_delete BEFORE DELETE ON rag.source FOR EACH ROW EXECUTE FUNCTION rag.refuse_delete();
CREATE TRIGGER refuse_delete BEFORE DELETE ON rag.collection FOR EACH ROW EXECUTE FUNCTION rag.refuse_delete();
CREATE TRIGGER refuse_delete BEFORE DELETE ON rag.model FOR EACH ROW EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER cascade_delete ON rag.source IS 'deletes runs and jobs with it';
COMMENT ON TRIGGER refuse_delete ON rag.source IS 'a source with documents stays';
COMMENT ON TRIGGER cascade_delete ON rag.sync IS 'deletes its manifest with it';
COMMENT ON TRIGGER cascade_delete ON rag.document IS 'deletes its chunks with it';
COMMENT ON TRIGGER cascade_delete ON rag.chunk IS 'deletes its vectors with it';
COMMENT ON TRIGGER cascade_delete ON rag.job IS 'deletes its failures with it';
COMMENT ON TRIGGER refuse_delete ON rag.collection IS 'a collection with sources stays';
COMMENT ON TRIGGER refuse_delete ON rag.model IS 'a model of a collection stays';
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON rag.collection FOR EACH STATEMENT EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER refuse_truncate ON rag.collection IS 'rows that others refer to are not truncated';
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON rag.model FOR EACH STATEMENT EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER refuse_truncate ON rag.model IS 'rows that others refer to are not truncated';
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON rag.source FOR EACH STATEMENT EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER refuse_truncate ON rag.source IS 'rows that others refer to are not truncated';
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON rag.sync FOR EACH STATEMENT EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER refuse_truncate ON rag.sync IS 'rows that others refer to are not truncated';
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON rag.document FOR EACH STATEMENT EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER refuse_truncate ON rag.document IS 'rows that others refer to are not truncated';
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON rag.chunk FOR EACH STATEMENT EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER refuse_truncate ON rag.chunk IS 'rows that others refer to are not truncated';
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON rag.job FOR EACH STATEMENT EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER refuse_truncate ON rag.job IS 'rows that others refer to are not truncated';

CREATE SEQUENCE rag.chunk_entry_seq;
ALTER TABLE rag.chunk ADD COLUMN entry bigint NOT NULL DEFAULT nextval('rag.chunk_entry_seq');
-- No default: a trigger gives each row an entry of its own, whatever is asked for.
ALTER TABLE rag.chunk ALTER COLUMN entry DROP DEFAULT;
ALTER SEQUENCE rag.chunk_entry_seq OWNED BY rag.chunk.entry;
CREATE UNIQUE INDEX chunk_entry ON rag.chunk (entry);
COMMENT ON COLUMN rag.chunk.entry IS 'its number in the BM25 index; another one when its terms or its label change';

-- The index of the BM25 leg: segments of posting lists in ordinary rows, written by triggers in the transaction of what they
-- index. Nobody is granted anything on these tables: the leg reads them itself, after it has asked what the caller may see.
-- A dump leaves them out, because loading the rows of rag.chunk writes them anew.

CREATE TABLE rag.lex_segment (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id bigint NOT NULL,
    unit text NOT NULL CONSTRAINT lex_segment_unit_check CHECK (unit IN ('chunk', 'document')),
    acl text,
    dead boolean NOT NULL,
    documents bigint NOT NULL,
    total_dl bigint NOT NULL,
    postings bigint NOT NULL,
    terms bigint NOT NULL,
    bytes bigint NOT NULL,
    ids bytea NOT NULL,
    keys bytea,
    shelf bytea
);
CREATE INDEX lex_segment_population ON rag.lex_segment (collection_id, unit);
COMMENT ON TABLE rag.lex_segment IS 'segments of the BM25 index; a segment never changes, and a deletion is one too';
COMMENT ON COLUMN rag.lex_segment.id IS 'key';
COMMENT ON COLUMN rag.lex_segment.collection_id IS 'collection of its documents';
COMMENT ON COLUMN rag.lex_segment.unit IS 'what its documents are: chunk or document';
COMMENT ON COLUMN rag.lex_segment.acl IS 'their label';
COMMENT ON COLUMN rag.lex_segment.dead IS 'whether they were deleted from other segments';
COMMENT ON COLUMN rag.lex_segment.documents IS 'number of its documents, or of pieces of documents';
COMMENT ON COLUMN rag.lex_segment.total_dl IS 'sum of their lengths in lexemes';
COMMENT ON COLUMN rag.lex_segment.postings IS 'number of its postings';
COMMENT ON COLUMN rag.lex_segment.terms IS 'number of its distinct terms';
COMMENT ON COLUMN rag.lex_segment.bytes IS 'bytes of its terms and lists';
COMMENT ON COLUMN rag.lex_segment.ids IS 'their entries or, of documents, their keys, packed';
COMMENT ON COLUMN rag.lex_segment.keys IS 'their keys, packed; null where they are their entries';
COMMENT ON COLUMN rag.lex_segment.shelf IS 'all of its terms with their lists, if that is little; else they are in rag.lex_shelf';

CREATE TABLE rag.lex_shelf (
    segment_id bigint NOT NULL,
    term text COLLATE "C" NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (segment_id, term)
);
COMMENT ON TABLE rag.lex_shelf IS 'terms of segments with their lists, many to a row';
COMMENT ON COLUMN rag.lex_shelf.segment_id IS 'the segment';
COMMENT ON COLUMN rag.lex_shelf.term IS 'first term of the row';
COMMENT ON COLUMN rag.lex_shelf.payload IS 'the terms, packed';

CREATE TABLE rag.lex_page (
    segment_id bigint NOT NULL,
    list integer NOT NULL,
    part integer NOT NULL,
    payload bytea NOT NULL,
    PRIMARY KEY (segment_id, list, part)
);
COMMENT ON TABLE rag.lex_page IS 'long posting lists of segments';
COMMENT ON COLUMN rag.lex_page.segment_id IS 'the segment';
COMMENT ON COLUMN rag.lex_page.list IS 'number of the list, which its term states';
COMMENT ON COLUMN rag.lex_page.part IS 'place in the list: its directory first, then its pages';
COMMENT ON COLUMN rag.lex_page.payload IS 'postings, packed';

-- What is packed does not compress, and a page that fits a row is read with it.
ALTER TABLE rag.lex_segment ALTER COLUMN ids SET STORAGE EXTERNAL, ALTER COLUMN keys SET STORAGE EXTERNAL, ALTER COLUMN shelf SET STORAGE EXTERNAL;
ALTER TABLE rag.lex_shelf ALTER COLUMN payload SET STORAGE PLAIN;
ALTER TABLE rag.lex_page ALTER COLUMN payload SET STORAGE PLAIN;
-- Segments come and go as a whole; what they leave behind slows the scan for the living.
ALTER TABLE rag.lex_segment SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200,
    autovacuum_vacuum_insert_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE TABLE rag.lex_gap (
    collection_id bigint PRIMARY KEY
);
COMMENT ON TABLE rag.lex_gap IS 'collections whose index is not there: their BM25 leg reads every match until rag.reindex_lexical has run';
COMMENT ON COLUMN rag.lex_gap.collection_id IS 'the collection';

-- Whoever grants all tables to somebody must not hand out the words of all labels: only the owner sees rows.
ALTER TABLE rag.lex_segment ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.lex_shelf ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.lex_page ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.lex_gap ENABLE ROW LEVEL SECURITY;

-- A passage is known to the index by an entry, which is new whenever what the index says about it is. Nobody else says what
-- it is: a row that is put back, copied or replicated has another one than whatever had it before.
CREATE FUNCTION rag.renew_entry() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS $function$
BEGIN
    -- Whoever may call functions of the extension must not aim this one by a table of his own.
    IF TG_TABLE_SCHEMA <> 'rag' THEN
        RAISE insufficient_privilege USING MESSAGE = 'this trigger belongs to the tables of pg_rag';
    END IF;
    IF TG_OP = 'UPDATE' AND OLD.tsv IS NOT DISTINCT FROM NEW.tsv AND OLD.dl = NEW.dl AND OLD.current = NEW.current
       AND OLD.acl IS NOT DISTINCT FROM NEW.acl AND OLD.collection_id = NEW.collection_id
       AND OLD.document_id = NEW.document_id AND OLD.id = NEW.id THEN
        NEW.entry := OLD.entry;
    ELSE
        NEW.entry := nextval('rag.chunk_entry_seq');
    END IF;
    RETURN NEW;
END
$function$;
COMMENT ON FUNCTION rag.renew_entry() IS 'trigger: gives a row that is new, or whose terms or label change, an entry in the index that no row had';

CREATE FUNCTION rag.index_terms() RETURNS trigger
LANGUAGE c SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'index_terms_wrapper';
COMMENT ON FUNCTION rag.index_terms() IS 'trigger: writes what a statement, or the worker of a subscription, added and deleted as segments of the BM25 index';

CREATE TRIGGER new_entry BEFORE INSERT ON rag.chunk FOR EACH ROW EXECUTE FUNCTION rag.renew_entry();
CREATE TRIGGER renew_entry BEFORE UPDATE ON rag.chunk FOR EACH ROW
    WHEN (old.entry <> new.entry OR old.tsv IS DISTINCT FROM new.tsv OR old.dl <> new.dl OR old.current <> new.current
          OR old.acl IS DISTINCT FROM new.acl OR old.collection_id <> new.collection_id
          OR old.document_id <> new.document_id OR old.id <> new.id)
    EXECUTE FUNCTION rag.renew_entry();
CREATE TRIGGER index_inserted AFTER INSERT ON rag.chunk REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION rag.index_terms();
CREATE TRIGGER index_updated AFTER UPDATE ON rag.chunk REFERENCING OLD TABLE AS gone NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION rag.index_terms();
CREATE TRIGGER index_deleted AFTER DELETE ON rag.chunk REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.index_terms();
-- The worker of a subscription has no statements, so no triggers of statements: its rows come one by one.
CREATE TRIGGER index_inserted_row AFTER INSERT ON rag.chunk REFERENCING NEW TABLE AS added
    FOR EACH ROW EXECUTE FUNCTION rag.index_terms();
CREATE TRIGGER index_updated_row AFTER UPDATE ON rag.chunk REFERENCING OLD TABLE AS gone NEW TABLE AS added
    FOR EACH ROW EXECUTE FUNCTION rag.index_terms();
CREATE TRIGGER index_deleted_row AFTER DELETE ON rag.chunk REFERENCING OLD TABLE AS gone
    FOR EACH ROW EXECUTE FUNCTION rag.index_terms();
-- Also for whoever switches triggers off by session_replication_role, or only for him. rag.repair brings this about again
-- after pg_restore --disable-triggers.
ALTER TABLE rag.chunk ENABLE ALWAYS TRIGGER new_entry, ENABLE ALWAYS TRIGGER renew_entry,
    ENABLE ALWAYS TRIGGER index_inserted, ENABLE ALWAYS TRIGGER index_updated, ENABLE ALWAYS TRIGGER index_deleted,
    ENABLE REPLICA TRIGGER index_inserted_row, ENABLE REPLICA TRIGGER index_updated_row,
    ENABLE REPLICA TRIGGER index_deleted_row;
COMMENT ON TRIGGER new_entry ON rag.chunk IS 'an entry of its own for each row';
COMMENT ON TRIGGER renew_entry ON rag.chunk IS 'another entry for other terms';
COMMENT ON TRIGGER index_inserted_row ON rag.chunk IS 'indexes what a subscription adds';
COMMENT ON TRIGGER index_updated_row ON rag.chunk IS 'indexes what a subscription changes';
COMMENT ON TRIGGER index_deleted_row ON rag.chunk IS 'takes what a subscription deletes out of the index';
COMMENT ON TRIGGER index_inserted ON rag.chunk IS 'indexes what is added';
COMMENT ON TRIGGER index_updated ON rag.chunk IS 'indexes what is changed';
COMMENT ON TRIGGER index_deleted ON rag.chunk IS 'takes what is deleted out of the index';

CREATE FUNCTION rag.drop_segments() RETURNS trigger
LANGUAGE c SECURITY DEFINER SET search_path = pg_catalog, pg_temp
AS 'MODULE_PATHNAME', 'drop_segments_wrapper';
COMMENT ON FUNCTION rag.drop_segments() IS 'trigger: deletes the BM25 index of deleted collections, after a merge of it has ended';
CREATE TRIGGER drop_segments AFTER DELETE ON rag.collection REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.drop_segments();
COMMENT ON TRIGGER drop_segments ON rag.collection IS 'deletes what is left of its BM25 index with it';

CREATE FUNCTION rag.lexical_state(collection_id bigint, unit text) RETURNS text
STABLE STRICT PARALLEL RESTRICTED LANGUAGE c
AS 'MODULE_PATHNAME', 'lexical_state_wrapper';
COMMENT ON FUNCTION rag.lexical_state(bigint, text) IS
    'whether the BM25 leg uses the index of a collection, of a unit (chunk or document), for what the caller sees: ready; missing, until rag.reindex_lexical or rag.repair has run; unused, where policies of the administrator''s own decide what is seen, or nothing may be read';

-- Passages that are there already are not in the index.
INSERT INTO rag.lex_gap SELECT c.id FROM rag.collection c
 WHERE EXISTS (SELECT FROM rag.chunk k WHERE k.collection_id = c.id);

SELECT pg_catalog.pg_extension_config_dump('rag.chunk_entry_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.job_failure', '');
SELECT pg_catalog.pg_extension_config_dump('rag.acl', '');
SELECT pg_catalog.pg_extension_config_dump('rag.job_failure_id_seq', '');

ALTER TABLE rag.acl ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.source ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.document ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.chunk ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.chunk_embedding ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.sync ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.sync_item ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.job ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.job_failure ENABLE ROW LEVEL SECURITY;

-- Evaluation: questions with their gold, and runs with all that was measured. Gold names a place in a document and not a chunk;
-- it is looked up anew by each run, which keeps what it found. Ranked lists are kept as arrays, one row for each question
-- and stage; rag.run_result shows them as rows.

CREATE TABLE rag.question_set (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (pg_catalog.octet_length(name) BETWEEN 1 AND 500),
    collection_id bigint NOT NULL,
    description text,
    created_at timestamptz NOT NULL DEFAULT pg_catalog.now(),
    acl text CONSTRAINT question_set_acl_check CHECK (acl <> '')
);
COMMENT ON TABLE rag.question_set IS 'sets of questions whose answers are known';
COMMENT ON COLUMN rag.question_set.id IS 'key';
COMMENT ON COLUMN rag.question_set.name IS 'name used in SQL';
COMMENT ON COLUMN rag.question_set.collection_id IS 'collection that is asked';
COMMENT ON COLUMN rag.question_set.description IS 'what it is for';
COMMENT ON COLUMN rag.question_set.created_at IS 'when it was created';
COMMENT ON COLUMN rag.question_set.acl IS 'label that a role needs in rag.acl to see it and its runs; null: no label needed';

CREATE TABLE rag.question (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    set_id bigint NOT NULL,
    key text NOT NULL CHECK (key <> ''),
    ordinal integer NOT NULL CHECK (ordinal > 0),
    text text NOT NULL CHECK (text <> ''),
    strata text[] NOT NULL DEFAULT '{}' CONSTRAINT question_strata_check CHECK (
        pg_catalog.array_position(strata, NULL) IS NULL AND '' <> ALL (strata) AND pg_catalog.array_ndims(strata) IS NOT DISTINCT FROM
        CASE WHEN pg_catalog.cardinality(strata) > 0 THEN 1 END),
    cluster text,
    answerable boolean NOT NULL DEFAULT true,
    filter jsonb NOT NULL DEFAULT '{}',
    metadata jsonb NOT NULL DEFAULT '{}'
);
CREATE UNIQUE INDEX question_key ON rag.question (set_id, key);
COMMENT ON TABLE rag.question IS 'questions of a set';
COMMENT ON COLUMN rag.question.id IS 'key';
COMMENT ON COLUMN rag.question.set_id IS 'set it belongs to';
COMMENT ON COLUMN rag.question.key IS 'its name in the set';
COMMENT ON COLUMN rag.question.ordinal IS 'its place in the set, from 1';
COMMENT ON COLUMN rag.question.text IS 'what is asked';
COMMENT ON COLUMN rag.question.strata IS 'groups that it is reported in';
COMMENT ON COLUMN rag.question.cluster IS 'questions with the same one are about one thing and are drawn together; null: alone';
COMMENT ON COLUMN rag.question.answerable IS 'whether the collection has an answer';
COMMENT ON COLUMN rag.question.filter IS 'filter of its search';
COMMENT ON COLUMN rag.question.metadata IS 'what else was said of it';

CREATE TABLE rag.gold (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    question_id bigint NOT NULL,
    ordinal integer NOT NULL CHECK (ordinal > 0),
    source text,
    uri text,
    external_id text,
    line_start integer,
    line_end integer,
    page_start integer,
    page_end integer,
    char_start bigint,
    char_end bigint,
    quote text,
    grade integer NOT NULL DEFAULT 1,
    note text,
    CONSTRAINT gold_document_check CHECK (pg_catalog.num_nonnulls(uri, external_id) = 1),
    CONSTRAINT gold_places_check CHECK (line_start > 0 AND line_end >= line_start AND page_start > 0 AND page_end >= page_start
        AND char_start >= 0 AND char_end > char_start),
    CONSTRAINT gold_span_check CHECK (pg_catalog.num_nonnulls(line_start, page_start, char_start, quote) <= 1
        AND (line_start IS NULL) = (line_end IS NULL) AND (page_start IS NULL) = (page_end IS NULL)
        AND (char_start IS NULL) = (char_end IS NULL))
);
CREATE UNIQUE INDEX gold_question ON rag.gold (question_id, ordinal);
COMMENT ON TABLE rag.gold IS 'judged places: evidence for a question, and what only looks like it';
COMMENT ON COLUMN rag.gold.id IS 'key';
COMMENT ON COLUMN rag.gold.question_id IS 'the question';
COMMENT ON COLUMN rag.gold.ordinal IS 'its place among those of the question, from 1';
COMMENT ON COLUMN rag.gold.source IS 'name of the source; null: any of the collection';
COMMENT ON COLUMN rag.gold.uri IS 'URI of the document';
COMMENT ON COLUMN rag.gold.external_id IS 'the source''s own key of the document';
COMMENT ON COLUMN rag.gold.line_start IS 'first line, from 1; without any place the whole document is meant';
COMMENT ON COLUMN rag.gold.line_end IS 'last line';
COMMENT ON COLUMN rag.gold.page_start IS 'first page, from 1';
COMMENT ON COLUMN rag.gold.page_end IS 'last page';
COMMENT ON COLUMN rag.gold.char_start IS 'first character of the stored text, from 0';
COMMENT ON COLUMN rag.gold.char_end IS 'one past the last character';
COMMENT ON COLUMN rag.gold.quote IS 'words that stand there, once in the document; white space is compared loosely';
COMMENT ON COLUMN rag.gold.grade IS 'how relevant, from 1; 0 and below: judged and not relevant';
COMMENT ON COLUMN rag.gold.note IS 'why, for people';

CREATE TABLE rag.run (
    id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY,
    set_id bigint NOT NULL,
    name text,
    profile text NOT NULL,
    settings jsonb NOT NULL,
    top_k integer NOT NULL CHECK (top_k > 0),
    questions integer NOT NULL CHECK (questions >= 0),
    unanswerable integer NOT NULL CHECK (unanswerable >= 0),
    questions_sha256 bytea NOT NULL,
    gold_sha256 bytea NOT NULL,
    index_state jsonb NOT NULL,
    model text NOT NULL,
    model_sha256 text,
    extension_version text NOT NULL,
    machine jsonb NOT NULL,
    started timestamptz NOT NULL,
    finished timestamptz NOT NULL
);
CREATE INDEX run_set ON rag.run (set_id, id);
COMMENT ON TABLE rag.run IS 'evaluations of a question set with one configuration, and all that is needed to repeat them';
COMMENT ON COLUMN rag.run.id IS 'key';
COMMENT ON COLUMN rag.run.set_id IS 'question set';
COMMENT ON COLUMN rag.run.name IS 'name given by whoever ran it';
COMMENT ON COLUMN rag.run.profile IS 'profile and its version';
COMMENT ON COLUMN rag.run.settings IS 'all settings that were in force';
COMMENT ON COLUMN rag.run.top_k IS 'depth of the final ranking';
COMMENT ON COLUMN rag.run.questions IS 'answerable questions; the denominator of every mean';
COMMENT ON COLUMN rag.run.unanswerable IS 'questions without an answer, which no metric counts';
COMMENT ON COLUMN rag.run.questions_sha256 IS 'hash of the questions as asked';
COMMENT ON COLUMN rag.run.gold_sha256 IS 'hash of the gold and the passages it was found in';
COMMENT ON COLUMN rag.run.index_state IS 'what was searched: counts, hash of the passages, state of the indexes';
COMMENT ON COLUMN rag.run.model IS 'embedding model';
COMMENT ON COLUMN rag.run.model_sha256 IS 'hash of its file; null for models shipped with the extension';
COMMENT ON COLUMN rag.run.extension_version IS 'version of pg_rag';
COMMENT ON COLUMN rag.run.machine IS 'server version, processors, architecture';
COMMENT ON COLUMN rag.run.started IS 'when it started';
COMMENT ON COLUMN rag.run.finished IS 'when it ended';

CREATE TABLE rag.run_question (
    run_id bigint NOT NULL,
    question_id bigint NOT NULL,
    unit text NOT NULL CHECK (unit IN ('chunk', 'document')),
    items bigint[] NOT NULL,
    grades integer[] NOT NULL,
    gold_ids bigint[] NOT NULL,
    gold_items bigint[] NOT NULL,
    results integer NOT NULL,
    top_score double precision,
    embed_ms double precision NOT NULL,
    dense_ms double precision NOT NULL,
    bm25_ms double precision NOT NULL,
    fusion_ms double precision NOT NULL,
    total_ms double precision NOT NULL,
    answerable boolean NOT NULL,
    cluster text,
    strata text[] NOT NULL,
    PRIMARY KEY (run_id, question_id)
);
COMMENT ON TABLE rag.run_question IS 'what a run knew of each question: its gold as it was found, and the time of each stage';
COMMENT ON COLUMN rag.run_question.run_id IS 'the run';
COMMENT ON COLUMN rag.run_question.question_id IS 'the question';
COMMENT ON COLUMN rag.run_question.unit IS 'what is counted as one result: chunk, or document at the place of its best chunk';
COMMENT ON COLUMN rag.run_question.items IS 'ids of judged chunks or documents';
COMMENT ON COLUMN rag.run_question.grades IS 'their grades, in the same order';
COMMENT ON COLUMN rag.run_question.gold_ids IS 'relevant gold, once for each of its items';
COMMENT ON COLUMN rag.run_question.gold_items IS 'these items, in the same order';
COMMENT ON COLUMN rag.run_question.results IS 'results of the search';
COMMENT ON COLUMN rag.run_question.top_score IS 'score of the best; null without a result';
COMMENT ON COLUMN rag.run_question.embed_ms IS 'milliseconds until the question had a vector';
COMMENT ON COLUMN rag.run_question.dense_ms IS 'milliseconds of the dense leg';
COMMENT ON COLUMN rag.run_question.bm25_ms IS 'milliseconds of the BM25 leg';
COMMENT ON COLUMN rag.run_question.fusion_ms IS 'milliseconds of what came after the legs';
COMMENT ON COLUMN rag.run_question.total_ms IS 'milliseconds of the search, evidence not read';
COMMENT ON COLUMN rag.run_question.answerable IS 'whether the question had an answer then';
COMMENT ON COLUMN rag.run_question.cluster IS 'its cluster then';
COMMENT ON COLUMN rag.run_question.strata IS 'its strata then';

CREATE TABLE rag.run_list (
    run_id bigint NOT NULL,
    question_id bigint NOT NULL,
    stage text NOT NULL,
    found integer NOT NULL CHECK (found >= 0),
    chunk_ids bigint[] NOT NULL,
    document_ids bigint[] NOT NULL,
    scores double precision[] NOT NULL,
    PRIMARY KEY (run_id, question_id, stage)
);
COMMENT ON TABLE rag.run_list IS 'ranked lists of each stage of a run, ties broken as they were measured; rag.run_result shows them as rows';
COMMENT ON COLUMN rag.run_list.run_id IS 'the run';
COMMENT ON COLUMN rag.run_list.question_id IS 'the question';
COMMENT ON COLUMN rag.run_list.stage IS 'dense, bm25, document, fusion or final';
COMMENT ON COLUMN rag.run_list.found IS 'how many the stage ranked; what comes after them in the arrays was found by the other leg and given a score';
COMMENT ON COLUMN rag.run_list.chunk_ids IS 'chunks, best first';
COMMENT ON COLUMN rag.run_list.document_ids IS 'their documents';
COMMENT ON COLUMN rag.run_list.scores IS 'their scores by the stage';

CREATE TABLE rag.run_metric (
    run_id bigint NOT NULL,
    question_id bigint NOT NULL,
    stage text NOT NULL,
    metric text NOT NULL,
    value double precision NOT NULL,
    PRIMARY KEY (run_id, stage, metric, question_id)
);
COMMENT ON TABLE rag.run_metric IS 'what was measured of each question; means over all of them are in rag.run_summary';
COMMENT ON COLUMN rag.run_metric.run_id IS 'the run';
COMMENT ON COLUMN rag.run_metric.question_id IS 'the question';
COMMENT ON COLUMN rag.run_metric.stage IS 'dense, bm25, document, fusion or final';
COMMENT ON COLUMN rag.run_metric.metric IS 'nDCG@k, Recall@k, MRR@k, MAP, success@k, P@k, unjudged@k, or gold@k: the share of gold that the first k results reach';
COMMENT ON COLUMN rag.run_metric.value IS 'from 0 to 1';

CREATE TRIGGER cascade_delete AFTER DELETE ON rag.question_set REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.cascade_delete();
CREATE TRIGGER cascade_delete AFTER DELETE ON rag.question REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.cascade_delete();
CREATE TRIGGER cascade_delete AFTER DELETE ON rag.run REFERENCING OLD TABLE AS gone
    FOR EACH STATEMENT EXECUTE FUNCTION rag.cascade_delete();
CREATE TRIGGER refuse_delete BEFORE DELETE ON rag.question FOR EACH ROW EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER cascade_delete ON rag.question_set IS 'deletes questions and runs with it';
COMMENT ON TRIGGER cascade_delete ON rag.question IS 'deletes its gold with it';
COMMENT ON TRIGGER cascade_delete ON rag.run IS 'deletes what it measured with it';
COMMENT ON TRIGGER refuse_delete ON rag.question IS 'a question that runs count stays';
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON rag.question_set FOR EACH STATEMENT EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER refuse_truncate ON rag.question_set IS 'rows that others refer to are not truncated';
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON rag.question FOR EACH STATEMENT EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER refuse_truncate ON rag.question IS 'rows that others refer to are not truncated';
CREATE TRIGGER refuse_truncate BEFORE TRUNCATE ON rag.run FOR EACH STATEMENT EXECUTE FUNCTION rag.refuse_delete();
COMMENT ON TRIGGER refuse_truncate ON rag.run IS 'rows that others refer to are not truncated';

ALTER TABLE rag.question_set ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.question ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.gold ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.run ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.run_question ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.run_list ENABLE ROW LEVEL SECURITY;
ALTER TABLE rag.run_metric ENABLE ROW LEVEL SECURITY;
CREATE POLICY labelled ON rag.question_set USING (
    acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)));
CREATE POLICY of_set ON rag.question USING (
    EXISTS (SELECT FROM rag.question_set s WHERE s.id OPERATOR(pg_catalog.=) set_id));
CREATE POLICY of_question ON rag.gold USING (
    EXISTS (SELECT FROM rag.question q WHERE q.id OPERATOR(pg_catalog.=) question_id));
CREATE POLICY of_set ON rag.run USING (
    EXISTS (SELECT FROM rag.question_set s WHERE s.id OPERATOR(pg_catalog.=) set_id));
CREATE POLICY of_run ON rag.run_question USING (
    EXISTS (SELECT FROM rag.run r WHERE r.id OPERATOR(pg_catalog.=) run_id));
CREATE POLICY of_run ON rag.run_list USING (
    EXISTS (SELECT FROM rag.run r WHERE r.id OPERATOR(pg_catalog.=) run_id));
CREATE POLICY of_run ON rag.run_metric USING (
    EXISTS (SELECT FROM rag.run r WHERE r.id OPERATOR(pg_catalog.=) run_id));
COMMENT ON POLICY labelled ON rag.question_set IS 'no label, or one of the caller''s';
COMMENT ON POLICY of_set ON rag.question IS 'questions of visible sets';
COMMENT ON POLICY of_question ON rag.gold IS 'gold of visible questions';
COMMENT ON POLICY of_set ON rag.run IS 'runs of visible sets';
COMMENT ON POLICY of_run ON rag.run_question IS 'questions of visible runs';
COMMENT ON POLICY of_run ON rag.run_list IS 'lists of visible runs';
COMMENT ON POLICY of_run ON rag.run_metric IS 'values of visible runs';

CREATE VIEW rag.run_result WITH (security_invoker = true) AS
SELECT l.run_id, q.key AS question, l.stage,
       CASE WHEN u.at > l.found THEN NULL
            WHEN l.stage = 'document'
            THEN (SELECT pg_catalog.count(DISTINCT x.d)::integer + 1 FROM unnest(l.document_ids, l.scores) x (d, s) WHERE x.s > u.score)
            ELSE u.at::integer END AS rank, u.chunk_id,
       u.document_id, u.score,
       CASE WHEN r.unit = 'document' THEN r.grades[pg_catalog.array_position(r.items, u.document_id)]
            ELSE r.grades[pg_catalog.array_position(r.items, u.chunk_id)] END AS grade,
       l.question_id
  FROM rag.run_list l
  JOIN rag.question q ON q.id = l.question_id
  JOIN rag.run_question r ON r.run_id = l.run_id AND r.question_id = l.question_id
 CROSS JOIN LATERAL ROWS FROM (unnest(l.chunk_ids), unnest(l.document_ids), unnest(l.scores))
       WITH ORDINALITY AS u (chunk_id, document_id, score, at);
COMMENT ON VIEW rag.run_result IS
    'results of runs, one row for each question, stage and rank; without a rank: found by the other leg and given a score; without a grade: not judged';

CREATE VIEW rag.run_summary WITH (security_invoker = true) AS
SELECT m.run_id, s.stratum, m.stage, m.metric, pg_catalog.avg(m.value) AS value, pg_catalog.count(*) AS questions
  FROM rag.run_metric m
  JOIN rag.run_question q ON q.run_id = m.run_id AND q.question_id = m.question_id
 CROSS JOIN LATERAL (SELECT NULL::text UNION SELECT unnest(q.strata)) AS s (stratum)
 GROUP BY m.run_id, s.stratum, m.stage, m.metric;
COMMENT ON VIEW rag.run_summary IS 'means of runs over all questions (stratum null) and over those of each stratum';

CREATE VIEW rag.runs WITH (security_invoker = true) AS
SELECT r.id, s.name AS question_set, r.name, r.profile, r.settings, r.questions, r.unanswerable,
       m.ndcg_10, m.recall_10, m.recall_100, m.mrr_10, a.abstention_auc, t.p50_ms, t.p95_ms, r.model, r.started, r.finished
  FROM rag.run r
  JOIN rag.question_set s ON s.id = r.set_id
 CROSS JOIN LATERAL (
    SELECT pg_catalog.avg(v.value) FILTER (WHERE v.metric = 'nDCG@10') AS ndcg_10,
           pg_catalog.avg(v.value) FILTER (WHERE v.metric = 'Recall@10') AS recall_10,
           pg_catalog.avg(v.value) FILTER (WHERE v.metric = 'Recall@100') AS recall_100,
           pg_catalog.avg(v.value) FILTER (WHERE v.metric = 'MRR@10') AS mrr_10
      FROM rag.run_metric v
     WHERE v.run_id = r.id AND v.stage = 'final' AND v.metric IN ('nDCG@10', 'Recall@10', 'Recall@100', 'MRR@10')) m
 CROSS JOIN LATERAL (
    SELECT pg_catalog.percentile_cont(0.5) WITHIN GROUP (ORDER BY q.total_ms) AS p50_ms,
           pg_catalog.percentile_cont(0.95) WITHIN GROUP (ORDER BY q.total_ms) AS p95_ms
      FROM rag.run_question q WHERE q.run_id = r.id) t
 CROSS JOIN LATERAL (
    SELECT (pg_catalog.sum(s.rank) FILTER (WHERE s.answerable) - r.questions * (r.questions + 1) / 2.0)::double precision
           / nullif(r.questions::double precision * r.unanswerable, 0) AS abstention_auc
      FROM (SELECT u.answerable, pg_catalog.rank() OVER (ORDER BY u.top_score NULLS FIRST)
                   + (pg_catalog.count(*) OVER (PARTITION BY u.top_score) - 1) / 2.0 AS rank
              FROM rag.run_question u
             WHERE u.run_id = r.id) s) a;
COMMENT ON VIEW rag.runs IS 'runs with the metrics that are looked at first, and the time of their searches';
COMMENT ON COLUMN rag.runs.abstention_auc IS 'how often the best score of a question with an answer is above that of one without; 0.5 is chance, null where a side has none';

SELECT pg_catalog.pg_extension_config_dump('rag.question_set', '');
SELECT pg_catalog.pg_extension_config_dump('rag.question', '');
SELECT pg_catalog.pg_extension_config_dump('rag.gold', '');
SELECT pg_catalog.pg_extension_config_dump('rag.run', '');
SELECT pg_catalog.pg_extension_config_dump('rag.run_question', '');
SELECT pg_catalog.pg_extension_config_dump('rag.run_list', '');
SELECT pg_catalog.pg_extension_config_dump('rag.run_metric', '');
SELECT pg_catalog.pg_extension_config_dump('rag.question_set_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.question_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.gold_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.run_id_seq', '');

-- Nobody adds to what he may not see.
-- A role that was dropped is in nobody's way.
CREATE POLICY own ON rag.acl FOR SELECT USING (
    EXISTS (SELECT FROM pg_catalog.pg_roles r
             WHERE r.rolname OPERATOR(pg_catalog.=) acl.role AND pg_catalog.pg_has_role(r.oid, 'USAGE')));
CREATE POLICY labelled ON rag.source USING (
    acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)));
CREATE POLICY labelled ON rag.document USING (
    acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
    WITH CHECK ((acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
        AND EXISTS (SELECT FROM rag.source p WHERE p.id OPERATOR(pg_catalog.=) document.source_id));
CREATE POLICY labelled ON rag.chunk USING (
    acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
    WITH CHECK ((acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
        AND EXISTS (SELECT FROM rag.document p WHERE p.id OPERATOR(pg_catalog.=) chunk.document_id));
CREATE POLICY labelled ON rag.chunk_embedding USING (
    acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
    WITH CHECK ((acl IS NULL OR acl OPERATOR(pg_catalog.=) ANY (ARRAY(SELECT a.label FROM rag.acl a)))
        AND EXISTS (SELECT FROM rag.chunk p WHERE p.id OPERATOR(pg_catalog.=) chunk_embedding.chunk_id));
CREATE POLICY of_source ON rag.sync USING (
    EXISTS (SELECT FROM rag.source s WHERE s.id OPERATOR(pg_catalog.=) source_id));
CREATE POLICY of_sync ON rag.sync_item USING (
    EXISTS (SELECT FROM rag.sync y WHERE y.id OPERATOR(pg_catalog.=) sync_id));
-- A job runs with the rights of the role it names, so nobody may name another.
CREATE POLICY of_source ON rag.job USING (
    EXISTS (SELECT FROM rag.source s WHERE s.id OPERATOR(pg_catalog.=) source_id))
    WITH CHECK (requested_by OPERATOR(pg_catalog.=) current_user
                AND EXISTS (SELECT FROM rag.source s WHERE s.id OPERATOR(pg_catalog.=) source_id));
CREATE POLICY of_job ON rag.job_failure USING (
    EXISTS (SELECT FROM rag.job j WHERE j.id OPERATOR(pg_catalog.=) job_id));
COMMENT ON POLICY own ON rag.acl IS 'a role sees its own labels';
COMMENT ON POLICY labelled ON rag.source IS 'no label, or one of the caller''s';
COMMENT ON POLICY labelled ON rag.document IS 'no label, or one of the caller''s';
COMMENT ON POLICY labelled ON rag.chunk IS 'no label, or one of the caller''s';
COMMENT ON POLICY labelled ON rag.chunk_embedding IS 'no label, or one of the caller''s';
COMMENT ON POLICY of_source ON rag.sync IS 'runs over visible sources';
COMMENT ON POLICY of_sync ON rag.sync_item IS 'items of visible runs';
COMMENT ON POLICY of_source ON rag.job IS 'jobs of visible sources';
COMMENT ON POLICY of_job ON rag.job_failure IS 'failures of visible jobs';

-- Read with the owner's rights, because nobody has any on the tables of the index. It counts what the caller may see.
CREATE VIEW rag.lexical_status AS
SELECT c.name AS collection, u.unit,
       rag.lexical_state(c.id, u.unit) AS state,
       x.segments, x.small_segments, x.dead_segments, x.documents - x.dead_documents AS documents, x.dead_documents,
       CASE WHEN x.documents = 0 THEN 0.0 ELSE x.dead_documents::double precision / x.documents END AS dead_share,
       x.postings, x.terms, x.bytes
  FROM rag.collection c
 CROSS JOIN (VALUES ('chunk'), ('document')) AS u (unit)
 CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) FILTER (WHERE NOT s.dead) AS segments,
           pg_catalog.count(*) FILTER (WHERE NOT s.dead AND s.documents < 8) AS small_segments,
           pg_catalog.count(*) FILTER (WHERE s.dead) AS dead_segments,
           coalesce(sum(s.documents) FILTER (WHERE NOT s.dead), 0)::bigint AS documents,
           coalesce(sum(s.documents) FILTER (WHERE s.dead), 0)::bigint AS dead_documents,
           coalesce(sum(s.postings) FILTER (WHERE NOT s.dead), 0)::bigint AS postings,
           coalesce(sum(s.terms) FILTER (WHERE NOT s.dead), 0)::bigint AS terms,
           coalesce(sum(s.bytes + pg_catalog.octet_length(s.ids)), 0)::bigint AS bytes
      FROM rag.lex_segment s
     WHERE s.collection_id = c.id AND s.unit = u.unit
       AND (s.acl IS NULL
            OR pg_catalog.pg_has_role(current_user, (SELECT t.relowner FROM pg_catalog.pg_class t
                                                       WHERE t.oid = 'rag.chunk'::regclass), 'USAGE')
            OR s.acl IN (SELECT a.label FROM rag.acl a JOIN pg_catalog.pg_roles r ON r.rolname = a.role
                          WHERE pg_catalog.pg_has_role(current_user, r.oid, 'USAGE')))) x;
COMMENT ON VIEW rag.lexical_status IS
    'per collection and unit: the index of the BM25 leg; where its state is missing, every match is read until rag.reindex_lexical has run, and where it is unused, always; of whole documents, each piece that was written or deleted on its own counts until it is merged';

CREATE OR REPLACE VIEW rag.documents WITH (security_invoker = true) AS
SELECT d.id, s.name AS source, c.name AS collection, d.uri, d.external_id, d.title, d.media_type, d.language,
       d.project, d.repository, d.path, d.ref, d.commit, d.etag, d.published_at, d.fetched_at, d.parser_version,
       d.role, d.metadata, d.current, pg_catalog.encode(d.content_sha256, 'hex') AS content_sha256, d.repaired_bytes,
       (SELECT pg_catalog.count(*) FROM rag.chunk k WHERE k.document_id = d.id) AS chunks, d.text_search_config
  FROM rag.document d
  JOIN rag.source s ON s.id = d.source_id
  JOIN rag.collection c ON c.id = s.collection_id;

CREATE OR REPLACE VIEW rag.status WITH (security_invoker = true) AS
SELECT s.name AS source, y.status, y.started, y.finished, y.new, y.modified, y.unchanged, y.deleted, y.failed,
       y.error, k.chunks, k.truncated, k.chunks - k.embedded AS pending, k.oldest_pending,
       CASE WHEN k.chunks = 0 THEN 1.0 ELSE k.embedded::double precision / k.chunks END AS coverage
  FROM rag.source s
  JOIN rag.collection c ON c.id = s.collection_id
  LEFT JOIN LATERAL (SELECT r.status, r.started, r.finished, r.new, r.modified, r.unchanged, r.deleted, r.failed, r.error
                       FROM rag.sync r WHERE r.source_id = s.id ORDER BY r.id DESC LIMIT 1) y ON true
  CROSS JOIN LATERAL (
    SELECT pg_catalog.count(*) AS chunks, pg_catalog.count(e.chunk_id) AS embedded,
           pg_catalog.count(*) FILTER (WHERE e.truncated) AS truncated,
           pg_catalog.now() - pg_catalog.min(d.fetched_at) FILTER (WHERE e.chunk_id IS NULL) AS oldest_pending
      FROM rag.document d
      JOIN rag.chunk k ON k.document_id = d.id AND k.current
      LEFT JOIN rag.chunk_embedding e ON e.chunk_id = k.id AND e.model_id = c.model_id
     WHERE d.source_id = s.id) k;

CREATE VIEW rag.jobs WITH (security_invoker = true) AS
SELECT j.id, j.kind, s.name AS source, j.state, j.progress, j.attempts, j.max_attempts, j.run_after, j.lease_until,
       j.worker_pid, j.requested_by, j.created_at, j.finished_at
  FROM rag.job j
  JOIN rag.source s ON s.id = j.source_id;
COMMENT ON VIEW rag.jobs IS 'background work with its source; done jobs are kept for a week';

CREATE VIEW rag.failed_jobs WITH (security_invoker = true) AS
SELECT j.id AS job_id, j.kind, s.name AS source, j.attempts, j.finished_at, f.failed_at, f.sqlstate, f.message, f.detail,
       f.hint
  FROM rag.job j
  JOIN rag.source s ON s.id = j.source_id
  LEFT JOIN LATERAL (SELECT * FROM rag.job_failure f WHERE f.job_id = j.id ORDER BY f.id DESC LIMIT 1) f ON true
 WHERE j.state = 'dead';
COMMENT ON VIEW rag.failed_jobs IS 'jobs that are out of attempts, with their last error; rag.retry gives them new ones';

CREATE VIEW rag.profiles WITH (security_invoker = true) AS
SELECT p.name, p.version, p.settings, p.id < 100 AS built_in,
       NOT EXISTS (SELECT FROM rag.profile n WHERE n.name = p.name AND n.version > p.version) AS newest, p.created_at
  FROM rag.profile p;
COMMENT ON VIEW rag.profiles IS 'profiles with all their versions; a search takes the newest of a name, or the one that name@version means';

COMMENT ON INDEX rag.source_collection IS 'sources of a collection';
COMMENT ON INDEX rag.sync_running IS 'one run at a time over a source';
COMMENT ON INDEX rag.sync_source IS 'runs over a source, the latest last';
COMMENT ON INDEX rag.sync_item_uri IS 'items of a run by URI';
COMMENT ON INDEX rag.sync_item_pending IS 'items of a run that wait';
COMMENT ON INDEX rag.document_current_uri IS 'one current version of each URI of a source';
COMMENT ON INDEX rag.document_text_search_config IS 'configurations that the documents of a source are read by';
COMMENT ON INDEX rag.document_external_id IS 'documents by the key of their source';
COMMENT ON INDEX rag.chunk_document IS 'chunks of a document in their order';
COMMENT ON INDEX rag.chunk_parent IS 'chunks inside a chunk';
COMMENT ON INDEX rag.chunk_by_key IS 'chunks by their permanent key';
COMMENT ON INDEX rag.chunk_entry IS 'passages by their number in the BM25 index';
COMMENT ON INDEX rag.lex_segment_population IS 'segments of a collection';
COMMENT ON INDEX rag.chunk_tsv IS 'matches by boolean queries, and of the BM25 leg where its own index is not there';
COMMENT ON INDEX rag.chunk_length IS 'number and mean length of the passages of a collection';
COMMENT ON INDEX rag.chunk_embedding_chunk IS 'vectors of a chunk';
COMMENT ON INDEX rag.chunk_embedding_text IS 'vectors of equal texts';
COMMENT ON INDEX rag.chunk_embedding_hnsw_1_2 IS 'nearest vectors of the built-in collection';
COMMENT ON INDEX rag.job_due IS 'jobs that wait, by when they are due';
COMMENT ON INDEX rag.job_source IS 'jobs of a source';
COMMENT ON INDEX rag.job_waiting IS 'one waiting job of a kind for a source';
COMMENT ON INDEX rag.job_running IS 'one running job of a kind for a source';
COMMENT ON INDEX rag.question_key IS 'one question of each name in a set';
COMMENT ON INDEX rag.gold_question IS 'gold of a question in its order';
COMMENT ON INDEX rag.run_set IS 'runs of a set in their order';
COMMENT ON INDEX rag.job_failure_job IS 'failures of a job in their order';

DO $block$
DECLARE
    found record;
BEGIN
    FOR found IN
        -- A column of a view has the meaning of the table's column of the same name, if the view adds none of its own.
        SELECT pg_catalog.format('COLUMN rag.%I.%I', v.relname, a.attname) AS object,
               coalesce(own.meaning, (
                   SELECT pg_catalog.col_description(t.oid, c.attnum)
                     FROM pg_catalog.pg_class t JOIN pg_catalog.pg_attribute c ON c.attrelid OPERATOR(pg_catalog.=) t.oid
                    WHERE t.relnamespace OPERATOR(pg_catalog.=) v.relnamespace AND t.relkind OPERATOR(pg_catalog.=) 'r'
                      AND c.attname OPERATOR(pg_catalog.=) a.attname
                    -- The table that the view is named after comes first.
                    ORDER BY pg_catalog.starts_with(v.relname, t.relname) DESC, t.relname LIMIT 1)) AS meaning
          FROM pg_catalog.pg_class v
          JOIN pg_catalog.pg_attribute a ON a.attrelid OPERATOR(pg_catalog.=) v.oid AND a.attnum OPERATOR(pg_catalog.>) 0
          LEFT JOIN (VALUES
              ('collection', 'name of its collection'), ('model', 'name of the model of its collection'),
              ('source', 'name of its source'), ('source_id', 'key of the source'), ('job_id', 'key of the job'),
              ('documents', 'current documents'), ('chunks', 'current chunks'),
              ('embedded', 'whether it has a vector of the model of its collection'),
              ('truncated', 'chunks whose embedded text was cut at the window of the model'),
              ('pending', 'chunks that have no vector yet'),
              ('oldest_pending', 'how long the oldest of these has waited'),
              ('coverage', 'share of the chunks that have a vector'),
              ('segments', 'segments with documents'), ('small_segments', 'of these, those of less than 8 documents'),
              ('dead_segments', 'segments that say what was deleted'), ('dead_documents', 'deleted, not merged away yet'),
              ('dead_share', 'share of the indexed documents that are deleted'),
              ('question', 'name of the question in its set'), ('question_set', 'name of the question set'),
              ('rank', 'rank by the stage, from 1'), ('score', 'score by the stage'), ('chunk_id', 'the chunk'), ('document_id', 'the document'),
              ('stratum', 'group of questions; null: all'), ('ndcg_10', 'mean nDCG@10'), ('recall_10', 'mean Recall@10'),
              ('recall_100', 'mean Recall@100'), ('mrr_10', 'mean MRR@10'), ('p50_ms', 'median time of a search, milliseconds'),
              ('p95_ms', '95th percentile of it'),
              ('built_in', 'whether it comes with the extension'), ('newest', 'whether it is the newest version of its name'),
              ('unit', 'what is indexed'), ('terms', 'terms of all segments, each counted once in each')) AS own (name, meaning)
               ON own.name OPERATOR(pg_catalog.=) a.attname
         WHERE v.relnamespace OPERATOR(pg_catalog.=) 'rag'::pg_catalog.regnamespace
           AND v.relkind OPERATOR(pg_catalog.=) 'v'
        UNION ALL
        SELECT pg_catalog.format('SEQUENCE rag.%I', s.relname),
               CASE s.relname WHEN 'chunk_entry_seq' THEN 'entries of rag.chunk in the BM25 index'
                    ELSE 'keys of rag.' OPERATOR(pg_catalog.||) pg_catalog.replace(s.relname, '_id_seq', '') END
          FROM pg_catalog.pg_class s
         WHERE s.relnamespace OPERATOR(pg_catalog.=) 'rag'::pg_catalog.regnamespace
           AND s.relkind OPERATOR(pg_catalog.=) 'S'
        UNION ALL
        SELECT pg_catalog.format('INDEX rag.%I', k.conname),
               CASE k.contype WHEN 'p' THEN 'key of rag.' ELSE 'names of rag.' END OPERATOR(pg_catalog.||) t.relname
          FROM pg_catalog.pg_constraint k
          JOIN pg_catalog.pg_class t ON t.oid OPERATOR(pg_catalog.=) k.conrelid
         WHERE k.connamespace OPERATOR(pg_catalog.=) 'rag'::pg_catalog.regnamespace
           AND (k.contype OPERATOR(pg_catalog.=) 'p' OR k.contype OPERATOR(pg_catalog.=) 'u')
    LOOP
        EXECUTE pg_catalog.format('COMMENT ON %s IS %L', found.object, found.meaning);
    END LOOP;
END
$block$;

DROP FUNCTION rag.add_source(text, text, text, jsonb, text, text, double precision, text);
DROP FUNCTION rag.alter_source(text, text, jsonb, text, double precision, boolean);
DROP FUNCTION rag.ingest(text, text, text, jsonb, text, jsonb);
DROP FUNCTION rag.ingest(bytea, text, text, jsonb, text, jsonb);
DROP FUNCTION rag.health();

CREATE FUNCTION rag."add_source"(
    "name" TEXT,
    "kind" TEXT,
    "location" TEXT,
    "options" jsonb DEFAULT '{}',
    "collection" TEXT DEFAULT 'default',
    "project" TEXT DEFAULT NULL,
    "authority" double precision DEFAULT 1,
    "schedule" TEXT DEFAULT NULL,
    "acl" TEXT DEFAULT NULL
) RETURNS bigint
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'add_source_wrapper';
CREATE FUNCTION rag."alter_source"(
    "name" TEXT,
    "location" TEXT DEFAULT NULL,
    "options" jsonb DEFAULT NULL,
    "project" TEXT DEFAULT NULL,
    "authority" double precision DEFAULT NULL,
    "enabled" bool DEFAULT NULL,
    "acl" TEXT DEFAULT NULL
) RETURNS void
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'alter_source_wrapper';
CREATE FUNCTION rag."ingest"(
    "content" TEXT,
    "uri" TEXT,
    "kind" TEXT DEFAULT 'markdown',
    "metadata" jsonb DEFAULT '{}',
    "collection" TEXT DEFAULT 'default',
    "options" jsonb DEFAULT '{}',
    "acl" TEXT DEFAULT NULL
) RETURNS TABLE (
    "document_id" bigint,
    "chunks" INT,
    "tokens" bigint
)
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'ingest_text_wrapper';
CREATE FUNCTION rag."ingest"(
    "content" bytea,
    "uri" TEXT,
    "kind" TEXT DEFAULT 'markdown',
    "metadata" jsonb DEFAULT '{}',
    "collection" TEXT DEFAULT 'default',
    "options" jsonb DEFAULT '{}',
    "acl" TEXT DEFAULT NULL
) RETURNS TABLE (
    "document_id" bigint,
    "chunks" INT,
    "tokens" bigint
)
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'ingest_bytes_wrapper';
CREATE FUNCTION rag."terms"(
    "content" TEXT,
    "text_search_config" TEXT DEFAULT 'english',
    "emphasis" TEXT DEFAULT NULL
) RETURNS tsvector
STABLE PARALLEL RESTRICTED COST 1000
LANGUAGE c
AS 'MODULE_PATHNAME', 'terms_wrapper';
CREATE FUNCTION rag."compact"(
    "collection" TEXT DEFAULT NULL
) RETURNS bigint
VOLATILE SECURITY DEFINER PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'compact_wrapper';
CREATE FUNCTION rag."reindex_lexical"(
    "collection" TEXT DEFAULT NULL
) RETURNS bigint
VOLATILE SECURITY DEFINER PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'reindex_lexical_wrapper';
CREATE FUNCTION rag."search_many"(
    "queries" TEXT[],
    "top_k" INT DEFAULT 10,
    "filter" jsonb DEFAULT '{}',
    "collection" TEXT DEFAULT 'default',
    "mode" TEXT DEFAULT NULL,
    "candidate_k" INT DEFAULT NULL,
    "rrf_k" INT DEFAULT NULL,
    "rerank" TEXT DEFAULT NULL,
    "profile" TEXT DEFAULT 'default',
    "settings" jsonb DEFAULT '{}'
) RETURNS TABLE (
    "ordinal" INT,
    "rank" INT,
    "chunk_id" bigint,
    "chunk_key" uuid,
    "score" double precision,
    "content" TEXT,
    "title" TEXT,
    "uri" TEXT,
    "citation" TEXT,
    "locator" jsonb,
    "source" TEXT,
    "document_id" bigint,
    "role" TEXT,
    "language" TEXT,
    "path" TEXT,
    "commit" TEXT,
    "current" bool,
    "dense_rank" INT,
    "dense_score" double precision,
    "bm25_rank" INT,
    "bm25_score" double precision,
    "fused_score" double precision,
    "rerank_score" double precision,
    "metadata" jsonb,
    "complete" bool,
    "degraded" TEXT
)
STABLE PARALLEL RESTRICTED
LANGUAGE c
AS 'MODULE_PATHNAME', 'search_many_wrapper';
CREATE FUNCTION rag."set_profile"(
    "name" TEXT,
    "settings" jsonb,
    "base" TEXT DEFAULT NULL
) RETURNS INT
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'set_profile_wrapper';
CREATE FUNCTION rag."drop_profile"(
    "name" TEXT
) RETURNS bigint
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'drop_profile_wrapper';
CREATE FUNCTION rag."diff_profiles"(
    "left_profile" TEXT,
    "right_profile" TEXT DEFAULT 'default'
) RETURNS TABLE (
    "setting" TEXT,
    "left_value" jsonb,
    "right_value" jsonb
)
STABLE PARALLEL RESTRICTED
LANGUAGE c
AS 'MODULE_PATHNAME', 'diff_profiles_wrapper';
CREATE FUNCTION rag."profile_settings"(
    "profile" TEXT DEFAULT 'default'
) RETURNS jsonb
STABLE PARALLEL RESTRICTED
LANGUAGE c
AS 'MODULE_PATHNAME', 'profile_settings_wrapper';
CREATE FUNCTION rag."export_profiles"(
    "names" TEXT[] DEFAULT NULL
) RETURNS jsonb
STABLE PARALLEL RESTRICTED
LANGUAGE c
AS 'MODULE_PATHNAME', 'export_profiles_wrapper';
CREATE FUNCTION rag."import_profiles"(
    "profiles" jsonb
) RETURNS TABLE (
    "name" TEXT,
    "version" INT
)
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'import_profiles_wrapper';
CREATE FUNCTION rag."drop_question_set"(
    "name" TEXT
) RETURNS bigint
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'drop_question_set_wrapper';
CREATE FUNCTION rag."import_questions"(
    "question_set" TEXT,
    "questions" jsonb
) RETURNS bigint
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'import_questions_json_wrapper';
CREATE FUNCTION rag."evaluate"(
    "question_set" TEXT,
    "profile" TEXT DEFAULT 'default',
    "settings" jsonb DEFAULT '{}',
    "name" TEXT DEFAULT NULL,
    "top_k" INT DEFAULT 100
) RETURNS bigint
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'evaluate_wrapper';
CREATE FUNCTION rag."create_question_set"(
    "name" TEXT,
    "collection" TEXT DEFAULT 'default',
    "description" TEXT DEFAULT NULL,
    "acl" TEXT DEFAULT NULL
) RETURNS bigint
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'create_question_set_wrapper';
CREATE FUNCTION rag."import_questions"(
    "question_set" TEXT,
    "questions" TEXT,
    "qrels" TEXT DEFAULT NULL,
    "format" TEXT DEFAULT NULL
) RETURNS bigint
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'import_questions_wrapper';
CREATE FUNCTION rag."forensics"(
    "run_id" bigint,
    "k" INT DEFAULT 10,
    "against" bigint DEFAULT NULL
) RETURNS TABLE (
    "question" TEXT,
    "gold_id" bigint,
    "lost_by" TEXT,
    "rank_before" INT,
    "rank_after" INT,
    "score" double precision,
    "displaced_by" jsonb
)
STABLE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'forensics_wrapper';
CREATE FUNCTION rag."ablate"(
    "question_set" TEXT,
    "variants" jsonb DEFAULT NULL,
    "profile" TEXT DEFAULT 'default',
    "settings" jsonb DEFAULT '{}',
    "top_k" INT DEFAULT 100
) RETURNS TABLE (
    "variant" TEXT,
    "run_id" bigint,
    "ndcg_10" double precision,
    "recall_10" double precision,
    "recall_100" double precision,
    "mrr_10" double precision,
    "p50_ms" double precision
)
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'ablate_wrapper';
CREATE FUNCTION rag."diagnose"(
    "question_set" TEXT,
    "run_id" bigint DEFAULT NULL,
    "k" INT DEFAULT 10,
    "score_share" double precision DEFAULT 0.9,
    "resemblance" double precision DEFAULT 0.8
) RETURNS TABLE (
    "question" TEXT,
    "stage" TEXT,
    "gold_rank" double precision,
    "gold_score" double precision,
    "contenders" double precision,
    "unjudged" double precision,
    "near_duplicates" double precision
)
STABLE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'diagnose_wrapper';
CREATE FUNCTION rag."near_duplicates"(
    "collection" TEXT DEFAULT 'default',
    "resemblance" double precision DEFAULT 0.8,
    "unit" TEXT DEFAULT 'document'
) RETURNS TABLE (
    "first_id" bigint,
    "first_name" TEXT,
    "second_id" bigint,
    "second_name" TEXT,
    "resemblance" double precision
)
STABLE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'near_duplicates_wrapper';
CREATE FUNCTION rag."complementarity"(
    "run_id" bigint,
    "depths" INT[] DEFAULT ARRAY[10, 20, 50, 100]
) RETURNS TABLE (
    "k" INT,
    "questions" bigint,
    "only_dense" bigint,
    "only_bm25" bigint,
    "in_both" bigint,
    "in_neither" bigint,
    "jaccard" double precision
)
STABLE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'complementarity_wrapper';
CREATE FUNCTION rag."compare"(
    "first" bigint,
    "second" bigint,
    "metrics" TEXT[] DEFAULT ARRAY['nDCG@10', 'Recall@10', 'MRR@10'],
    "force" bool DEFAULT false
) RETURNS TABLE (
    "stratum" TEXT,
    "metric" TEXT,
    "questions" bigint,
    "clusters" bigint,
    "first_mean" double precision,
    "second_mean" double precision,
    "difference" double precision,
    "interval_low" double precision,
    "interval_high" double precision,
    "p_bootstrap" double precision,
    "p_randomization" double precision,
    "wins" bigint,
    "losses" bigint,
    "detectable_difference" double precision,
    "first_result_churn" double precision
)
STABLE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'compare_wrapper';
CREATE FUNCTION rag."report"(
    "run_id" bigint,
    "against" bigint DEFAULT NULL
) RETURNS TEXT
STABLE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'report_wrapper';
CREATE FUNCTION rag."drop_run"(
    "run_id" bigint
) RETURNS void
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'drop_run_wrapper';
CREATE FUNCTION rag."sweep"(
    "question_set" TEXT,
    "setting" TEXT,
    "setting_values" jsonb,
    "profile" TEXT DEFAULT 'default',
    "settings" jsonb DEFAULT '{}',
    "name" TEXT DEFAULT NULL,
    "top_k" INT DEFAULT 100
) RETURNS TABLE (
    "setting_value" jsonb,
    "run_id" bigint,
    "ndcg_10" double precision,
    "recall_10" double precision,
    "recall_100" double precision,
    "mrr_10" double precision,
    "p50_ms" double precision
)
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'sweep_wrapper';
CREATE FUNCTION rag."tune"(
    "run_id" bigint,
    "grid" jsonb DEFAULT NULL,
    "metric" TEXT DEFAULT 'nDCG@10',
    "folds" INT DEFAULT 5
) RETURNS TABLE (
    "fold" INT,
    "questions" bigint,
    "settings" jsonb,
    "held_out" double precision,
    "baseline" double precision,
    "difference" double precision,
    "p_randomization" double precision
)
STABLE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'tune_wrapper';
CREATE FUNCTION rag."reproducibility"(
    "question_set" TEXT,
    "repeats" INT DEFAULT 3,
    "profile" TEXT DEFAULT 'default',
    "settings" jsonb DEFAULT '{}',
    "reindex" bool DEFAULT false,
    "name" TEXT DEFAULT NULL,
    "top_k" INT DEFAULT 100
) RETURNS TABLE (
    "repeat" INT,
    "reindexed" bool,
    "run_id" bigint,
    "ndcg_10" double precision,
    "recall_10" double precision,
    "recall_100" double precision,
    "mrr_10" double precision,
    "same_lists" double precision
)
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'reproducibility_wrapper';
CREATE FUNCTION rag."enqueue_sync"(
    "source" TEXT
) RETURNS bigint
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'enqueue_sync_wrapper';
CREATE FUNCTION rag."retry"(
    "job" bigint
) RETURNS void
VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'retry_wrapper';
CREATE FUNCTION rag."repair"() RETURNS TABLE (
    "object" TEXT,
    "action" TEXT
)
STRICT VOLATILE PARALLEL UNSAFE
LANGUAGE c
AS 'MODULE_PATHNAME', 'repair_wrapper';
CREATE FUNCTION rag."health"() RETURNS TABLE (
    "engine_state" TEXT,
    "engine_pid" INT,
    "engine_restarts" INT,
    "engine_memory" bigint,
    "engine_uptime" interval,
    "launcher_pid" INT,
    "model" TEXT,
    "models_loaded" TEXT[],
    "workers" INT,
    "queued" INT,
    "repair_needed" bool,
    "last_error" TEXT,
    "sandbox" TEXT
)
STRICT VOLATILE PARALLEL RESTRICTED
LANGUAGE c
AS 'MODULE_PATHNAME', 'health_wrapper';
COMMENT ON FUNCTION rag.add_source(text, text, text, jsonb, text, text, double precision, text, text) IS
    'adds a source (kind text, markdown or jsonl) at an absolute path; CALL rag.sync reads it; returns its key';
COMMENT ON FUNCTION rag.alter_source(text, text, jsonb, text, double precision, boolean, text) IS
    'changes what is given of a source; the next rag.sync applies it, a label (acl) holds at once';
COMMENT ON FUNCTION rag.ingest(text, text, text, jsonb, text, jsonb, text) IS
    'stores and embeds one text (kind text or markdown) at once; the same uri again replaces it';
COMMENT ON FUNCTION rag.ingest(bytea, text, text, jsonb, text, jsonb, text) IS
    'stores and embeds one document given as bytes at once; the same uri again replaces it';
COMMENT ON COLUMN rag.chunk.tsv IS 'terms of title, path, headings, symbol, speaker, context and content; the forward data of the BM25 leg';
COMMENT ON FUNCTION rag.terms(text, text, text) IS
    'terms by which the BM25 leg finds a text: lexemes of a text search configuration, identifiers with their parts, pairs of CJK characters; those of emphasis count two times more, as those of a title do';
COMMENT ON FUNCTION rag.compact(text) IS
    'merges the BM25 index of a collection, or of all, into one segment for each label; returns how many segments were merged';
COMMENT ON FUNCTION rag.reindex_lexical(text) IS
    'makes the BM25 index of a collection, or of all, anew from its passages; writers wait meanwhile, searches do not; returns the number of passages';
COMMENT ON FUNCTION rag.create_question_set(text, text, text, text) IS
    'adds a question set for a collection; with a label (acl) only its roles see the set and its runs; returns its key';
COMMENT ON FUNCTION rag.drop_question_set(text) IS 'drops a question set with its questions and runs; returns the number of questions';
COMMENT ON FUNCTION rag.import_questions(text, jsonb) IS
    'makes a question set have exactly these questions, given as JSON objects with their gold; returns their number';
COMMENT ON FUNCTION rag.import_questions(text, text, text, text) IS
    'makes a question set have exactly the questions of a text: format jsonl (an object a line, or an array), or beir or trec with their qrels; returns their number';
COMMENT ON FUNCTION rag.evaluate(text, text, jsonb, text, integer) IS
    'asks all questions of a set with a profile and settings, and stores lists, metrics and times; returns the key of the run; see rag.runs, rag.run_summary, rag.run_result';
COMMENT ON FUNCTION rag.sweep(text, text, jsonb, text, jsonb, text, integer) IS
    'rag.evaluate with one setting at each value of a JSON array; returns the runs';
COMMENT ON FUNCTION rag.ablate(text, jsonb, text, jsonb, integer) IS
    'rag.evaluate with variants: an object of settings by name, or by default each leg alone, plain fusion, and what is in force without each of its parts; returns the runs';
COMMENT ON FUNCTION rag.drop_run(bigint) IS 'deletes a run with all that it measured';
COMMENT ON FUNCTION rag.compare(bigint, bigint, text[], boolean) IS
    'second run minus first, paired by question, over all and in each stratum: bootstrap interval (95 %) and p, randomisation p, by clusters; wins, losses, the smallest difference that so many questions show, and the share of other first results; refuses runs that did not see the same unless force';
COMMENT ON FUNCTION rag.report(bigint, bigint) IS
    'one HTML page about a run, or about it and another one of the same question set: what was run, metrics of all stages with differences, plots, and the questions that went worst or changed most; needs no other file';
COMMENT ON FUNCTION rag.complementarity(bigint, integer[]) IS
    'relevant items that only the dense leg, only the BM25 leg, both or neither have within the first k, and the mean Jaccard index of the two lists';
COMMENT ON FUNCTION rag.forensics(bigint, integer, bigint) IS
    'gold that is not among the first k of a run, or only what another run had there: which stage lost it, its ranks before and after, and what stands in its place with role, source and margin';
COMMENT ON FUNCTION rag.tune(bigint, jsonb, text, integer) IS
    'chooses settings of the fusion (rrf_k, weights, alpha, document_weight) on the lists of a run by cross-validation: for each fold what the others chose and its mean on questions that did not choose it, against the settings in force; the last row (fold null) is the whole estimate, with the settings that all questions choose';
COMMENT ON FUNCTION rag.diagnose(text, bigint, integer, double precision, double precision) IS
    'what corpus and gold decide before retrieval does, for each question and stage of a run (the newest if none is named), question null: means; gold_rank and gold_score: of the best gold; contenders: others that score at least score_share of that; unjudged: share of the first k without a grade; near_duplicates: texts that are not relevant and resemble gold';
COMMENT ON FUNCTION rag.near_duplicates(text, double precision, text) IS
    'pairs of documents of a collection (unit chunk: of passages) that have at least that share of their shingles of five words in common; of a crowd of more than 64 that look alike, pairs with its first';
COMMENT ON FUNCTION rag.reproducibility(text, integer, text, jsonb, boolean, text, integer) IS
    'runs the same several times, with reindex over an HNSW index made anew each time; what differs is what a change must exceed; same_lists: share of questions with the list of the first run';
COMMENT ON FUNCTION rag.search_many(text[], integer, jsonb, text, text, integer, integer, text, text, jsonb) IS
    'rag.search for each of some queries, by one snapshot and with few requests to the engine; ordinal: which query, from 1';
COMMENT ON FUNCTION rag.set_profile(text, jsonb, text) IS
    'stores settings under a name, over those of a profile base if one is named, and returns the version that has them; settings that its newest version has already make no other';
COMMENT ON FUNCTION rag.drop_profile(text) IS
    'deletes all versions of a profile, or the one that name@version means; what is built in stays; returns how many';
COMMENT ON FUNCTION rag.diff_profiles(text, text) IS
    'settings that are in force by one profile and not by another; each is name or name@version';
COMMENT ON FUNCTION rag.profile_settings(text) IS 'all settings that are in force by a profile';
COMMENT ON FUNCTION rag.export_profiles(text[]) IS
    'profiles, or the newest version of each, as JSON for rag.import_profiles';
COMMENT ON FUNCTION rag.import_profiles(jsonb) IS
    'stores exported profiles and returns the version that each has here; one whose newest version is the same makes no other';
COMMENT ON FUNCTION rag.enqueue_sync(text) IS
    'queues a sync that a background worker runs after commit; returns the job (rag.jobs shows it)';
COMMENT ON FUNCTION rag.retry(bigint) IS 'gives a job of rag.failed_jobs new attempts';
COMMENT ON FUNCTION rag.repair() IS
    'makes HNSW indexes that a restore has left out or that are not valid, makes BM25 indexes anew that do not have every passage, queues vectors for chunks that have none, and starts waiting jobs; returns what was done; searches go on meanwhile';
COMMENT ON FUNCTION rag.health() IS 'one row: state of the engine (stopped until first use), its models, workers and what confines them (sandbox), and whether an HNSW index is missing (repair_needed)';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA rag FROM PUBLIC;
