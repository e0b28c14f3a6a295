-- SPDX-License-Identifier: PostgreSQL
-- References between the tables. Not foreign keys: their checks exist before the rows of a dump are loaded, because they
-- come with CREATE EXTENSION, and pg_restore -j loads tables in no order, so that a parallel restore would fail. Deletes
-- cascade and are refused by these triggers; that a new row's parent exists is ensured by the functions that
-- write it, which lock the parent.

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
