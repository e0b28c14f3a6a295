-- The extension's own rows (ids below 100). The models ship in the folder that pg_rag.model_path names.

INSERT INTO rag.model (id, name, kind, path, dimensions, max_tokens, pooling, normalize) VALUES
    (1, 'all-MiniLM-L6-v2', 'embedding', 'all-MiniLM-L6-v2', 384, 256, 'mean', true),
    (2, 'all-MiniLM-L6-v2-int8', 'embedding', 'all-MiniLM-L6-v2-int8', 384, 256, 'mean', true);

INSERT INTO rag.collection (id, name, model_id) VALUES (1, 'default', 1);

CREATE INDEX chunk_embedding_hnsw_1_1 ON rag.chunk_embedding
    USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WHERE model_id = 1 AND collection_id = 1;

INSERT INTO rag.profile (id, name, settings) VALUES
    (1, 'default', '{"mode": "hybrid", "fusion": "rrf", "candidate_k": 100, "rrf_k": 60}'),
    (2, 'rrf', '{"mode": "hybrid", "fusion": "rrf", "candidate_k": 100, "rrf_k": 60}');

-- What a dump carries. Identity sequences must be named too, or they restart after a restore.
SELECT pg_catalog.pg_extension_config_dump('rag.model', 'WHERE id >= 100');
SELECT pg_catalog.pg_extension_config_dump('rag.collection', 'WHERE id >= 100');
SELECT pg_catalog.pg_extension_config_dump('rag.profile', 'WHERE id >= 100');
SELECT pg_catalog.pg_extension_config_dump(pg_catalog.format('rag.%I', t)::pg_catalog.regclass, '')
  FROM pg_catalog.unnest(ARRAY['source', 'sync', 'sync_item', 'document', 'chunk', 'chunk_embedding', 'job']) AS t;
SELECT pg_catalog.pg_extension_config_dump(pg_catalog.pg_get_serial_sequence('rag.' || t, 'id')::pg_catalog.regclass, '')
  FROM pg_catalog.unnest(ARRAY['model', 'collection', 'source', 'sync', 'document', 'chunk', 'profile', 'job']) AS t;
