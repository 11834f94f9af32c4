//! Figures of points, lines and bars over two axes, as SVG with the colours of the page.

use std::fmt::Write as _;

use super::html::{paragraph, text};
use crate::text::significant;

/// Size of the drawing and margins for the labels of the axes. The page scales the whole figure to its column.
const WIDTH: f64 = 400.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 388.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 254.0;
/// Approximate number of intervals between the ticks of an axis.
const TICKS: f64 = 5.0;
/// Share of the range that is free at each end, so that no point lies on the frame.
const MARGIN: f64 = 0.03;
/// Most characters of a number beside an axis. Longer numbers are written with an exponent.
const TICK_WIDTH: usize = 5;
/// Number of colours. Further curves repeat them with dashed lines.
const COLOURS: usize = 6;

/// An element of a figure, with coordinates in the units of the axes.
pub(super) enum Mark {
    /// Dots.
    Points(Vec<(f64, f64)>),
    /// A line, with the number of its colour.
    Line(Vec<(f64, f64)>, usize),
    /// A line with dots at its points, in the first colour.
    Dotted(Vec<(f64, f64)>),
    /// A line of ideal results, dashed and grey.
    Reference(Vec<(f64, f64)>),
    /// Bars from zero up: left end, right end, height.
    Bars(Vec<(f64, f64, f64)>),
}

/// A figure. `label` describes it to readers who cannot see it.
pub(super) struct Plot<'a> {
    pub label: &'a str,
    pub x: &'a str,
    pub y: &'a str,
    /// Ends of the axes; `None` for the range of the marks.
    pub x_range: Option<(f64, f64)>,
    pub y_range: Option<(f64, f64)>,
    pub marks: Vec<Mark>,
}

impl Plot<'_> {
    /// Returns the figure with its caption, and with the names of its lines if there are several.
    pub fn figure(&self, title: &str, caption: &str, names: &[String]) -> String {
        let several = names.iter().enumerate().filter(|_| names.len() > 1);
        let legend: String = several.map(|(k, name)| legend(k, name)).collect();
        let legend = if legend.is_empty() { legend } else { format!("<ul class=\"legend\">{legend}</ul>\n") };
        format!(
            "<figure><h3>{}</h3>\n{}{legend}<figcaption>{}</figcaption></figure>\n",
            paragraph(title),
            self.svg(),
            paragraph(caption)
        )
    }

    fn svg(&self) -> String {
        let x = Axis::new(self.x_range, self.marks.iter().flat_map(Mark::xs), (LEFT, RIGHT));
        let y = Axis::new(self.y_range, self.marks.iter().flat_map(Mark::ys), (BOTTOM, TOP));
        let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">\n", paragraph(self.label));
        for (value, place) in x.ticks() {
            let _ = writeln!(out, "<path class=\"g\" d=\"M{place:.1} {TOP}V{BOTTOM}\"/>");
            let _ = writeln!(out, "<text x=\"{place:.1}\" y=\"{}\" class=\"m\">{value}</text>", BOTTOM + 17.0);
        }
        for (value, place) in y.ticks() {
            let _ = writeln!(out, "<path class=\"g\" d=\"M{LEFT} {place:.1}H{RIGHT}\"/>");
            let _ = writeln!(out, "<text x=\"{}\" y=\"{:.1}\" class=\"e\">{value}</text>", LEFT - 6.0, place + 4.0);
        }
        for mark in &self.marks {
            mark.draw(&x, &y, &mut out);
        }
        let _ = writeln!(out, "<path class=\"f\" d=\"M{LEFT} {TOP}V{BOTTOM}H{RIGHT}\"/>");
        let (middle, height) = (0.5 * (LEFT + RIGHT), 0.5 * (TOP + BOTTOM));
        let _ = writeln!(out, "<text x=\"{middle}\" y=\"{}\" class=\"m l\">{}</text>", HEIGHT - 8.0, text(&short(self.x)));
        let _ = writeln!(
            out,
            "<text x=\"13\" y=\"{height}\" class=\"m l\" transform=\"rotate(-90 13 {height})\">{}</text>",
            text(&short(self.y))
        );
        out + "</svg>\n"
    }
}

/// Most characters of a label along an axis.
const LABEL: usize = 44;

/// Returns the label, cut to the length of the axis.
fn short(label: &str) -> String {
    match label.char_indices().nth(LABEL) {
        Some((end, _)) => format!("{}...", &label[..end]),
        None => label.to_string(),
    }
}

fn class(k: usize) -> String {
    let dashes = ["", " d1", " d2"][(k / COLOURS).min(2)];
    format!("c{}{dashes}", k % COLOURS)
}

fn legend(k: usize, name: &str) -> String {
    format!(
        "<li><svg viewBox=\"0 0 24 8\" class=\"key\" aria-hidden=\"true\"><path class=\"{}\" d=\"M0 4H24\"/></svg>{}</li>\n",
        class(k),
        text(name)
    )
}

impl Mark {
    fn points(&self) -> &[(f64, f64)] {
        match self {
            Mark::Points(points) | Mark::Line(points, _) | Mark::Dotted(points) | Mark::Reference(points) => points,
            Mark::Bars(_) => &[],
        }
    }

    fn bars(&self) -> &[(f64, f64, f64)] {
        if let Mark::Bars(bars) = self { bars } else { &[] }
    }

    fn xs(&self) -> impl Iterator<Item = f64> {
        self.points().iter().map(|p| p.0).chain(self.bars().iter().flat_map(|bar| [bar.0, bar.1]))
    }

    fn ys(&self) -> impl Iterator<Item = f64> {
        self.points().iter().map(|p| p.1).chain(self.bars().iter().flat_map(|bar| [0.0, bar.2]))
    }

    fn draw(&self, x: &Axis, y: &Axis, out: &mut String) {
        let places = self.points().iter().filter(|p| p.0.is_finite() && p.1.is_finite());
        let places: Vec<(f64, f64)> = places.map(|p| (x.place(p.0), y.place(p.1))).collect();
        let dots = |out: &mut String| {
            for (px, py) in &places {
                let _ = write!(out, "<circle cx=\"{px:.1}\" cy=\"{py:.1}\" r=\"2\"/>");
            }
        };
        let path: String =
            places.iter().enumerate().map(|(i, (px, py))| format!("{}{px:.1} {py:.1}", if i == 0 { 'M' } else { 'L' })).collect();
        match self {
            Mark::Points(_) => {
                *out += &format!("<g class=\"p{}\">", if places.len() > CROWD { " many" } else { "" });
                dots(out);
                *out += "</g>\n";
            }
            Mark::Line(_, k) => *out += &format!("<path class=\"{}\" d=\"{path}\"/>\n", class(*k)),
            Mark::Dotted(_) => {
                *out += &format!("<path class=\"c0\" d=\"{path}\"/>\n<g class=\"p s\">");
                dots(out);
                *out += "</g>\n";
            }
            Mark::Reference(_) => *out += &format!("<path class=\"r\" d=\"{path}\"/>\n"),
            Mark::Bars(bars) => {
                for (left, right, height) in bars.iter().filter(|bar| bar.2 > 0.0) {
                    let (left, right, top) = (x.place(*left), x.place(*right), y.place(*height));
                    let (width, height) = (right - left, y.place(0.0) - top);
                    let _ = writeln!(
                        out,
                        "<rect class=\"b\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
                    );
                }
            }
        }
    }
}

/// Number of dots above which they are drawn lighter, so that dense regions can be seen.
const CROWD: usize = 300;

/// An axis: its range in data units, and the positions of its ends in the drawing.
struct Axis {
    low: f64,
    high: f64,
    ends: (f64, f64),
}

impl Axis {
    fn new(range: Option<(f64, f64)>, values: impl Iterator<Item = f64>, ends: (f64, f64)) -> Axis {
        let least_and_most = |(low, high): (f64, f64), v: f64| (low.min(v), high.max(v));
        let found = || values.filter(|v| v.is_finite()).fold((f64::INFINITY, f64::NEG_INFINITY), least_and_most);
        let (low, high) = range.unwrap_or_else(found);
        let (low, high) = match (low <= high, 0.5 * high - 0.5 * low < f64::MIN_POSITIVE) {
            (false, _) => (0.0, 1.0),
            // A range that is zero, or too small to be divided in floating point, is widened in proportion to its
            // values.
            (_, true) => (low - 0.5 * low.abs().max(1.0), high + 0.5 * high.abs().max(1.0)),
            _ => (low, high),
        };
        let room = if range.is_some() { 0.0 } else { 2.0 * MARGIN * (0.5 * high - 0.5 * low) };
        Axis { low: (low - room).max(-f64::MAX / 4.0), high: (high + room).min(f64::MAX / 4.0), ends }
    }

    fn place(&self, value: f64) -> f64 {
        let share = (0.5 * value - 0.5 * self.low) / (0.5 * self.high - 0.5 * self.low);
        self.ends.0 + share.clamp(0.0, 1.0) * (self.ends.1 - self.ends.0)
    }

    /// Returns ticks at multiples of 1, 2 or 5 times a power of ten, as text with their positions.
    fn ticks(&self) -> Vec<(String, f64)> {
        let rough = (self.high - self.low) / TICKS;
        let power = 10f64.powf(rough.log10().floor());
        let step =
            [1.0, 2.0, 5.0, 10.0].map(|times| times * power).into_iter().find(|step| *step >= rough * 0.999).unwrap_or(rough);
        let (first, last) = ((self.low / step - 1e-9).ceil(), (self.high / step + 1e-9).floor());
        if !(step > 0.0 && step.is_finite() && last - first <= 2.0 * TICKS) {
            return vec![];
        }
        let values: Vec<f64> = (0..=(last - first) as usize).map(|i| (first + i as f64) * step).collect();
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let plain: Vec<String> = values.iter().map(|v| format!("{:.decimals$}", v + 0.0)).collect();
        let wide = plain.iter().any(|label| label.trim_start_matches('-').len() > TICK_WIDTH);
        let label = |(value, plain): (&f64, String)| match wide {
            // Uses as many digits as neighbouring ticks need to differ.
            true => {
                let largest = self.low.abs().max(self.high.abs());
                let digits = (largest / step).log10().floor().clamp(0.0, 14.0) as usize + 1;
                exponent(*value, digits)
            }
            false => plain,
        };
        values.iter().zip(plain).map(label).zip(values.iter().map(|v| self.place(*v))).collect()
    }
}

/// Returns a number with an exponent, such as 1.2e6.
fn exponent(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    let text = format!("{value:.*e}", digits - 1);
    match text.split_once('e') {
        Some((mantissa, exponent)) if mantissa.contains('.') => {
            format!("{}e{exponent}", mantissa.trim_end_matches('0').trim_end_matches('.'))
        }
        _ => text,
    }
}

/// Draws horizontal bars, each with a name before and a number after it, the longest first. `share`s are relative to
/// the longest.
pub(super) fn bars(label: &str, rows: &[(String, f64, String)]) -> String {
    const STEP: f64 = 20.0;
    const NAMES: f64 = 150.0;
    const LONGEST: f64 = 180.0;
    /// Most characters of a name before a bar.
    const NAME: usize = 22;
    let height = STEP * rows.len() as f64 + 4.0;
    let mut out = format!("<svg viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" aria-label=\"{}\">\n", paragraph(label));
    for (i, (name, share, value)) in rows.iter().enumerate() {
        let y = STEP * i as f64 + 2.0;
        let width = (LONGEST * share).max(1.0);
        let name = match name.char_indices().nth(NAME) {
            Some(_) => format!("{}...", name.chars().take(NAME - 3).collect::<String>()),
            None => name.clone(),
        };
        let _ = writeln!(out, "<text x=\"{}\" y=\"{}\" class=\"e\">{}</text>", NAMES - 8.0, y + 13.0, text(&name));
        let _ = writeln!(out, "<rect class=\"b\" x=\"{NAMES}\" y=\"{}\" width=\"{width:.1}\" height=\"12\"/>", y + 3.0);
        let _ = writeln!(out, "<text x=\"{:.1}\" y=\"{}\">{}</text>", NAMES + width + 6.0, y + 13.0, text(value));
    }
    out + "</svg>\n"
}

/// Returns at most `most` of the points, evenly chosen, including both ends.
pub(super) fn thinned<T: Copy>(points: &[T], most: usize) -> Vec<T> {
    let n = points.len();
    if n <= most {
        return points.to_vec();
    }
    (0..most).map(|i| points[(i as u128 * (n - 1) as u128 / (most - 1) as u128) as usize]).collect()
}

/// Returns the bars of a histogram with `bins` bins of equal width from `low` to `high`. Values outside are counted in
/// the outer bins.
pub(super) fn histogram(values: impl Iterator<Item = f64>, (low, high): (f64, f64), bins: usize) -> Vec<(f64, f64, f64)> {
    let mut counts = vec![0usize; bins];
    let width = (0.5 * high - 0.5 * low) / bins as f64 * 2.0;
    for value in values.filter(|v| !v.is_nan()) {
        let place = (0.5 * value - 0.5 * low) / (0.5 * width);
        counts[place.clamp(0.0, (bins - 1) as f64) as usize] += 1;
    }
    let end = |i: usize| low + width * i as f64;
    counts.iter().enumerate().map(|(i, count)| (end(i), end(i + 1), *count as f64)).collect()
}

/// Returns a number for a sentence, or a dash for NaN, such as a sum of infinite values of both signs.
pub(super) fn number(value: f64) -> String {
    if value.is_nan() { "-".into() } else { significant(value, 3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(low: f64, high: f64) -> Axis {
        Axis::new(Some((low, high)), std::iter::empty(), (0.0, 100.0))
    }

    #[test]
    fn ticks_are_round_and_inside() {
        let labels = |low, high| axis(low, high).ticks().into_iter().map(|(label, _)| label).collect::<Vec<_>>();
        assert_eq!(labels(0.0, 1.0), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(-7.0, 13.0), ["-5", "0", "5", "10"]);
        assert_eq!(labels(1.2e9, 1.6e9), ["1.2e9", "1.3e9", "1.4e9", "1.5e9", "1.6e9"]);
        assert_eq!(labels(0.0, 4e-7), ["0", "1e-7", "2e-7", "3e-7", "4e-7"]);
        assert_eq!(axis(-1.0, 3.0).place(1.0), 50.0);
    }

    /// Extreme values, and no values at all, have axes without NaN.
    #[test]
    fn extreme_values_are_drawn_without_nan() {
        for points in [
            vec![],
            vec![(0.0, 0.0)],
            vec![(-f64::MAX, f64::MAX), (f64::MAX, -f64::MAX)],
            vec![(5e-324, 1e-320), (0.0, 0.0)],
            vec![(1e300, 1e300), (f64::INFINITY, f64::NAN)],
            vec![(1e15, 1.0), (1e15 + 1.0, 2.0)],
        ] {
            let marks = vec![Mark::Points(points.clone()), Mark::Line(points, 0)];
            let svg = Plot { label: "", x: "x", y: "y", x_range: None, y_range: None, marks }.svg();
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn thinning_keeps_the_ends_and_counts_keep_all_rows() {
        let points: Vec<usize> = (0..1000).collect();
        let few = thinned(&points, 7);
        assert_eq!((few.len(), few[0], few[6]), (7, 0, 999));
        let bars = histogram(points.iter().map(|v| *v as f64), (100.0, 200.0), 10);
        assert_eq!(bars.iter().map(|bar| bar.2).sum::<f64>(), 1000.0);
        assert_eq!(bars[1], (110.0, 120.0, 10.0));
    }
}
