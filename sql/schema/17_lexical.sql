-- SPDX-License-Identifier: PostgreSQL
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
