-- SPDX-License-Identifier: PostgreSQL
-- What is left to be said of indexes, sequences and the columns of views.

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
