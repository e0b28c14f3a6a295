-- rag.health
SELECT rag.count_tokens('start the engine');
SELECT engine_state, engine_pid > 0 AS pid, engine_memory > 10000000 AS memory, engine_uptime >= interval '0' AS uptime,
       launcher_pid > 0 AS launcher, model, repair_needed, last_error
  FROM rag.health();
BEGIN;
DROP INDEX rag.chunk_embedding_hnsw_1_2;
SELECT repair_needed FROM rag.health();
ROLLBACK;
