-- SPDX-License-Identifier: PostgreSQL
-- The extension's own rows (ids below 100). The models ship in the folder that pg_rag.model_path names.
-- The int8 form is the default: it loses nothing on SciFact and is nearly twice as fast (eval/results/int8-vs-fp32.md).

INSERT INTO rag.model (id, name, kind, path, dimensions, max_tokens, pooling, normalize) VALUES
    (1, 'all-MiniLM-L6-v2', 'embedding', 'all-MiniLM-L6-v2', 384, 256, 'mean', true),
    (2, 'all-MiniLM-L6-v2-int8', 'embedding', 'all-MiniLM-L6-v2-int8', 384, 256, 'mean', true);

INSERT INTO rag.collection (id, name, model_id) VALUES (1, 'default', 2);

CREATE INDEX chunk_embedding_hnsw_1_2 ON rag.chunk_embedding
    USING hnsw ((embedding::halfvec(384)) halfvec_cosine_ops) WHERE model_id = 2 AND collection_id = 1;

INSERT INTO rag.profile (id, name, settings) VALUES
    (1, 'default', '{"mode": "hybrid", "fusion": "rrf", "candidate_k": 100, "rrf_k": 60}'),
    (2, 'rrf', '{"mode": "hybrid", "fusion": "rrf", "candidate_k": 100, "rrf_k": 60}');

-- What a dump carries. Identity sequences must be named too, or they restart after a restore.
SELECT pg_catalog.pg_extension_config_dump('rag.model', 'WHERE id >= 100');
SELECT pg_catalog.pg_extension_config_dump('rag.collection', 'WHERE id >= 100');
SELECT pg_catalog.pg_extension_config_dump('rag.profile', 'WHERE id >= 100');
SELECT pg_catalog.pg_extension_config_dump('rag.source', '');
SELECT pg_catalog.pg_extension_config_dump('rag.sync', '');
SELECT pg_catalog.pg_extension_config_dump('rag.sync_item', '');
SELECT pg_catalog.pg_extension_config_dump('rag.document', '');
SELECT pg_catalog.pg_extension_config_dump('rag.chunk', '');
SELECT pg_catalog.pg_extension_config_dump('rag.chunk_embedding', '');
SELECT pg_catalog.pg_extension_config_dump('rag.job', '');
SELECT pg_catalog.pg_extension_config_dump('rag.job_failure', '');
SELECT pg_catalog.pg_extension_config_dump('rag.acl', '');
SELECT pg_catalog.pg_extension_config_dump('rag.model_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.collection_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.source_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.sync_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.document_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.chunk_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.chunk_entry_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.profile_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.job_id_seq', '');
SELECT pg_catalog.pg_extension_config_dump('rag.job_failure_id_seq', '');
