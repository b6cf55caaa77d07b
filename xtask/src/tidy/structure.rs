//! `docs/structure.svg` shows the modules of every crate and which imports which, as they are.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::module_cycles::{Graph, graphs};
use super::workspace::Workspace;

pub const PATH: &str = "docs/structure.svg";

const BOX: (usize, usize) = (128, 22);
const GAP: (usize, usize) = (10, 34);
const MARGIN: usize = 16;
const TITLE: usize = 30;
const ROW_MAX: usize = 8;

pub fn findings(workspace: &Workspace) -> Vec<String> {
    let is_right = workspace.file(PATH).is_some_and(|file| file.text == drawing(workspace));
    let advice =
        format!("{PATH}: it does not show the current modules; write it again: cargo run -p xtask -- structure");
    (!is_right).then_some(advice).into_iter().collect()
}

/// One panel for each crate. Modules stand above those that they import.
pub fn drawing(workspace: &Workspace) -> String {
    let (mut panels, mut top, mut width) = (String::new(), MARGIN, 0);
    for (package, graph) in graphs(workspace).iter().filter(|(_, graph)| graph.len() > 1) {
        let size = panel(package, graph, top, &mut panels);
        (top, width) = (top + size.1 + MARGIN, width.max(size.0));
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {top}\" width=\"{w}\" height=\"{top}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{w}\" height=\"{top}\" fill=\"#fff\"/>\n{panels}</svg>\n",
        w = width + 2 * MARGIN
    )
}

/// Draws one crate from `top` on; its width and height.
fn panel(package: &str, graph: &Graph<'_>, top: usize, out: &mut String) -> (usize, usize) {
    let rows = rows(graph);
    let mut places: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for (row, modules) in rows.iter().enumerate() {
        for (column, module) in modules.iter().enumerate() {
            places.insert(module, (MARGIN + column * (BOX.0 + GAP.0), top + TITLE + row * (BOX.1 + GAP.1)));
        }
    }
    let _ =
        writeln!(out, "<text x=\"{MARGIN}\" y=\"{}\" font-size=\"14\" font-weight=\"bold\">{package}</text>", top + 14);
    for (module, imported) in graph {
        for (from, to) in imported.iter().filter_map(|other| Some((places.get(module)?, places.get(other.as_str())?))) {
            let half = BOX.0 / 2;
            let _ = writeln!(
                out,
                "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#9ab\" stroke-width=\"0.7\"/>",
                from.0 + half,
                from.1 + BOX.1,
                to.0 + half,
                to.1
            );
        }
    }
    for (module, (x, y)) in &places {
        let _ = writeln!(
            out,
            "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{}\" rx=\"4\" fill=\"#eef4f8\" stroke=\"#456\"/>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{module}</text>",
            BOX.0,
            BOX.1,
            x + BOX.0 / 2,
            y + 15
        );
    }
    let widest = rows.iter().map(Vec::len).max().unwrap_or(0);
    (widest * (BOX.0 + GAP.0), TITLE + rows.len() * (BOX.1 + GAP.1))
}

/// The modules in rows of a readable length, the leaves in the last.
fn rows<'a>(graph: &Graph<'a>) -> Vec<Vec<&'a str>> {
    let mut by_layer: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    for (module, layer) in layers(graph) {
        by_layer.entry(layer).or_default().push(module);
    }
    by_layer.values().rev().flat_map(|modules| modules.chunks(ROW_MAX).map(<[&str]>::to_vec)).collect()
}

/// How many imports lie below each module at most. In a circle the count ends at the number of modules.
fn layers<'a>(graph: &Graph<'a>) -> BTreeMap<&'a str, usize> {
    let mut layers: BTreeMap<&str, usize> = graph.keys().map(|module| (*module, 0)).collect();
    for _ in 0..graph.len() {
        for (module, imported) in graph {
            let below = imported.iter().filter_map(|other| layers.get(other.as_str())).max();
            let layer = below.map_or(0, |below| below + 1).min(graph.len().ilog2() as usize + 3);
            layers.insert(module, layer);
        }
    }
    layers
}

#[cfg(test)]
mod tests {
    use super::super::workspace::of;
    use super::*;

    #[test]
    fn a_module_stands_above_what_it_imports_and_a_drawing_that_is_old_is_found() {
        let files = [("crates/x/src/a.rs", "use crate::b::B;"), ("crates/x/src/b.rs", "")];
        let workspace = of(&files);
        let graphs = graphs(&workspace);
        assert_eq!(layers(&graphs["x"]), [("a", 1), ("b", 0)].into());
        let drawn = drawing(&workspace);
        assert!(drawn.contains(">a</text>") && drawn.contains("<line") && drawn.ends_with("</svg>\n"), "{drawn}");
        assert_eq!(findings(&workspace).len(), 1);
        let with = of(&[files[0], files[1], (PATH, drawn.as_str())]);
        assert_eq!(findings(&with), Vec::<String>::new());
    }
}
