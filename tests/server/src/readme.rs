// SPDX-License-Identifier: PostgreSQL

//! The SQL blocks of a Markdown page and the output that the page shows for them.
//!
//! A block opens with a fence whose info string is exactly `sql`; a block of `text` that follows with nothing but blank
//! lines between is what psql prints for it. Everything else on the page is for people.

/// One block to execute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Line of its opening fence, from 1.
    pub line: usize,
    /// The SQL.
    pub sql: String,
    /// The output shown for it.
    pub output: Option<String>,
}

/// The blocks of a page, in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut lines = page.lines().enumerate();
    let mut adjacent = false;
    while let Some((at, line)) = lines.next() {
        let Some(info) = line.strip_prefix("```") else {
            adjacent &= line.trim().is_empty();
            continue;
        };
        let body: Vec<&str> = lines.by_ref().map(|(_, l)| l).take_while(|l| l.trim_end() != "```").collect();
        let body = body.join("\n");
        match (info.trim(), blocks.last_mut()) {
            ("sql", _) => {
                blocks.push(Block { line: at + 1, sql: body, output: None });
                adjacent = true;
                continue;
            }
            ("text", Some(last)) if adjacent => last.output = Some(body),
            _ => {}
        }
        adjacent = false;
    }
    blocks
}

/// Output without what nobody sees: space at the end of lines, blank lines around and between tables.
pub fn normalised(output: &str) -> String {
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|l| !l.is_empty()).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_belongs_to_the_block_right_before() {
        let page = "# T\n```sql\nSELECT 1;\n```\n\n```text\n 1\n```\n```text\nno\n```\n\n```sql\nSELECT 2;\n```\nProse.\n```text\nno\n```\n\
                    ```bash\nls\n```\n```sql ignore\nDROP;\n```\n```sql\nSELECT 3;\n\nSELECT 4;\n```\n";
        let found = blocks(page);
        let shown: Vec<_> = found.iter().map(|b| (b.line, b.sql.as_str(), b.output.as_deref())).collect();
        assert_eq!(
            shown,
            [(2, "SELECT 1;", Some(" 1")), (13, "SELECT 2;", None), (26, "SELECT 3;\n\nSELECT 4;", None)]
        );
    }

    #[test]
    fn invisible_space_does_not_count() {
        assert_eq!(normalised(" a | b \n---+---\n 1 | 2\n(1 row)\n\n"), " a | b\n---+---\n 1 | 2\n(1 row)");
    }
}
