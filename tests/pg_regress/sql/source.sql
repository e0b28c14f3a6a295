-- rag.add_source, rag.alter_source, rag.drop_source
SELECT rag.add_source('notes', 'markdown', '/srv/notes', '{"chunk_tokens": 100}', authority => 0.5, project => 'p') > 0 AS added;
SELECT name, kind, location, collection, model, project, authority, enabled, options, text_search_config
  FROM rag.sources;
SELECT rag.add_source('notes', 'markdown', '/srv/notes');
SELECT rag.add_source('', 'markdown', '/srv/notes');
SELECT rag.add_source('a', 'markdwon', '/srv/notes');
SELECT rag.add_source('a', 'table', '/srv/notes');
SELECT rag.add_source('a', 'inline', '/srv/notes');
SELECT rag.add_source('a', 'markdown', 'notes');
-- a URL of a kind that is never read from one is refused here and not by a sync
SELECT rag.add_source('a', 'zip', 'https://example.org/docs.zip');
SELECT rag.add_source('a', 'jsonl', 'https://example.org/records.jsonl');
SELECT rag.add_source('a', 'markdown', '/srv/notes', '{"chunk_token": 3}');
SELECT rag.add_source('a', 'markdown', '/srv/notes', '{"chunk_tokens": 3}');
SELECT rag.add_source('a', 'markdown', '/srv/notes', '{"keep_raw": true}');
SELECT rag.add_source('a', 'markdown', '/srv/notes', '{"glob": ["*.md", "[a"]}');
SELECT rag.add_source('a', 'markdown', '/srv/notes', '[]');
SELECT rag.add_source('a', 'markdown', '/srv/notes', '{"embed_template": "{titel}"}');
SELECT rag.add_source('a', 'markdown', '/srv/notes', '{"text_search_config": "englisch"}');
SELECT rag.add_source('a', 'markdown', '/srv/notes', collection => 'defualt');
SELECT rag.add_source('a', 'markdown', '/srv/notes', authority => 0);
SELECT rag.add_source('a', 'markdown', '/srv/notes', authority => 'NaN');
SELECT rag.add_source('a', 'markdown', '/srv/notes', schedule => '@daily');
SELECT rag.alter_source('notes', options => '{"text_search_config": "simple"}', enabled => false, location => '/srv/n2');
SELECT name, location, enabled, options, text_search_config, project, authority FROM rag.sources;
SELECT rag.alter_source('notes', options => '{"chunking": "sentences"}');
SELECT rag.alter_source('note', enabled => true);
CALL rag.sync('notes');
SELECT rag.add_source('packed', 'zip', '/srv/docs.zip') > 0 AS added;
SELECT rag.alter_source('packed', location => 'https://example.org/docs.zip');
SELECT name, location FROM rag.sources WHERE name = 'packed';
-- what means nothing at a location is refused, too
SELECT rag.add_source('a', 'blog', 'https://example.org/feed', '{"glob": "*.md"}');
SELECT rag.add_source('a', 'html', 'https://example.org/', '{"ignore": "drafts"}');
SELECT rag.add_source('a', 'git', '/srv/repo', '{"limits": {"max_download_bytes": 5}}');
SELECT rag.add_source('a', 'forum', '/srv/threads.json', '{"glob": "*.json"}');
SELECT rag.add_source('pages', 'html', '/srv/pages', '{"glob": "*.html"}') > 0 AS added;
SELECT rag.alter_source('pages', location => 'https://example.org/');
SELECT name, location FROM rag.sources WHERE name = 'pages';
-- a host that is not on the list, and more than the operator leaves to clones
SELECT rag.alter_source('pages', 'https://example.org/', '{}');
SET pg_rag.allowed_hosts = '*.example.org, example.com';
SELECT rag.alter_source('pages', 'https://example.org/');
SELECT rag.alter_source('pages', 'https://www.example.org/');
SELECT rag.alter_source('pages', 'https://example.com:8443/');
SELECT rag.add_source('repo', 'git', 'https://example.com/r', '{"limits": {"max_download_bytes": 8053063681}}') > 0 AS added;
SELECT rag.alter_source('repo', options => '{"limits": {"max_download_bytes": 8053063680}}');
RESET pg_rag.allowed_hosts;
SELECT rag.drop_source('repo');
SELECT rag.drop_source('pages');
SELECT rag.drop_source('packed');
SELECT rag.drop_source('notes');
SELECT rag.drop_source('notes');

\set VERBOSITY terse
SELECT rag.add_source(repeat('n', 256), 'markdown', '/srv/x');
\set VERBOSITY default
