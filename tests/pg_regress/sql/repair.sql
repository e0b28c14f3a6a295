-- rag.repair
SELECT rag.create_collection('other') > 0 AS created;
SELECT chunks FROM rag.ingest('A lighthouse stands on the rock.', 'rock', 'text', collection => 'other');
SELECT * FROM rag.repair();
-- as after a restore
SELECT format('DROP INDEX rag.chunk_embedding_hnsw_%s_%s', id, model_id) FROM rag.collection WHERE name = 'other' \gexec
SELECT repair_needed FROM rag.health();
SELECT uri FROM rag.search('lighthouse', collection => 'other');
SELECT object ~ '^chunk_embedding_hnsw_[0-9]+_[0-9]+$' AS hnsw, action FROM rag.repair();
SELECT repair_needed FROM rag.health();
SELECT uri FROM rag.search('lighthouse', collection => 'other');
-- what an interrupted CREATE INDEX CONCURRENTLY leaves behind
UPDATE pg_index SET indisvalid = false WHERE indexrelid = (
    SELECT format('rag.chunk_embedding_hnsw_%s_%s', id, model_id)::regclass FROM rag.collection WHERE name = 'other');
SELECT repair_needed FROM rag.health();
SELECT action FROM rag.repair();
-- an index of a collection that is gone
CREATE INDEX chunk_embedding_hnsw_99_1 ON rag.chunk_embedding USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops)
 WHERE model_id = 1 AND collection_id = 99;
SELECT * FROM rag.repair();
SELECT * FROM rag.repair();
-- vectors that are missing are made by a job
DELETE FROM rag.chunk_embedding;
SELECT * FROM rag.repair();
DO $$
BEGIN
    FOR i IN 1..300 LOOP
        EXIT WHEN (SELECT bool_and(coverage = 1) FROM rag.status);
        PERFORM pg_sleep(0.1);
    END LOOP;
END $$;
SELECT source, pending, coverage FROM rag.status;
SELECT uri FROM rag.search('lighthouse', collection => 'other', mode => 'dense');
SELECT rag.drop_source('inline/other');
SELECT rag.drop_collection('other');
