// SPDX-License-Identifier: PostgreSQL

//! What a backend keeps of the index between two queries.
//!
//! Owns one bounded store for directories, pages and decoded blocks. Segments never change and their ids are not used
//! twice, so nothing in it can become wrong and nothing is ever invalidated; what was not asked for the longest goes first.

use super::postings::{Block, Directory, Page};
use super::shelf::Stored;
use lru::LruCache;
use std::cell::RefCell;
use std::rc::Rc;

/// The name of something kept: a segment and what of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Key {
    /// What the dictionary of a segment says about a term.
    Term(i64, String),
    /// The directory of a list.
    Directory(i64, u32),
    /// A page of a list.
    Page(i64, u32, u32),
    /// A block of a page.
    Block(i64, u32, u32, u32),
}

/// Something kept.
#[derive(Debug, Clone)]
pub enum Value {
    /// Of [`Key::Term`]; `None` when the segment does not have the term.
    Term(Option<Rc<Stored>>),
    /// Of [`Key::Directory`].
    Directory(Rc<Directory>),
    /// Of [`Key::Page`].
    Page(Rc<Page>),
    /// Of [`Key::Block`].
    Block(Rc<Block>),
}

impl Value {
    /// Bytes it takes in memory, roughly.
    fn memory(&self) -> usize {
        let entry = size_of::<(Key, Self)>() + 64;
        entry
            + match self {
                Self::Term(stored) => stored.as_ref().map_or(32, |s| 32 + s.memory()),
                Self::Directory(directory) => directory.memory(),
                Self::Page(page) => page.memory(),
                Self::Block(_) => size_of::<Block>(),
            }
    }
}

/// The store.
#[derive(Debug)]
pub struct Cache {
    kept: RefCell<Kept>,
}

#[derive(Debug)]
struct Kept {
    values: LruCache<Key, Value>,
    bytes: usize,
    limit: usize,
}

impl Cache {
    /// A store of at most `limit` bytes; 0 keeps nothing.
    pub fn new(limit: usize) -> Self {
        Self { kept: RefCell::new(Kept { values: LruCache::unbounded(), bytes: 0, limit }) }
    }

    /// Changes the limit, and lets go what is beyond.
    pub fn resize(&self, limit: usize) {
        let mut kept = self.kept.borrow_mut();
        kept.limit = limit;
        kept.shrink();
    }

    /// Bytes kept.
    pub fn bytes(&self) -> usize {
        self.kept.borrow().bytes
    }

    /// What is kept under a key.
    pub fn get(&self, key: &Key) -> Option<Value> {
        self.kept.borrow_mut().values.get(key).cloned()
    }

    /// Keeps a value.
    pub fn put(&self, key: Key, value: Value) {
        let mut kept = self.kept.borrow_mut();
        if kept.limit == 0 {
            return;
        }
        kept.bytes += value.memory();
        if let Some(old) = kept.values.put(key, value) {
            kept.bytes -= old.memory();
        }
        kept.shrink();
    }
}

impl Kept {
    fn shrink(&mut self) {
        while self.bytes > self.limit {
            let Some((_, value)) = self.values.pop_lru() else { break };
            self.bytes -= value.memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_holds_and_what_was_not_asked_for_goes() {
        let cache = Cache::new(4000);
        let key = |n: usize| Key::Term(1, n.to_string());
        (0..10).for_each(|n| cache.put(key(n), Value::Term(None)));
        assert!(cache.get(&key(0)).is_some());
        (10..500).for_each(|n| {
            cache.put(key(n), Value::Term(None));
            assert!(cache.bytes() <= 4000);
            assert!(cache.get(&key(0)).is_some(), "it was asked for each time");
        });
        assert!(cache.get(&key(1)).is_none());
        cache.resize(0);
        assert_eq!(cache.bytes(), 0);
        cache.put(key(1), Value::Term(None));
        assert!(cache.get(&key(1)).is_none());
    }

    #[test]
    fn a_key_put_twice_counts_once() {
        let cache = Cache::new(10_000);
        let key = || Key::Directory(1, 2);
        cache.put(Key::Term(1, "a".into()), Value::Term(None));
        let one = cache.bytes();
        cache.put(Key::Term(1, "a".into()), Value::Term(None));
        assert_eq!(cache.bytes(), one);
        assert!(cache.get(&key()).is_none());
    }
}
