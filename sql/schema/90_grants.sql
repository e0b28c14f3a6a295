-- SPDX-License-Identifier: PostgreSQL
-- Comments on the functions, and rights. Nothing is granted to PUBLIC; see docs/security.md for the recipes.

COMMENT ON FUNCTION rag.create_collection(text, text) IS 'adds a collection with an embedding model; returns its key';
COMMENT ON FUNCTION rag.drop_collection(text) IS 'drops a collection that has no sources';
COMMENT ON FUNCTION rag.add_source(text, text, text, jsonb, text, text, double precision, text, text) IS
    'adds a source (kind text, markdown or jsonl) at an absolute path; CALL rag.sync reads it; returns its key';
COMMENT ON FUNCTION rag.alter_source(text, text, jsonb, text, double precision, boolean, text) IS
    'changes what is given of a source; the next rag.sync applies it, a label (acl) holds at once';
COMMENT ON FUNCTION rag.drop_source(text) IS
    'drops a source with its documents, chunks and vectors; returns the number of its documents';
COMMENT ON FUNCTION rag.load_model(text, text, text) IS
    'registers a folder with an ONNX file and tokenizer.json as a model (kind embedding); returns its key';
COMMENT ON FUNCTION rag.ingest(text, text, text, jsonb, text, jsonb, text) IS
    'stores and embeds one text (kind text or markdown) at once; the same uri again replaces it';
COMMENT ON FUNCTION rag.ingest(bytea, text, text, jsonb, text, jsonb, text) IS
    'stores and embeds one document given as bytes at once; the same uri again replaces it';
COMMENT ON FUNCTION rag.enqueue_sync(text) IS
    'queues a sync that a background worker runs after commit; returns the job (rag.jobs shows it)';
COMMENT ON FUNCTION rag.retry(bigint) IS 'gives a job of rag.failed_jobs new attempts';
COMMENT ON FUNCTION rag.repair() IS
    'makes HNSW indexes that a restore has left out or that are not valid, makes BM25 indexes anew that do not have every passage, queues vectors for chunks that have none, and starts waiting jobs; returns what was done; searches go on meanwhile';
COMMENT ON FUNCTION rag.terms(text, text, text) IS
    'terms by which the BM25 leg finds a text: lexemes of a text search configuration, identifiers with their parts, pairs of CJK characters; those of emphasis count two times more, as those of a title do';
COMMENT ON FUNCTION rag.compact(text) IS
    'merges the BM25 index of a collection, or of all, into one segment for each label; returns how many segments were merged';
COMMENT ON FUNCTION rag.reindex_lexical(text) IS
    'makes the BM25 index of a collection, or of all, anew from its passages; writers wait meanwhile, searches do not; returns the number of passages';
COMMENT ON FUNCTION rag.sync_begin(text) IS 'step of rag.sync: starts a run and returns it';
COMMENT ON FUNCTION rag.sync_list(bigint) IS 'step of rag.sync: lists the source';
COMMENT ON FUNCTION rag.sync_batch(bigint) IS 'step of rag.sync: reads and stores some documents; returns whether there may be more';
COMMENT ON FUNCTION rag.sync_fail(bigint, text) IS 'step of rag.sync: records why a run failed';
COMMENT ON FUNCTION rag.search(text, integer, jsonb, text, text, integer, integer, text, text, jsonb, vector) IS
    'ranked, cited evidence for a query by dense vectors and BM25, fused; see docs/search.md for filter and settings';
COMMENT ON FUNCTION rag.search_many(text[], integer, jsonb, text, text, integer, integer, text, text, jsonb) IS
    'rag.search for each of some queries, by one snapshot and with few requests to the engine; ordinal: which query, from 1';
COMMENT ON FUNCTION rag.set_profile(text, jsonb, text) IS
    'stores settings under a name, over those of a profile base if one is named, and returns the version that has them; settings that its newest version has already make no other';
COMMENT ON FUNCTION rag.drop_profile(text) IS
    'deletes all versions of a profile, or the one that name@version means; what is built in stays; returns how many';
COMMENT ON FUNCTION rag.diff_profiles(text, text) IS
    'settings that are in force by one profile and not by another; each is name or name@version';
COMMENT ON FUNCTION rag.profile_settings(text) IS 'all settings that are in force by a profile';
COMMENT ON FUNCTION rag.export_profiles(text[]) IS
    'profiles, or the newest version of each, as JSON for rag.import_profiles';
COMMENT ON FUNCTION rag.import_profiles(jsonb) IS
    'stores exported profiles and returns the version that each has here; one whose newest version is the same makes no other';
COMMENT ON FUNCTION rag.create_question_set(text, text, text, text) IS
    'adds a question set for a collection; with a label (acl) only its roles see the set and its runs; returns its key';
COMMENT ON FUNCTION rag.drop_question_set(text) IS 'drops a question set with its questions and runs; returns the number of questions';
COMMENT ON FUNCTION rag.import_questions(text, jsonb) IS
    'makes a question set have exactly these questions, given as JSON objects with their gold; returns their number';
COMMENT ON FUNCTION rag.import_questions(text, text, text, text) IS
    'makes a question set have exactly the questions of a text: format jsonl (an object a line, or an array), or beir or trec with their qrels; returns their number';
COMMENT ON FUNCTION rag.evaluate(text, text, jsonb, text, integer) IS
    'asks all questions of a set with a profile and settings, and stores lists, metrics and times; returns the key of the run; see rag.runs, rag.run_summary, rag.run_result';
COMMENT ON FUNCTION rag.sweep(text, text, jsonb, text, jsonb, text, integer) IS
    'rag.evaluate with one setting at each value of a JSON array; returns the runs';
COMMENT ON FUNCTION rag.ablate(text, jsonb, text, jsonb, integer) IS
    'rag.evaluate with variants: an object of settings by name, or by default each leg alone, plain fusion, and what is in force without each of its parts; returns the runs';
COMMENT ON FUNCTION rag.drop_run(bigint) IS 'deletes a run with all that it measured';
COMMENT ON FUNCTION rag.compare(bigint, bigint, text[], boolean) IS
    'second run minus first, paired by question, over all and in each stratum: bootstrap interval (95 %) and p, randomisation p, by clusters; wins, losses, the smallest difference that so many questions show, and the share of other first results; refuses runs that did not see the same unless force';
COMMENT ON FUNCTION rag.report(bigint, bigint) IS
    'one HTML page about a run, or about it and another one of the same question set: what was run, metrics of all stages with differences, plots, and the questions that went worst or changed most; needs no other file';
COMMENT ON FUNCTION rag.complementarity(bigint, integer[]) IS
    'relevant items that only the dense leg, only the BM25 leg, both or neither have within the first k, and the mean Jaccard index of the two lists';
COMMENT ON FUNCTION rag.forensics(bigint, integer, bigint) IS
    'gold that is not among the first k of a run, or only what another run had there: which stage lost it, its ranks before and after, and what stands in its place with role, source and margin';
COMMENT ON FUNCTION rag.tune(bigint, jsonb, text, integer) IS
    'chooses settings of the fusion (rrf_k, weights, alpha, document_weight) on the lists of a run by cross-validation: for each fold what the others chose and its mean on questions that did not choose it, against the settings in force; the last row (fold null) is the whole estimate, with the settings that all questions choose';
COMMENT ON FUNCTION rag.diagnose(text, bigint, integer, double precision, double precision) IS
    'what corpus and gold decide before retrieval does, for each question and stage of a run (the newest if none is named), question null: means; gold_rank and gold_score: of the best gold; contenders: others that score at least score_share of that; unjudged: share of the first k without a grade; near_duplicates: texts that are not relevant and resemble gold';
COMMENT ON FUNCTION rag.near_duplicates(text, double precision, text) IS
    'pairs of documents of a collection (unit chunk: of passages) that have at least that share of their shingles of five words in common; of a crowd of more than 64 that look alike, pairs with its first';
COMMENT ON FUNCTION rag.reproducibility(text, integer, text, jsonb, boolean, text, integer) IS
    'runs the same several times, with reindex over an HNSW index made anew each time; what differs is what a change must exceed; same_lists: share of questions with the list of the first run';
COMMENT ON FUNCTION rag.rrf(jsonb, integer, double precision[]) IS
    'reciprocal rank fusion of ranked lists of ids: score = sum of weight / (rrf_k + rank), rank from 1';
COMMENT ON FUNCTION rag.embed(text[], text) IS 'vectors of passages, one row per text; text over the window is cut with a warning';
COMMENT ON FUNCTION rag.embed_query(text, text) IS 'vector of a query';
COMMENT ON FUNCTION rag.count_tokens(text, text) IS 'tokens of a text for a model, special tokens included';
COMMENT ON FUNCTION rag.health() IS 'one row: state of the engine (stopped until first use), its models, workers and what confines them (sandbox), and whether an HNSW index is missing (repair_needed)';

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA rag FROM PUBLIC;
REVOKE ALL ON ALL PROCEDURES IN SCHEMA rag FROM PUBLIC;
