-- SPDX-License-Identifier: PostgreSQL
-- What a search returns of its best chunks, in their order.
-- $1 bigint[]: chunk ids, best first
SELECT c.id, c.chunk_key, c.content, d.title, d.uri, c.heading_path, c.line_start, c.line_end, c.page_start, c.page_end,
       c.char_start, c.char_end, c.symbol, c.symbol_kind, c.speaker, s.name, c.document_id, c.role, c.language, d.path,
       d.commit, c.current, d.metadata || c.metadata, w.n, d.external_id,
       (extract(epoch FROM c.time_start) * 1000)::bigint, (extract(epoch FROM c.time_end) * 1000)::bigint
  FROM unnest($1) WITH ORDINALITY AS w (id, n)
  JOIN rag.chunk c ON c.id = w.id
  JOIN rag.document d ON d.id = c.document_id
  JOIN rag.source s ON s.id = d.source_id
 ORDER BY w.n
