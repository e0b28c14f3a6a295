-- SPDX-License-Identifier: PostgreSQL
-- What users read. The views are security invokers: the caller's grants and policies on the tables decide.

CREATE VIEW rag.sources WITH (security_invoker = true) AS
SELECT s.name, s.kind, s.location, c.name AS collection, m.name AS model, s.project, s.authority, s.enabled,
       s.options, s.text_search_config, s.created_at,
       (SELECT pg_catalog.count(*) FROM rag.document d WHERE d.source_id = s.id AND d.current) AS documents,
       (SELECT pg_catalog.count(*) FROM rag.chunk k
          JOIN rag.document d ON d.id = k.document_id WHERE d.source_id = s.id AND k.current) AS chunks,
       s.id AS source_id
  FROM rag.source s
  JOIN rag.collection c ON c.id = s.collection_id
  JOIN rag.model m ON m.id = c.model_id;
COMMENT ON VIEW rag.sources IS 'sources with their collection, model and counts';

CREATE VIEW rag.documents WITH (security_invoker = true) AS
SELECT d.id, s.name AS source, c.name AS collection, d.uri, d.external_id, d.title, d.media_type, d.language,
       d.project, d.repository, d.path, d.ref, d.commit, d.etag, d.published_at, d.fetched_at, d.parser_version,
       d.role, d.metadata, d.current, pg_catalog.encode(d.content_sha256, 'hex') AS content_sha256, d.repaired_bytes,
       (SELECT pg_catalog.count(*) FROM rag.chunk k WHERE k.document_id = d.id) AS chunks, d.text_search_config
  FROM rag.document d
  JOIN rag.source s ON s.id = d.source_id
  JOIN rag.collection c ON c.id = s.collection_id;
COMMENT ON VIEW rag.documents IS 'documents with their source';

CREATE VIEW rag.chunks WITH (security_invoker = true) AS
SELECT k.id, k.chunk_key, s.name AS source, d.uri, d.title, k.ordinal, k.content, k.context, k.token_count, k.role,
       k.heading_path, k.symbol, k.symbol_kind, k.page_start, k.page_end, k.line_start, k.line_end, k.char_start,
       k.char_end, k.speaker, k.time_start, k.time_end, k.language, k.metadata, k.current, k.document_id, k.parent_id,
       EXISTS (SELECT FROM rag.chunk_embedding e
                 JOIN rag.collection c ON c.id = e.collection_id AND c.model_id = e.model_id
                WHERE e.chunk_id = k.id) AS embedded
  FROM rag.chunk k
  JOIN rag.document d ON d.id = k.document_id
  JOIN rag.source s ON s.id = d.source_id;
COMMENT ON VIEW rag.chunks IS 'chunks with their document, source and place';

CREATE VIEW rag.status WITH (security_invoker = true) AS
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
COMMENT ON VIEW rag.status IS
    'per source: its latest sync, chunks cut at the window of the model (truncated), waiting for a vector (pending, oldest_pending), and the embedded share (coverage)';

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

CREATE VIEW rag.profiles WITH (security_invoker = true) AS
SELECT p.name, p.version, p.settings, p.id < 100 AS built_in,
       NOT EXISTS (SELECT FROM rag.profile n WHERE n.name = p.name AND n.version > p.version) AS newest, p.created_at
  FROM rag.profile p;
COMMENT ON VIEW rag.profiles IS 'profiles with all their versions; a search takes the newest of a name, or the one that name@version means';
