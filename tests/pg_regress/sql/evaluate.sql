-- rag.evaluate: questions with gold in, runs and what they say out.
\pset format unaligned
CREATE FUNCTION pg_temp.message_of(sql text) RETURNS text LANGUAGE plpgsql AS
$$BEGIN EXECUTE sql; RETURN 'no error'; EXCEPTION WHEN OTHERS THEN RETURN sqlerrm; END$$;
SELECT rag.create_collection('lore') > 0 AS made;
-- Passages that BM25 ranks as their words say: three documents of three lines each, cut into one chunk a paragraph.
SELECT r.chunks FROM unnest(ARRAY['tides', 'ropes', 'lamps']) n, rag.ingest(
    'The ' || n || ' of the harbour are old and many.' || E'\n\n' || 'A second word on ' || n || ': never trust them alone.' || E'\n\n' ||
    'The harbour master keeps a book.', n || '.md', 'markdown', collection => 'lore', options => '{"chunk_tokens": 16, "overlap": 0}') r;
SELECT d.uri, c.ordinal, c.line_start, c.line_end FROM rag.chunks c JOIN rag.documents d ON d.id = c.document_id WHERE d.collection = 'lore' ORDER BY 1, 2;

SELECT rag.create_question_set('lore questions', 'lore', 'what the old ones ask') > 0 AS made;
SELECT rag.create_question_set('lore questions', 'lore');
SELECT rag.create_question_set('x', 'lroe');

-- Errors name the question.
SELECT rag.import_questions('lore questions', '{"id": "q1", "text": "tides?"}'::jsonb);
SELECT rag.import_questions('lore questions', '[{"id": "q1", "text": "tides?", "gold": [{"uri": "tides.md", "line": [1, 2]}]}]'::jsonb);
SELECT rag.import_questions('lore questions', $$ {"id": "q1", "text": "tides?", "gold": [{"uri": "tides.md"}]}
 {"id": "q1", "text": "ropes?", "gold": [{"uri": "tides.md"}]} $$);
SELECT rag.import_questions('lore questions', 'x', format => 'csv');
SELECT rag.import_questions('lore questions', '{}', format => 'beir');
SELECT rag.import_questions('lor questions', '{}');
SELECT rag.evaluate('lore questions');

-- One question a line; a quote, lines, a whole document; strata, clusters, one without an answer.
SELECT rag.import_questions('lore questions', $$
{"id": "quote", "text": "never trust ropes", "strata": ["span"], "cluster": "trust", "gold": [{"uri": "ropes.md", "quote": "word on ropes: never   trust", "grade": 2}, {"uri": "tides.md", "quote": "word on tides: never", "grade": 0, "note": "near"}]}
{"id": "lines", "text": "how many lamps", "strata": ["span"], "gold": [{"source": "inline/lore", "uri": "lamps.md", "lines": [1, 1]}]}
{"id": "whole", "text": "trust tides", "strata": ["whole"], "cluster": "trust", "gold": [{"uri": "tides.md"}]}
{"id": "lost", "text": "book", "strata": ["whole"], "gold": [{"uri": "ropes.md"}], "filter": {"uri": "lamps.md"}}
{"id": "none", "text": "who pays the harbour master", "answerable": false}
$$);
SELECT q.key, q.answerable, g.uri, g.line_start, g.quote, g.grade FROM rag.question q LEFT JOIN rag.gold g ON g.question_id = q.id ORDER BY q.ordinal, g.ordinal;

SELECT rag.evaluate('lore questions', settings => '{"mode": "bm25"}', name => 'words') AS words \gset
SELECT question_set, name, profile, settings ->> 'mode' AS mode, questions, unanswerable, p95_ms > 0 AS timed, model FROM rag.runs WHERE id = :words;
-- By hand: quote at rank 1 (nDCG 1), lines at 1, whole at 1; lost is filtered away, counts as 0 and stays in the mean.
SELECT q.key, m.value FROM rag.run_metric m JOIN rag.question q ON q.id = m.question_id
 WHERE m.run_id = :words AND m.stage = 'final' AND m.metric = 'nDCG@10' ORDER BY q.ordinal;
SELECT stratum, stage, value, questions FROM rag.run_summary WHERE run_id = :words AND metric = 'Recall@10' ORDER BY 1 NULLS FIRST, 2;
SELECT question, stage, rank, d.uri, r.grade FROM rag.run_result r JOIN rag.documents d ON d.id = r.document_id
 WHERE run_id = :words AND question IN ('quote', 'lost') AND stage = 'final' AND rank <= 2 ORDER BY 1, 3;
SELECT q.key, r.unit, r.results > 0 AS found, r.top_score > 0 AS scored FROM rag.run_question r JOIN rag.question q ON q.id = r.question_id WHERE r.run_id = :words ORDER BY q.ordinal;
SELECT index_state - 'hnsw_file' - 'passages_sha256' - 'documents_sha256' AS index_state FROM rag.run WHERE id = :words;

-- A repeat is the same to the bit.
SELECT rag.evaluate('lore questions', settings => '{"mode": "hybrid", "exact": true}', name => 'both') AS both_legs \gset
SELECT rag.evaluate('lore questions', settings => '{"mode": "hybrid", "exact": true}') AS again \gset
SELECT count(*) AS lists, count(*) FILTER (WHERE (a.chunk_ids, a.scores, a.found) IS DISTINCT FROM (b.chunk_ids, b.scores, b.found)) AS different
  FROM rag.run_list a FULL JOIN rag.run_list b ON b.run_id = :again AND (b.question_id, b.stage) = (a.question_id, a.stage) WHERE a.run_id = :both_legs;
SELECT stratum, metric, questions, clusters, difference, p_randomization, wins, losses, first_result_churn FROM rag.compare(:both_legs, :again);
SELECT DISTINCT stage FROM rag.run_metric WHERE run_id = :both_legs ORDER BY 1;
SELECT k, questions, only_dense + only_bm25 + in_both + in_neither AS items FROM rag.complementarity(:both_legs, '{1,10}');
SELECT rag.complementarity(:words);

-- What was lost, by whom, to what.
SELECT question, lost_by, rank_before, rank_after, jsonb_path_query_array(displaced_by, '$[*].uri') AS displaced_by FROM rag.forensics(:words, 3);
SELECT count(*) FROM rag.forensics(:words, 3, :both_legs);

-- A change of the questions, the gold or the passages is no change of retrieval.
SELECT rag.import_questions('lore questions', $${"id": "whole", "text": "trust tides", "gold": [{"uri": "tides.md"}]}$$);
BEGIN;
UPDATE rag.gold SET grade = 1 WHERE grade = 2;
SELECT rag.evaluate('lore questions', settings => '{"mode": "bm25"}') AS other \gset
SAVEPOINT before;
SELECT rag.compare(:words, :other);
ROLLBACK TO before;
SELECT difference FROM rag.compare(:words, :other, '{ndcg@10}', force => true) WHERE stratum IS NULL;
ROLLBACK;
SELECT rag.compare(:words, :words, '{nDCG@7}');
SELECT rag.compare(:words, 0);
BEGIN;
SELECT count(*) FROM rag.ingest('More on tides.', 'more.md', collection => 'lore');
SELECT rag.evaluate('lore questions', settings => '{"mode": "bm25"}') AS other \gset
SELECT rag.compare(:words, :other);
ROLLBACK;

-- Gold that is not there any more is an error, not a zero.
BEGIN;
SELECT count(*) FROM rag.ingest('The ropes are new.', 'ropes.md', 'markdown', collection => 'lore');
SELECT rag.evaluate('lore questions', settings => '{"mode": "bm25"}');
ROLLBACK;
BEGIN;
DELETE FROM rag.document WHERE uri = 'ropes.md' AND source_id = (SELECT source_id FROM rag.sources WHERE name = 'inline/lore');
SELECT rag.evaluate('lore questions', settings => '{"mode": "bm25"}');
ROLLBACK;

-- Values of a setting, and parts left out.
CREATE TEMP TABLE swept AS SELECT * FROM rag.sweep('lore questions', 'rrf_k', '[10, 60]', name => 'swept');
SELECT s.setting_value, r.name, r.settings ->> 'rrf_k' AS rrf_k, s.ndcg_10 = r.ndcg_10 AS same, s.p50_ms > 0 AS timed FROM swept s JOIN rag.runs r ON r.id = s.run_id ORDER BY r.id;
SELECT rag.sweep('lore questions', 'rrf_k', '[10, "x"]');
SELECT rag.sweep('lore questions', 'rff_k', '[10]');
SELECT rag.sweep('lore questions', 'rrf_k', '10');
CREATE TEMP TABLE ablated AS SELECT * FROM rag.ablate('lore questions', settings => '{"document_weight": 1}');
SELECT a.variant, r.settings ->> 'mode' AS mode, r.settings ->> 'document_weight' AS document_weight FROM ablated a JOIN rag.runs r ON r.id = a.run_id ORDER BY r.id;
SELECT a.variant FROM rag.ablate('lore questions', '{"narrow": {"candidate_k": 2}}') a;

-- Settings by cross-validation: nothing to choose here, so what is in force stays.
SELECT fold, questions, settings, difference, p_randomization FROM rag.tune(:both_legs, '{"rrf_k": [1, 60]}', folds => 2);
SELECT count(*) FROM rag.tune(:both_legs, folds => 3);
SELECT rag.tune(:both_legs, '{"rrfk": [1]}');
SELECT rag.tune(:both_legs, '{"rrf_k": [0]}');
SELECT rag.tune(:both_legs, '{"rrf_k": 1}');
SELECT rag.tune(:both_legs, metric => 'nDCG');
SELECT rag.tune(:both_legs, folds => 9);
SELECT rag.tune(:words);

-- The share of the cosine, and the document prior, are tuned on scores; a run's own setting comes out as the run had it.
SELECT rag.evaluate('lore questions', settings => '{"exact": true, "fusion": "convex", "alpha": 0.5, "document_weight": 0.25}') AS mixed \gset
SELECT fold, questions, settings FROM rag.tune(:mixed, '{"alpha": [0.5]}', folds => 2);
SELECT (t.baseline - r.ndcg_10) < 1e-12 AS same FROM rag.tune(:mixed, '{"alpha": [0, 1], "document_weight": [0, 1]}', folds => 2) t, rag.runs r WHERE r.id = :mixed AND t.fold IS NULL;
SELECT rag.tune(:both_legs, '{"document_weight": [1]}');
SELECT rag.tune(:both_legs, '{"alpha": [2]}');
-- By hand from what the run kept: the score is the formula over the lists, and passages of one document have one rank in the prior.
WITH l AS (
    SELECT question_id, chunk_id, document_id, max(score) FILTER (WHERE stage = 'dense') AS dense, max(score) FILTER (WHERE stage = 'bm25') AS bm25,
           coalesce(max(score) FILTER (WHERE stage = 'document'), 0) AS document, max(score) FILTER (WHERE stage = 'fusion') AS fusion,
           max(rank) FILTER (WHERE stage = 'document') AS document_rank
      FROM rag.run_result WHERE run_id = :mixed GROUP BY 1, 2, 3),
best AS (SELECT question_id, nullif(max(bm25), 0) AS bm25, nullif(max(document), 0) AS document FROM l GROUP BY 1)
SELECT count(*) > 0 AS some, bool_and(abs(0.5 * l.dense + 0.5 * coalesce(l.bm25 / best.bm25, 0) + 0.25 * coalesce(l.document / best.document, 0) - l.fusion) < 1e-12) AS formula,
       max(document_rank) <= count(DISTINCT document_id) AS ranks
  FROM l JOIN best USING (question_id);

-- How well the first score tells what has an answer: one question without, between those with.
SELECT abs(abstention_auc - (SELECT avg(CASE WHEN coalesce(a.top_score, -1) > coalesce(u.top_score, -1) THEN 1 WHEN coalesce(a.top_score, -1) = coalesce(u.top_score, -1) THEN 0.5 ELSE 0 END)
         FROM rag.run_question a JOIN rag.question qa ON qa.id = a.question_id AND qa.answerable, rag.run_question u JOIN rag.question qu ON qu.id = u.question_id AND NOT qu.answerable
        WHERE a.run_id = r.id AND u.run_id = r.id)) < 1e-12 AS as_counted
  FROM rag.runs r WHERE r.id = :words;

-- What the corpus decides: a text that repeats the gold and is not judged, contenders, and what nobody judged.
BEGIN;
SELECT r.chunks FROM rag.ingest('The ropes of the harbour are old and many.' || E'\n\n' || 'A second word on ropes: never trust them, alone.' || E'\n\n' || 'Go.', 'copy.md', 'markdown', collection => 'lore', options => '{"chunk_tokens": 16, "overlap": 0}') r;
SELECT first_name, second_name, resemblance FROM rag.near_duplicates('lore', unit => 'chunk') ORDER BY 1, 2;
SELECT first_name, second_name, round(resemblance::numeric, 3) AS resemblance FROM rag.near_duplicates('lore', 0.6);
SELECT rag.evaluate('lore questions', settings => '{"mode": "bm25"}') AS copied \gset
SELECT question, stage, gold_rank, gold_score IS NOT NULL AS scored, contenders, unjudged, near_duplicates FROM rag.diagnose('lore questions') WHERE stage = 'bm25' ORDER BY question NULLS FIRST;
SELECT count(*) AS changed FROM rag.diagnose('lore questions', :copied, score_share => 0.1) a JOIN rag.diagnose('lore questions') b USING (question, stage) WHERE a.contenders <> b.contenders;
ROLLBACK;
SELECT count(*) FROM rag.near_duplicates('lore', 1.0, 'chunk');
SELECT rag.near_duplicates('lore', 0);
SELECT rag.near_duplicates('lore', unit => 'page');
SELECT rag.diagnose('lore questions', 0);
SELECT rag.create_question_set('empty', 'lore') > 0 AS made;
SELECT rag.diagnose('empty');
SELECT rag.diagnose('empty', :words);
SELECT rag.drop_question_set('empty');

-- The order of ingestion decides nothing: of equal passages those that came first are found as often as the last, in each leg, at the
-- cut of the candidates, and in the fusion of ranks.
BEGIN;
SELECT rag.create_collection('equals') > 0 AS made;
SELECT sum(r.chunks) FROM generate_series(1, 40) i, rag.ingest('same words in every file', 'f' || i, collection => 'equals') r;
SELECT rag.create_question_set('equals', 'equals') > 0 AS made;
SELECT rag.import_questions('equals', (SELECT jsonb_agg(jsonb_build_object('id', s || i, 'text', 'same words', 'strata', jsonb_build_array(s),
    'gold', jsonb_build_array(jsonb_build_object('uri', CASE s WHEN 'first' THEN 'f1' ELSE 'f40' END)))) FROM unnest('{first,last}'::text[]) s, generate_series(1, 60) i));
CREATE TEMP TABLE fair AS SELECT settings, rag.evaluate('equals', settings => settings::jsonb) AS id FROM unnest('{"{\"mode\": \"bm25\", \"candidate_k\": 10}","{\"mode\": \"dense\", \"exact\": true, \"candidate_k\": 10}","{\"exact\": true, \"candidate_k\": 10}","{\"exact\": true}"}'::text[]) settings;
SELECT r.settings, abs(a.value - b.value) < 0.25 AS fair, a.value BETWEEN 0.05 AND 0.5 AS found
  FROM fair r,
       LATERAL (SELECT avg(m.value) AS value FROM rag.run_metric m JOIN rag.question q ON q.id = m.question_id WHERE m.run_id = r.id AND m.metric = 'Recall@10' AND m.stage = 'final' AND q.key LIKE 'first%') a,
       LATERAL (SELECT avg(m.value) AS value FROM rag.run_metric m JOIN rag.question q ON q.id = m.question_id WHERE m.run_id = r.id AND m.metric = 'Recall@10' AND m.stage = 'final' AND q.key LIKE 'last%') b;
-- What a run kept is what it fused, so tuning begins where the run stands.
SELECT rag.evaluate('equals', settings => '{"exact": true, "candidate_k": 20}') AS kept \gset
SELECT abs(t.baseline - r.ndcg_10) < 1e-12 AS same FROM rag.tune(:kept, '{"rrf_k": [1]}') t, rag.runs r WHERE t.fold IS NULL AND r.id = :kept;
WITH l AS (SELECT question_id, chunk_id, max(rank) FILTER (WHERE stage = 'dense') AS dense, max(rank) FILTER (WHERE stage = 'bm25') AS bm25, max(score) FILTER (WHERE stage = 'fusion') AS fusion
             FROM rag.run_result WHERE run_id = :kept GROUP BY 1, 2)
SELECT count(*) > 0 AS some, bool_and(abs(coalesce(1.0 / (60 + dense), 0) + coalesce(1.0 / (60 + bm25), 0) - fusion) < 1e-12) AS formula FROM l WHERE fusion IS NOT NULL;
-- The depth of a run is part of what is compared, and of what is tuned.
SELECT rag.evaluate('equals', settings => '{"exact": true, "candidate_k": 20}', top_k => 3) AS short \gset
SELECT abs(t.baseline - r.ndcg_10) < 1e-12 AS same FROM rag.tune(:short, '{"rrf_k": [1]}') t, rag.runs r WHERE t.fold IS NULL AND r.id = :short;
SAVEPOINT before;
SELECT rag.compare(:kept, :short);
ROLLBACK TO before;
-- So are titles and metadata, which filters ask for.
UPDATE rag.document SET metadata = '{"a": 1}' WHERE uri = 'f7' AND source_id = (SELECT source_id FROM rag.sources WHERE name = 'inline/equals');
SELECT rag.evaluate('equals', settings => '{"exact": true, "candidate_k": 20}') AS other \gset
SAVEPOINT before;
SELECT rag.compare(:kept, :other);
ROLLBACK TO before;
-- A run keeps what a question was; an import gives gold new keys and changes nothing of what was lost.
SELECT rag.evaluate('equals', settings => '{"mode": "bm25", "candidate_k": 2}') AS few \gset
SELECT count(*) AS lost FROM rag.forensics(:few, 10, against => :other) \gset
SELECT rag.import_questions('equals', (SELECT jsonb_agg(jsonb_build_object('id', s || i, 'text', 'same words', 'strata', jsonb_build_array(s),
    'gold', jsonb_build_array(jsonb_build_object('uri', CASE s WHEN 'first' THEN 'f1' ELSE 'f40' END)))) FROM unnest('{first,last}'::text[]) s, generate_series(1, 60) i));
SELECT rag.evaluate('equals', settings => '{"mode": "bm25", "candidate_k": 2}') AS few \gset
SELECT count(*) = :lost AS same, count(*) > 0 AS some FROM rag.forensics(:few, 10, against => :other);
UPDATE rag.question SET answerable = false, strata = '{changed}' WHERE key LIKE 'last%' AND set_id = (SELECT id FROM rag.question_set WHERE name = 'equals');
SELECT stratum, questions FROM rag.compare(:other, :other, '{map}') ORDER BY 1 NULLS FIRST;
SELECT DISTINCT stratum, questions FROM rag.run_summary WHERE run_id = :other AND stage = 'final' ORDER BY 1 NULLS FIRST;
-- Rows that are missing are missed, and so are passages.
DELETE FROM rag.run_metric WHERE run_id = :other AND question_id = (SELECT min(question_id) FROM rag.run_question WHERE run_id = :other);
SAVEPOINT before;
SELECT rag.compare(:other, :other);
ROLLBACK TO before;
DELETE FROM rag.document WHERE uri = 'f1' AND source_id = (SELECT source_id FROM rag.sources WHERE name = 'inline/equals');
SELECT regexp_replace(m, '[0-9]+', 'N', 'g') AS message FROM (SELECT pg_temp.message_of(format('SELECT rag.tune(%s)', :kept)) AS m) x;
ROLLBACK;
SELECT rag.tune(:both_legs, metric => 'unjudged@10');
SELECT rag.tune(:both_legs, '{"fusion": ["rrf"], "alpha": [0.1]}');
SELECT rag.import_questions('lore questions', E'{"id": "a\\u0000b", "text": "t", "gold": [{"uri": "x"}]}');
INSERT INTO rag.gold (question_id, ordinal, uri, line_start, line_end) SELECT min(id), 99, 'x', -1, -1 FROM rag.question;
UPDATE rag.question SET strata = '{a,NULL}';
-- Who sees a run sees what was found: a set without a label tells of documents that have one.
BEGIN;
INSERT INTO rag.acl (role, label) VALUES (current_user, 'secret');
SELECT r.chunks FROM rag.ingest('The secret of the tides.', 'secret.md', collection => 'lore', acl => 'secret') r;
SELECT rag.evaluate('lore questions', settings => '{"mode": "bm25"}') > 0 AS ran;
ROLLBACK;

-- The same again, and over an index made anew.
SELECT repeat, reindexed, ndcg_10, same_lists FROM rag.reproducibility('lore questions', 2, settings => '{"exact": true}', reindex => true);
SELECT rag.reproducibility('lore questions', 1);

-- With the recipe of docs/security.md, and with nothing more.
BEGIN;
CREATE ROLE rag_reader;
GRANT USAGE ON SCHEMA rag TO rag_reader;
GRANT SELECT ON rag.chunk, rag.document, rag.source, rag.collection, rag.chunk_embedding, rag.model, rag.profile,
                rag.acl, rag.sources, rag.documents, rag.chunks TO rag_reader;
GRANT EXECUTE ON FUNCTION rag.search, rag.health, rag.rrf, rag.embed, rag.embed_query, rag.count_tokens TO rag_reader;
-- may also evaluate
CREATE ROLE rag_evaluator IN ROLE rag_reader;
GRANT SELECT, INSERT, UPDATE, DELETE ON rag.question_set, rag.question, rag.gold, rag.run, rag.run_question, rag.run_list,
                                        rag.run_metric TO rag_evaluator;
GRANT SELECT ON rag.runs, rag.run_summary, rag.run_result, rag.lexical_status TO rag_evaluator;
GRANT USAGE ON ALL SEQUENCES IN SCHEMA rag TO rag_evaluator;
GRANT EXECUTE ON FUNCTION rag.create_question_set, rag.drop_question_set, rag.import_questions(text, jsonb),
                          rag.import_questions(text, text, text, text), rag.evaluate, rag.sweep, rag.ablate, rag.drop_run,
                          rag.compare, rag.report, rag.complementarity, rag.forensics, rag.tune, rag.reproducibility,
                          rag.diagnose, rag.near_duplicates, rag.lexical_state TO rag_evaluator;
SELECT rag.create_question_set('secret questions', 'lore', acl => 'secret') > 0 AS made;
SET ROLE rag_evaluator;
SAVEPOINT before;
SELECT rag.drop_question_set('secret questions');
ROLLBACK TO before;
SELECT rag.create_question_set('my questions', 'lore') > 0 AS made;
SELECT rag.import_questions('my questions', '{"id": "1", "text": "tides", "gold": [{"uri": "tides.md"}]}');
SELECT ndcg_10 FROM rag.sweep('my questions', 'mode', '["bm25", "dense"]');
SELECT questions FROM rag.compare(:words, :words, '{map}');
SELECT count(*) FROM rag.complementarity(:both_legs);
SELECT count(*) FROM rag.forensics(:words);
SELECT rag.drop_question_set('my questions');
SELECT question_set, count(*) FROM rag.runs GROUP BY 1;
ROLLBACK;

-- BEIR and TREC.
SELECT rag.create_question_set('beir', 'lore') > 0 AS made;
SELECT rag.import_questions('beir', '{"_id": "1", "text": "tides"}' || E'\n' || '{"_id": "2", "text": "lamps"}', E'query-id\tcorpus-id\tscore\n1\tT\t2\n');
SELECT rag.import_questions('beir', E'1\ttides\n', E'1 0 T 2\n', 'trec');
SELECT rag.evaluate('beir');

-- What runs count stays; what goes, goes with all that is its own.
DELETE FROM rag.question WHERE key = 'lost';
TRUNCATE rag.run;
SELECT rag.drop_run(:words);
SELECT rag.drop_run(:words);
SELECT rag.drop_collection('lore');
SELECT rag.drop_source('inline/lore');
SELECT rag.drop_collection('lore');
SELECT rag.drop_question_set('lore questions'), rag.drop_question_set('beir');
SELECT rag.drop_collection('lore');
SELECT (SELECT count(*) FROM rag.question) + (SELECT count(*) FROM rag.gold) + (SELECT count(*) FROM rag.run) + (SELECT count(*) FROM rag.run_list)
     + (SELECT count(*) FROM rag.run_metric) + (SELECT count(*) FROM rag.run_question) AS left_over;
