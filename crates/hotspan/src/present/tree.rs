//! Trees as text: branches drawn, times coloured by their share.

use hotspan_analyze::Tree;
use hotspan_store::visible;
use serde_json::{Value, json};

/// Colours by the share of the whole, in percent.
fn color(share: f64) -> &'static str {
    match share {
        share if share >= 60.0 => "\x1b[31m",
        share if share >= 20.0 => "\x1b[33m",
        share if share >= 5.0 => "\x1b[32m",
        _ => "\x1b[92;2m",
    }
}

/// Branches beyond this are told by their number: nobody reads them, and a deep tree would be mostly white space.
const DEEPEST_DRAWN: usize = 100;

pub(crate) fn render(tree: &Tree, colored: bool) -> String {
    let last = tree.last_among_sisters();
    let mut out = format!("{}\n\n", visible(&tree.title));
    // For each depth, whether the branch there goes on below.
    let mut branches: Vec<bool> = Vec::new();
    for (row, &is_last) in tree.rows.iter().zip(&last) {
        branches.truncate(row.depth);
        for &goes_on in branches.iter().take(DEEPEST_DRAWN).skip(1) {
            out.push_str(if goes_on { "│  " } else { "   " });
        }
        if row.depth > DEEPEST_DRAWN {
            out.push_str(&format!("(depth {}) ", row.depth));
        }
        if row.depth > 0 {
            out.push_str(if is_last { "└─ " } else { "├─ " });
        }
        branches.push(!is_last);
        let (start, dim, end) = if colored { (color(row.share), "\x1b[2m", "\x1b[0m") } else { ("", "", "") };
        out.push_str(&format!("{start}{} {:.1} %{end}  {}", row.total, row.share, visible(&row.label)));
        if !row.location.is_empty() {
            out.push_str(&format!("  {dim}{}{end}", visible(&row.location)));
        }
        if row.own.0 > 0 && row.own != row.total {
            out.push_str(&format!("  {dim}[own {}]{end}", row.own));
        }
        if row.hidden > 0 {
            out.push_str(&format!("  {dim}[{} library frames hidden]{end}", row.hidden));
        }
        out.push('\n');
    }
    out
}

/// The rows as JSON, in the order of the tree.
pub(crate) fn json(tree: &Tree) -> Value {
    let rows = tree.rows.iter().map(|row| {
        json!({
            "depth": row.depth,
            "function": row.label,
            "place": row.location,
            "total_ns": row.total.0,
            "own_ns": row.own.0,
            "share_percent": row.share,
            "hidden": row.hidden,
        })
    });
    Value::Array(rows.collect())
}

#[cfg(test)]
mod tests {
    use hotspan_analyze::TreeRow;
    use hotspan_store::Duration;

    use super::*;

    #[test]
    fn branches_are_drawn() {
        let row = |depth, label: &str, total, own| TreeRow {
            depth,
            label: label.to_owned(),
            location: String::new(),
            total: Duration(total),
            own: Duration(own),
            share: total as f64,
            hidden: 0,
        };
        let rows =
            vec![row(0, "main", 100, 10), row(1, "a", 60, 0), row(2, "b", 60, 60), row(1, "c\u{1b}", 30, 30)];
        let tree = Tree { title: "100 ns".to_owned(), rows };
        let expected = "100 ns\n\n100 ns 100.0 %  main  [own 10 ns]\n├─ 60 ns 60.0 %  a\n│  └─ 60 ns 60.0 %  b\n└─ 30 ns 30.0 %  c\\x1b\n";
        assert_eq!(render(&tree, false), expected);
        assert!(render(&tree, true).contains("\x1b[31m100 ns"));
    }
}
