//! Flame graphs: one SVG that needs nothing else, with search and zoom; the outermost calls on top.

use std::fmt::Write as _;
use std::io::{self, Write};

use hotspan_analyze::Model;
use hotspan_analyze::call_tree::{CallTree, Node, TreeOptions, TreeSource, call_tree, is_library};
use hotspan_store::FrameKind;

use super::Exporter;
use super::frame_text::frame_text;
use super::xml_text::escaped;

/// The exporter of flame graphs.
pub struct Flamegraph {
    /// Whether lines are told apart, and threads.
    pub options: TreeOptions,
    /// What is written above it.
    pub title: Option<String>,
}

/// What `--to flamegraph` writes.
pub const FLAMEGRAPH: Flamegraph = Flamegraph {
    options: TreeOptions { lines: false, threads: false, busy_only: false, merge_steps: false },
    title: None,
};

const WIDTH: f64 = 1200.0;
const MARGIN: f64 = 10.0;
const ROW: usize = 17;
const TOP: usize = 64;
/// Narrower than this no one sees it, and a file of a million slivers opens in no browser.
const NARROWEST: f64 = 0.08;
const DEEPEST: usize = 400;
const CHARACTER: f64 = 7.0;

const SCRIPT: &str = include_str!("flamegraph.js");
const STYLE: &str = include_str!("flamegraph.css");

impl Exporter for Flamegraph {
    fn name(&self) -> &'static str {
        "flamegraph"
    }

    fn help(&self) -> &'static str {
        "An interactive flame graph of samples or spans: SVG that opens in any browser, with search and zoom"
    }

    fn write(&self, model: &Model, output: &mut dyn Write) -> io::Result<()> {
        let tree = call_tree(model, &self.options);
        let (boxes, left_out) = layout(&tree);
        let deepest = boxes.iter().map(|flame| flame.depth).max().unwrap_or(0);
        let height = TOP + (deepest + 1) * ROW + 30;
        let title = self.title.as_deref().unwrap_or("Flame graph");
        let unit = match tree.source {
            TreeSource::Samples => "samples",
            TreeSource::Spans => "calls",
            TreeSource::Nothing => "samples or spans",
        };
        let mut note = format!("{} in {} {unit}", tree.total, tree.count);
        if left_out > 0 {
            let _ = write!(note, "; {left_out} boxes too small to see are not drawn");
        }
        write!(
            output,
            r##"<?xml version="1.0" encoding="UTF-8"?>
<svg xmlns="http://www.w3.org/2000/svg" version="1.1" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" font-family="Verdana, DejaVu Sans, sans-serif" font-size="12">
<style>{STYLE}</style>
<rect width="100%" height="100%" fill="#fbfbf8"/>
<text x="600" y="24" text-anchor="middle" font-size="17" id="title">{}</text>
<text x="600" y="42" text-anchor="middle" fill="#666">{}</text>
<text x="10" y="24" id="reset" class="button hidden">Reset zoom</text>
<text x="1190" y="24" id="search" class="button" text-anchor="end">Search</text>
<text x="1190" y="42" id="matched" text-anchor="end" fill="#666"> </text>
<text x="10" y="56" id="details"> </text>
<g id="frames">
"##,
            escaped(title),
            escaped(&note),
        )?;
        for flame in &boxes {
            write_box(output, &tree, flame)?;
        }
        write!(output, "</g>\n<script><![CDATA[\n{SCRIPT}\n]]></script>\n</svg>\n")
    }
}

struct Box {
    node: Option<usize>,
    depth: usize,
    /// Where it begins and how wide it is, as parts of the whole.
    left: f64,
    width: f64,
}

/// Places every box; those too narrow or too deep are counted.
fn layout(tree: &CallTree) -> (Vec<Box>, usize) {
    let whole = tree.total.0.max(1) as f64;
    let mut boxes = vec![Box { node: None, depth: 0, left: 0.0, width: 1.0 }];
    let mut left_out = 0;
    let mut open: Vec<(usize, usize, f64)> = Vec::new();
    let lay_out = |open: &mut Vec<(usize, usize, f64)>, nodes: &[usize], depth: usize, left: f64| {
        let mut left = left;
        for &node in nodes {
            open.push((node, depth, left));
            left += tree.nodes[node].total.0 as f64 / whole;
        }
    };
    lay_out(&mut open, &tree.roots, 1, 0.0);
    while let Some((index, depth, left)) = open.pop() {
        let node = &tree.nodes[index];
        let width = node.total.0 as f64 / whole;
        if width * (WIDTH - 2.0 * MARGIN) < NARROWEST || depth > DEEPEST {
            left_out += 1;
            continue;
        }
        boxes.push(Box { node: Some(index), depth, left, width });
        lay_out(&mut open, &node.children, depth + 1, left);
    }
    (boxes, left_out)
}

fn write_box(output: &mut dyn Write, tree: &CallTree, flame: &Box) -> io::Result<()> {
    let inner = WIDTH - 2.0 * MARGIN;
    let (text, total, own, color) = match flame.node.map(|node| &tree.nodes[node]) {
        Some(node) => (frame_text(&node.callee), node.total, node.own, color(node)),
        None => ("all".to_owned(), tree.total, hotspan_store::Duration(0), "#d8d8d0".to_owned()),
    };
    let (x, width) = (MARGIN + flame.left * inner, flame.width * inner);
    let y = TOP + flame.depth * ROW;
    let share = flame.width * 100.0;
    let letters = ((width - 6.0) / CHARACTER) as usize;
    let label = match text.chars().count() {
        _ if letters < 3 => String::new(),
        length if length <= letters => text.clone(),
        _ => text.chars().take(letters - 2).chain("..".chars()).collect(),
    };
    writeln!(
        output,
        r#"<g data-x="{:.8}" data-w="{:.8}"><title>{} ({total}, {share:.2} %; own {own})</title><rect x="{x:.2}" y="{y}" width="{width:.2}" height="{}" fill="{color}" rx="1"/><text x="{:.2}" y="{}">{}</text></g>"#,
        flame.left,
        flame.width,
        escaped(&text),
        ROW - 1,
        x + 3.0,
        y + 12,
        escaped(&label),
    )
}

/// The program's own code is warm, libraries are pale, native code is blue; a file keeps its shade.
fn color(node: &Node) -> String {
    let hash = node
        .callee
        .file
        .bytes()
        .chain(node.callee.name.bytes().filter(|_| node.callee.file.is_empty()))
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let shade = hash >> 8;
    let (hue, saturation, lightness) = match node.callee.kind {
        FrameKind::Native => (205 + shade % 25, 60, 66 + shade % 9),
        FrameKind::Builtin => (150 + shade % 40, 38, 66 + shade % 9),
        FrameKind::Python if is_library(&node.callee.file) => (38 + shade % 18, 34, 76 + shade % 8),
        FrameKind::Python => (8 + shade % 38, 84, 60 + shade % 9),
    };
    format!("hsl({hue},{saturation}%,{lightness}%)")
}
