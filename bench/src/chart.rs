//! Growth charts as small SVG files: both axes logarithmic, so linear growth is a straight diagonal.

use std::fmt::Write as _;

const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 360.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 190.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;
const COLOURS: &[&str] = &["#1b6e3c", "#b3541e", "#2b5d9b", "#8a3b8f", "#7a7a1f", "#444444"];

pub struct Chart {
    pub file: String,
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    pub lines: Vec<(String, Vec<(f64, f64)>)>,
}

/// Whole decades, so that the grid lines are round numbers.
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let logs: Vec<f64> = values.filter(|value| *value > 0.0).map(f64::log10).collect();
        let low = logs.iter().copied().fold(f64::INFINITY, f64::min).floor();
        let high = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max).ceil();
        if !low.is_finite() {
            return Self { low: 0.0, high: 1.0, from, to };
        }
        Self { low, high: if high > low { high } else { low + 1.0 }, from, to }
    }

    fn place(&self, value: f64) -> f64 {
        self.from + (value.max(f64::MIN_POSITIVE).log10() - self.low) / (self.high - self.low) * (self.to - self.from)
    }

    fn decades(&self) -> impl Iterator<Item = f64> {
        (self.low as i32..=self.high as i32).map(|power| 10f64.powi(power))
    }
}

impl Chart {
    pub fn svg(&self) -> String {
        let points = || self.lines.iter().flat_map(|(_, points)| points);
        let x = Scale::over(points().map(|point| point.0), LEFT, WIDTH - RIGHT);
        let y = Scale::over(points().map(|point| point.1), HEIGHT - BOTTOM, TOP);
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n\
             <text x=\"{LEFT}\" y=\"20\" font-size=\"14\">{}</text>\n",
            escaped(&self.title)
        );
        self.draw_grid(&mut svg, &x, &y);
        for (index, (name, points)) in self.lines.iter().enumerate() {
            draw_line(&mut svg, index, name, points, &x, &y);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn draw_grid(&self, svg: &mut String, x: &Scale, y: &Scale) {
        let (bottom, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
        for value in x.decades() {
            let at = x.place(value);
            let _ = writeln!(svg, "<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#ddd\"/>");
            let _ = writeln!(svg, "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{value}</text>", bottom + 16.0);
        }
        for value in y.decades() {
            let at = y.place(value);
            let _ = writeln!(svg, "<path d=\"M{LEFT} {at:.1}H{right}\" stroke=\"#ddd\"/>");
            let _ =
                writeln!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>", LEFT - 6.0, at + 4.0);
        }
        let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\">{}</text>", HEIGHT - 12.0, escaped(&self.x_label));
        let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{}\" fill=\"#666\">{}</text>", TOP - 6.0, escaped(&self.y_label));
    }
}

fn draw_line(svg: &mut String, index: usize, name: &str, points: &[(f64, f64)], x: &Scale, y: &Scale) {
    let colour = COLOURS[index % COLOURS.len()];
    let path: Vec<String> =
        points.iter().map(|(across, up)| format!("{:.1},{:.1}", x.place(*across), y.place(*up))).collect();
    let _ =
        writeln!(svg, "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>", path.join(" "));
    for (across, up) in points {
        let _ = writeln!(
            svg,
            "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
            x.place(*across),
            y.place(*up)
        );
    }
    let top = TOP + 12.0 + 18.0 * index as f64;
    let left = WIDTH - RIGHT + 12.0;
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"{top}\" fill=\"{colour}\">{}</text>", escaped(name));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;")
}
