-- rag.report: a page about a run, and about two. The page itself is tested beside the code that makes it; here: that it says what is stored.
\pset format unaligned
SELECT rag.create_collection('pages') > 0 AS made;
SELECT r.chunks FROM unnest(ARRAY['tides', 'ropes', 'lamps']) n, rag.ingest(
    'The ' || n || ' of the harbour are old and many.' || E'\n\n' || 'A second word on ' || n || ': never trust them alone.' || E'\n\n' ||
    'The harbour master keeps a book.', n || '.md', 'markdown', collection => 'pages', options => '{"chunk_tokens": 16, "overlap": 0}') r;
SELECT rag.create_question_set('pages <b>&', 'pages') > 0 AS made;
SELECT rag.import_questions('pages <b>&', $$
{"id": "quote", "text": "never trust <script>alert('ropes')</script>", "strata": ["<i>span"], "gold": [{"uri": "ropes.md", "quote": "word on ropes: never trust"}]}
{"id": "lines", "text": "how many lamps", "strata": ["<i>span"], "gold": [{"uri": "lamps.md", "lines": [1, 1]}]}
{"id": "whole", "text": "trust tides", "strata": ["whole"], "gold": [{"uri": "tides.md"}]}
{"id": "lost", "text": "book", "gold": [{"uri": "ropes.md"}], "filter": {"uri": "lamps.md"}}
{"id": "none", "text": "who pays the harbour master", "answerable": false}
$$);
SELECT rag.evaluate('pages <b>&', settings => '{"mode": "bm25"}', name => 'words </title><script>alert(1)</script>') AS words \gset
SELECT rag.evaluate('pages <b>&', settings => '{"mode": "bm25", "candidate_k": 1}', name => ']]> <script>alert(1)</script>') AS narrow \gset

CREATE TEMP VIEW page AS SELECT 1 AS n, rag.report(currval('rag.run_id_seq') - 1) AS html UNION ALL
    SELECT 2, rag.report(currval('rag.run_id_seq'), currval('rag.run_id_seq') - 1);

-- One file: nothing is fetched, nothing runs, and no text of a user is markup.
SELECT n, html LIKE '<!DOCTYPE html><html lang="en">%</html>' AS whole, html ~ '(src|href)="[^#]' AS links, html LIKE '%<script%' AS script,
       html LIKE '%name="viewport"%' AS viewport, html LIKE '%@media print%' AS print, html LIKE '%prefers-color-scheme: dark%' AS dark,
       html LIKE '%&lt;script&gt;alert%' AS text, html LIKE '%<i>span%' OR html LIKE '%<b>&amp;%' AS markup FROM page ORDER BY 1;
SELECT n, m[1] AS section, m[2] AS heading FROM page, regexp_matches(html, '<section id="([a-z]+)"[^>]*><h2[^>]*>([^<]*)', 'g') m ORDER BY 1;
SELECT n, count(*) AS plots, count(*) FILTER (WHERE plot ~ '^[^>]*><title id="[^"]*">[^<]+</title><desc id="[^"]*">[^<]+</desc>') AS told
  FROM page, regexp_split_to_table(html, '<svg ') plot WHERE plot ~ '^[^>]*role="img"' GROUP BY 1 ORDER BY 1;

-- Every mean is that of rag.run_summary.
CREATE TEMP VIEW told AS SELECT n, substring(line FROM '<th scope="row">([^<]*)</th>') AS metric,
       regexp_split_to_array(trim(regexp_replace(substring(line FROM '<th scope="row">[^<]*</th>(.*)'), '(<[^>]*>)+', ' ', 'g')), ' ') AS cells
  FROM page, regexp_split_to_table(split_part(split_part(html, '<section id="metrics"', 2), '</section>', 1), '</tr>') line
 WHERE line LIKE '%<th scope="row">%';
CREATE TEMP VIEW stored AS SELECT run_id, metric, to_char(max(value) FILTER (WHERE stage = 'final'), 'FM0.0000') AS last,
       coalesce(to_char(max(value) FILTER (WHERE stage = 'bm25'), 'FM0.0000'), '–') AS bm25 FROM rag.run_summary WHERE stratum IS NULL GROUP BY 1, 2;
SELECT count(*), count(*) FILTER (WHERE t.cells = ARRAY[s.last, s.bm25]) AS same FROM told t JOIN stored s USING (metric) WHERE t.n = 1 AND s.run_id = :words;
SELECT count(*), count(*) FILTER (WHERE t.cells[1:2] IN (ARRAY[w.last, o.last], ARRAY[w.bm25, o.bm25])) AS same
  FROM told t JOIN stored w USING (metric) JOIN stored o USING (metric) WHERE t.n = 2 AND w.run_id = :words AND o.run_id = :narrow;
SELECT t.metric, t.cells[3] = replace(to_char(c.difference, 'FM0.0000'), '-', '−') AS difference, t.cells[7] = to_char(c.p_randomization, 'FM0.000') AS p,
       t.cells[8] = c.wins::text AS wins, t.cells[10] = c.losses::text AS losses
  FROM told t JOIN rag.compare(:words, :narrow) c USING (metric) WHERE t.n = 2 AND c.stratum IS NULL AND t.cells[1:2] = ARRAY[to_char(c.first_mean, 'FM0.0000'), to_char(c.second_mean, 'FM0.0000')]
   AND metric IN ('nDCG@10', 'MRR@10');
SELECT m[1] AS fact, m[2] AS other, m[3] AS run FROM page, regexp_matches(html, '<th scope="row">(name|setting [^<]*)</th><td>≠</td><td><bdi>([^<]*)</bdi></td><td><bdi>([^<]*)</bdi></td>', 'g') m WHERE n = 2;

-- Runs that did not see the same are shown with a warning; those of other sets are not.
SELECT html LIKE '%did not see the same%' AS warned FROM page WHERE n = 2;
BEGIN;
UPDATE rag.gold SET grade = 2 WHERE uri = 'lamps.md';
SELECT rag.evaluate('pages <b>&', settings => '{"mode": "bm25"}') AS other \gset
SELECT substring(rag.report(:other, :words) FROM 'Between them changed: [^<]*') AS warning;
ROLLBACK;
SELECT rag.create_question_set('no pages', 'pages') > 0 AS made;
SELECT rag.import_questions('no pages', '{"id": "none", "text": "who pays the harbour master", "answerable": false}');
SELECT rag.evaluate('no pages', settings => '{"mode": "bm25"}') AS nothing \gset
SELECT rag.report(:nothing) LIKE '%there is nothing to measure%' AS said;
\set VERBOSITY sqlstate
SELECT rag.report(:nothing, :words);
\set VERBOSITY default
SELECT rag.report(0);
SELECT rag.report(:words, 0);
SELECT rag.report(NULL);

-- A run of a set with a label is not there for others.
BEGIN;
UPDATE rag.question_set SET acl = 'secret' WHERE name LIKE 'pages%';
CREATE ROLE page_reader;
GRANT USAGE ON SCHEMA rag TO page_reader;
GRANT SELECT ON ALL TABLES IN SCHEMA rag TO page_reader;
GRANT EXECUTE ON FUNCTION rag.report TO page_reader;
SET ROLE page_reader;
SELECT rag.report(:nothing) LIKE '%</html>' AS whole;
\set VERBOSITY sqlstate
SELECT rag.report(:words);
\set VERBOSITY default
ROLLBACK;

SELECT rag.drop_question_set('pages <b>&'), rag.drop_question_set('no pages'), rag.drop_source('inline/pages') > 0 AS dropped;
SELECT rag.drop_collection('pages');
