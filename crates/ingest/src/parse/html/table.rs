// SPDX-License-Identifier: PostgreSQL

//! Tables: which are data, and their rows as cells.
//!
//! A table that only lays out a page is read as the blocks in its cells.

use super::tree::Tree;

/// Most columns over which a cell may spread.
const MAX_SPAN: usize = 64;

/// Rows of a table; each row is its cells and whether all of them name what stands below.
pub struct Rows {
    /// Captions.
    pub captions: Vec<u32>,
    /// Cells of each row; `None` where a cell above or beside spreads.
    pub rows: Vec<Vec<Option<u32>>>,
    /// Whether the first row is a header.
    pub header: bool,
}

/// The rows of a table of data, without what is `removed`; `None` for any other.
pub fn rows(tree: &Tree, table: u32, removed: &dyn Fn(u32) -> bool) -> Option<Rows> {
    if tree.nodes[table as usize].layout
        || tree.attribute(table, "role").is_some_and(|r| r == "presentation" || r == "none")
    {
        return None;
    }
    let mut found = Rows { captions: Vec::new(), rows: Vec::new(), header: false };
    let mut named = false;
    // For each column, how many more rows the cell above spreads over.
    let mut above: Vec<usize> = Vec::new();
    let groups = tree.children(table).filter(|at| !removed(*at));
    let lines = groups.flat_map(|at| match tree.name(at) {
        "thead" | "tbody" | "tfoot" => tree.children(at).filter(|at| !removed(*at)).collect(),
        _ => vec![at],
    });
    for line in lines {
        if tree.name(line) != "tr" {
            if tree.name(line) == "caption" {
                found.captions.push(line);
            }
            continue;
        }
        let mut row = Vec::new();
        let mut names = 0;
        let mut cells = 0;
        for cell in tree.children(line).filter(|at| matches!(tree.name(*at), "td" | "th") && !removed(*at)) {
            spread(&mut row, &mut above);
            let number = |name| tree.attribute(cell, name).and_then(|n| n.trim().parse::<usize>().ok()).unwrap_or(1);
            let (wide, high) = (number("colspan").clamp(1, MAX_SPAN), number("rowspan").clamp(1, 1000));
            for column in 0..wide {
                if row.len() < MAX_SPAN && high > 1 {
                    above.resize(above.len().max(row.len() + 1), 0);
                    above[row.len()] = high - 1;
                }
                row.push((column == 0).then_some(cell));
            }
            cells += 1;
            names += usize::from(tree.name(cell) == "th");
        }
        spread(&mut row, &mut above);
        if cells == 0 {
            continue;
        }
        if found.rows.is_empty() {
            let head = tree.nodes.get(tree.nodes[line as usize].parent as usize).is_some() && {
                tree.name(tree.nodes[line as usize].parent) == "thead"
            };
            found.header = head || names == cells;
        }
        named |= names > 0;
        found.rows.push(row);
    }
    let columns = found.rows.iter().map(Vec::len).max().unwrap_or(0);
    let data = named || (found.rows.len() > 1 && columns > 1);
    // Without any names the first row is most often meant to hold them.
    found.header |= !named;
    (data && columns > 0).then_some(found)
}

/// Leaves out the columns into which cells of rows above spread.
fn spread(row: &mut Vec<Option<u32>>, above: &mut [usize]) {
    while let Some(left) = above.get_mut(row.len()).filter(|left| **left > 0) {
        *left -= 1;
        row.push(None);
    }
}
