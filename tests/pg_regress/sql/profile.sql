-- rag.set_profile, rag.drop_profile, rag.diff_profiles, rag.profile_settings, rag.export_profiles, rag.import_profiles, rag.profiles

SELECT name, version, settings, built_in, newest FROM rag.profiles ORDER BY name, version;

-- Versions only grow, and settings that are there already make none.
SELECT rag.set_profile('code', '{"fusion": "convex", "alpha": 0.95}');
SELECT rag.set_profile('code', '{"alpha": 0.95, "fusion": "convex"}');
SELECT rag.set_profile('code', '{"fusion": "convex", "alpha": 0.9}');
SELECT rag.set_profile('code', '{"fusion": "convex", "alpha": 0.95}');
SELECT name, version, settings, built_in, newest FROM rag.profiles WHERE name = 'code' ORDER BY version;

-- Over another: what that one says stays where the new one says nothing.
SELECT rag.set_profile('code-exact', '{"exact": true, "alpha": 0.8}', 'code');
SELECT rag.set_profile('code-old', '{}', base => 'code@2');
SELECT name, settings FROM rag.profiles WHERE name LIKE 'code-%' ORDER BY name;
SELECT rag.set_profile('empty', 'null');
SELECT rag.profile_settings('empty') = rag.profile_settings('rrf') AS defaults;
SELECT rag.profile_settings('code-exact');

-- A search takes the newest, or the one that is named.
SELECT rag.create_collection('profiles') > 0 AS made;
SELECT document_id > 0 AS stored FROM rag.ingest('The harbour master keeps a log of tides.', 'tides', 'text', collection => 'profiles');
SELECT rag.set_profile('leg', '{"mode": "bm25"}');
SELECT rag.set_profile('leg', '{"mode": "dense"}');
SELECT dense_rank, bm25_rank FROM rag.search('tides', collection => 'profiles', profile => 'leg');
SELECT dense_rank, bm25_rank FROM rag.search('tides', collection => 'profiles', profile => 'leg@2');
SELECT dense_rank, bm25_rank FROM rag.search('tides', collection => 'profiles', profile => 'leg@1');
SELECT dense_rank, bm25_rank FROM rag.search('tides', collection => 'profiles', profile => 'leg@3');
SELECT dense_rank, bm25_rank FROM rag.search('tides', collection => 'profiles', profile => 'leg@x');
SELECT dense_rank, bm25_rank FROM rag.search('tides', collection => 'profiles', profile => 'legs@1');

-- Also the built-in ones, which come back when that version goes.
SELECT rag.set_profile('default', '{"mode": "bm25"}');
SELECT dense_rank, bm25_rank FROM rag.search('tides', collection => 'profiles');
SELECT dense_rank, bm25_rank FROM rag.search('tides', collection => 'profiles', profile => 'default@1');
SELECT rag.drop_profile('default');
SELECT dense_rank, bm25_rank FROM rag.search('tides', collection => 'profiles');
SELECT rag.drop_profile('default');
SELECT rag.drop_profile('rrf@1');

-- Differences are of what is in force.
SELECT * FROM rag.diff_profiles('code', 'code@2');
SELECT * FROM rag.diff_profiles('code-exact');
SELECT * FROM rag.diff_profiles('rrf', 'default');
SELECT * FROM rag.diff_profiles('code', 'cod');

-- They travel.
SELECT rag.export_profiles(ARRAY['code', 'leg@1']);
CREATE TEMP TABLE luggage AS SELECT rag.export_profiles() AS profiles;
SELECT p ->> 'name' AS name, p -> 'version' AS version FROM luggage, jsonb_array_elements(profiles) p ORDER BY (p ->> 'name') COLLATE "C";
SELECT i.* FROM luggage, rag.import_profiles(profiles) i WHERE name LIKE 'code%' ORDER BY 1;
SELECT rag.drop_profile('code'), rag.drop_profile('leg@2');
SELECT i.* FROM luggage, rag.import_profiles(profiles) i WHERE name LIKE 'code%' OR name = 'leg' ORDER BY 1;
SELECT * FROM rag.import_profiles('{"name": "by hand", "settings": {"rrf_k": 10}}');
SELECT name, version, settings FROM rag.profiles WHERE NOT built_in ORDER BY name COLLATE "C", version;

-- What cannot be a profile is none, and nothing of its import stays.
SELECT rag.set_profile('x', '{"rrfk": 10}');
SELECT rag.set_profile('x', '{"rrf_k": 0}');
SELECT rag.set_profile('x', '[1]');
SELECT rag.set_profile('x', NULL);
SELECT rag.set_profile(NULL, '{}');
SELECT rag.set_profile('', '{}');
SELECT rag.set_profile(' x', '{}');
SELECT rag.set_profile('x@1', '{}');
SELECT rag.set_profile('x', '{}', 'cod');
SELECT rag.set_profile('x', '{"fuse_by": "source"}');
SELECT rag.drop_profile('cod');
SELECT rag.drop_profile('code@9');
SELECT * FROM rag.import_profiles('[{"name": "y", "settings": {}}, {"name": "z", "settings": {"rrfk": 1}}]');
SELECT * FROM rag.import_profiles('[{"name": "y"}, {"name": "y"}]');
SELECT * FROM rag.import_profiles('"y"');
SELECT * FROM rag.import_profiles(NULL);
SELECT rag.export_profiles(ARRAY['code', NULL]);
SELECT count(*) FROM rag.profiles WHERE name IN ('x', 'y', 'z');

-- Who may not write them does not, and reads them by the view.
CREATE ROLE rag_profile_reader;
GRANT USAGE ON SCHEMA rag TO rag_profile_reader;
GRANT SELECT ON rag.profile, rag.profiles TO rag_profile_reader;
GRANT EXECUTE ON FUNCTION rag.set_profile, rag.drop_profile, rag.diff_profiles, rag.profile_settings, rag.export_profiles,
                          rag.import_profiles TO rag_profile_reader;
SET ROLE rag_profile_reader;
SELECT rag.set_profile('mine', '{}');
SELECT rag.drop_profile('code');
SELECT setting FROM rag.diff_profiles('code');
SELECT count(*) FROM rag.profiles WHERE name = 'code';
RESET ROLE;
DROP OWNED BY rag_profile_reader;
DROP ROLE rag_profile_reader;

DELETE FROM rag.profile WHERE id >= 100;
SELECT rag.drop_source('inline/profiles');
SELECT rag.drop_collection('profiles');
