//! Figures of fits, as SVG and PNG. Only this file uses the plotting crate.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use kuva::backend::png::PngBackend;
use kuva::backend::svg::SvgBackend;
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{BandPlot, ColorMap, ContourPlot, Heatmap, LegendEntry, LegendPosition, LegendShape, LinePlot, ScatterPlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Primitive, Scene, TextAnchor, render_multiple};

// Colours of Okabe and Ito. They can be distinguished with any colour vision and in print.
const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";
const BLACK: &str = "#111111";
const GREY: &str = "#777777";
/// Colours of lines in order. The eighth line has the first colour again.
const LINES: [&str; 7] = [BLUE, ORANGE, BLACK, "#00785a", "#cc79a7", "#56b4e9", "#b58900"];
/// Blue at the opacity of the band on white, for the legend.
const BAND: &str = "#cce3f0";
const BAND_OPACITY: f64 = 0.2;
/// Colour of the rings around relevance vectors. No other element has it, so that the marker in the legend can be
/// found.
const RING: &str = "#000001";
const RING_RADIUS: f64 = 7.5;
const RING_WIDTH: f64 = 1.6;
const TICK_SIZE: u32 = 14;
const POINT: f64 = 3.2;
/// Colours and marks of the classes.
const MARKS: [(&str, MarkerShape); 2] = [(BLUE, MarkerShape::Circle), (ORANGE, MarkerShape::Triangle)];
/// Pixels of the PNG per unit of the SVG.
const PNG_SCALE: f32 = 2.0;

/// A finished figure.
pub(crate) struct Figure {
    pub svg: String,
    pub png: Vec<u8>,
}

/// A fit in one dimension. The slices of the training rows have one length, and so do those of the grid.
pub(crate) struct Curve<'a> {
    /// The training rows.
    pub x: &'a [f64],
    pub t: &'a [f64],
    /// The relevance vectors among them.
    pub vectors: &'a [usize],
    /// Grid points in ascending order; truth, mean and band are given at these points.
    pub grid: &'a [f64],
    pub truth: &'a [f64],
    pub mean: &'a [f64],
    /// Two standard deviations.
    pub band: &'a [f64],
}

/// A classifier in the plane.
pub(crate) struct Plane<'a> {
    /// The training rows.
    pub points: &'a [(f64, f64)],
    /// Classes: 0 or 1.
    pub labels: &'a [usize],
    /// The relevance vectors among them.
    pub vectors: &'a [usize],
    /// Grid coordinates, ascending.
    pub xs: &'a [f64],
    pub ys: &'a [f64],
    /// Probabilities of class 1 at (xs[j], ys[i]); i is the row.
    pub probability: &'a [Vec<f64>],
}

/// Points in order, drawn as a line.
pub(crate) struct Series<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// Draws data, true function, fit with a band of two standard deviations, and circled relevance vectors.
pub(crate) fn curve(c: &Curve) -> Result<Figure> {
    let pairs = |xs: &[f64], ys: &[f64]| xs.iter().copied().zip(ys.iter().copied()).collect::<Vec<_>>();
    let edge = |sign: f64| c.mean.iter().zip(c.band).map(move |(m, s)| m + sign * s).collect::<Vec<_>>();
    let circled: Vec<(f64, f64)> = c.vectors.iter().map(|i| (c.x[*i], c.t[*i])).collect();
    let band = BandPlot::new(c.grid.to_vec(), edge(-1.0), edge(1.0)).with_color(BLUE).with_opacity(BAND_OPACITY);
    let truth = LinePlot::new().with_data(pairs(c.grid, c.truth)).with_color(ORANGE).with_stroke_width(1.6);
    let fit = LinePlot::new().with_data(pairs(c.grid, c.mean)).with_color(BLUE).with_stroke_width(2.4);
    let data = ScatterPlot::new().with_data(pairs(c.x, c.t)).with_color(GREY).with_size(POINT);
    let plots: Vec<Plot> = vec![band.into(), truth.into(), fit.into(), data.into(), rings(circled).into()];

    let (low, high) = range(c.t.iter().copied().chain(edge(-1.0)).chain(edge(1.0)));
    // Leaves room at the sides for the rings of the outermost points, and above for the legend.
    let (left, right) = ends(c.grid);
    let (side, gap) = (0.04 * (right - left), 0.08 * (high - low));
    let legend = vec![
        entry("data", GREY, LegendShape::Circle),
        entry("truth", ORANGE, LegendShape::Line),
        entry("fit", BLUE, LegendShape::Line),
        entry("fit ± 2 sd", BAND, LegendShape::Rect),
        entry("relevance vectors", RING, LegendShape::Circle),
    ];
    let layout = axes(&plots, (left - side, right + side), (low - gap, high + 2.0 * gap))
        .with_x_label("x")
        .with_y_label("t")
        .with_legend_position(LegendPosition::InsideTopRight)
        .with_legend_entries(legend)
        .with_width(640.0)
        .with_height(420.0);
    finish(render_multiple(plots, layout))
}

/// Draws probabilities as shading and contours, classes and circled relevance vectors.
pub(crate) fn plane(p: &Plane) -> Result<Figure> {
    let (x_range, y_range) = (ends(p.xs), ends(p.ys));
    let (low, high) = range(p.probability.iter().flatten().copied());
    // The heat map stretches its colours over the range of its values. This is undone here, so that the boundary is
    // white.
    let shading = ColorMap::Custom(Arc::new(move |t| tint(low + t * (high - low))));
    let heat = Heatmap::new()
        .with_data(p.probability.to_vec())
        .with_x_range(x_range.0, x_range.1)
        .with_y_range(y_range.0, y_range.1)
        .with_cell_size(1.0)
        .with_color_map(shading);
    let contour = |levels: &[f64], width: f64| {
        ContourPlot::new()
            .with_grid(p.probability.to_vec(), p.xs.to_vec(), p.ys.to_vec())
            .with_levels(levels)
            .with_line_color(BLACK)
            .with_line_width(width)
    };
    let class = |k: usize| -> Vec<(f64, f64)> {
        p.points.iter().zip(p.labels).filter(|(_, label)| **label == k).map(|(point, _)| *point).collect()
    };
    let circled: Vec<(f64, f64)> = p.vectors.iter().map(|i| p.points[*i]).collect();
    let mut plots: Vec<Plot> = vec![heat.into(), contour(&[0.25, 0.75], 0.8).into(), contour(&[0.5], 2.2).into()];
    let mut legend = Vec::new();
    for (k, (color, marker)) in MARKS.iter().enumerate() {
        let marks = ScatterPlot::new().with_data(class(k)).with_color(*color).with_size(POINT).with_marker(*marker);
        plots.push(marks.into());
        legend.push(entry(&format!("class {k}"), color, LegendShape::Marker(*marker)));
    }
    plots.push(rings(circled).into());
    legend.push(entry("relevance vectors", RING, LegendShape::Circle));
    legend.push(entry("p = 0.5 (thin: 0.25 and 0.75)", BLACK, LegendShape::Line));
    let layout = axes(&plots, x_range, y_range)
        .with_x_label("x₁")
        .with_y_label("x₂")
        .with_width(640.0)
        .with_height(560.0)
        .with_legend_position(LegendPosition::OutsideBottomColumns)
        .with_legend_entries(legend)
        .with_legend_col_limit(2);
    let mut scene = render_multiple(plots, layout);
    label_colour_bar(&mut scene, "p, probability of class 1");
    finish(scene)
}

/// Draws series as lines, with a legend below.
pub(crate) fn lines(x_label: &str, y_label: &str, series: &[Series]) -> Result<Figure> {
    let line = |(s, color): (&Series, &&str)| {
        LinePlot::new().with_data(s.points.clone()).with_color(*color).with_stroke_width(2.0).into()
    };
    let plots: Vec<Plot> = series.iter().zip(LINES.iter().cycle()).map(line).collect();
    let all = || series.iter().flat_map(|s| s.points.iter());
    let ((left, right), (low, high)) = (range(all().map(|p| p.0)), range(all().map(|p| p.1)));
    let (side, gap) = (0.02 * (right - left).max(1.0), 0.06 * (high - low).max(1e-9));
    let legend = series.iter().zip(LINES.iter().cycle()).map(|(s, color)| entry(s.name, color, LegendShape::Line)).collect();
    let layout = axes(&plots, (left - side, right + side), (low - gap, high + gap))
        .with_width(640.0)
        .with_height(420.0)
        .with_x_label(x_label)
        .with_y_label(y_label)
        .with_legend_position(LegendPosition::OutsideBottomColumns)
        .with_legend_entries(legend)
        .with_legend_col_limit(2);
    finish(render_multiple(plots, layout))
}

/// Returns the layout that all figures share, with exactly these ranges of the axes.
fn axes(plots: &[Plot], x: (f64, f64), y: (f64, f64)) -> Layout {
    Layout::auto_from_plots(plots)
        .with_x_axis_min(x.0)
        .with_x_axis_max(x.1)
        .with_y_axis_min(y.0)
        .with_y_axis_max(y.1)
        .with_show_grid(false)
        .with_box_axes()
        .with_legend_box(false)
        .with_label_size(17)
        .with_tick_size(TICK_SIZE)
        .with_body_size(14)
}

fn rings(points: Vec<(f64, f64)>) -> ScatterPlot {
    ScatterPlot::new()
        .with_data(points)
        .with_color(RING)
        .with_size(RING_RADIUS)
        .with_marker_opacity(0.0)
        .with_marker_stroke_width(RING_WIDTH)
}

fn entry(label: &str, color: &str, shape: LegendShape) -> LegendEntry {
    LegendEntry { label: label.to_string(), color: color.to_string(), shape, dasharray: None }
}

fn finish(mut scene: Scene) -> Result<Figure> {
    hollow_legend_ring(&mut scene);
    let png = PngBackend::new().with_scale(PNG_SCALE).render_scene(&scene).map_err(|e| anyhow!("cannot draw the figure: {e}"))?;
    Ok(Figure { svg: SvgBackend.render_scene(&scene), png })
}

/// Turns the legend's filled disc in the colour of the rings into a ring, since the crate has only filled markers in
/// legends.
fn hollow_legend_ring(scene: &mut Scene) {
    let ring = RING.into();
    for element in &mut scene.elements {
        if let Primitive::Circle { fill, fill_opacity, stroke, stroke_width, .. } = element
            && *fill == ring
            && stroke.is_none()
        {
            (*fill_opacity, *stroke, *stroke_width) = (Some(0.0), Some(RING.into()), Some(RING_WIDTH));
        }
    }
}

/// Adds a label to the left of the colour bar of a heat map, reading upwards. The crate draws none.
fn label_colour_bar(scene: &mut Scene, label: &str) {
    let frame = scene.elements.iter().rev().find_map(|element| match element {
        Primitive::Rect { x, y, height, fill, stroke: Some(_), .. } if *fill == "none".into() => Some((*x, y + height / 2.0)),
        _ => None,
    });
    let Some((x, y)) = frame else { return };
    scene.elements.push(Primitive::Text {
        x: x - 12.0,
        y,
        content: label.to_string(),
        size: TICK_SIZE,
        anchor: TextAnchor::Middle,
        rotate: Some(-90.0),
        bold: false,
        color: None,
    });
}

/// Returns a light tint of a probability of class 1: blue for class 0, white for the boundary, orange for class 1.
fn tint(probability: f64) -> String {
    const ENDS: [[f64; 3]; 2] = [[120.0, 180.0, 220.0], [240.0, 165.0, 110.0]];
    let strength = (2.0 * probability - 1.0).abs().min(1.0);
    let [r, g, b] = ENDS[usize::from(probability > 0.5)].map(|c| (255.0 + strength * (c - 255.0)).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn ends(values: &[f64]) -> (f64, f64) {
    (values[0], values[values.len() - 1])
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}
