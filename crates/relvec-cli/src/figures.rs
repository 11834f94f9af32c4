//! Figures of fits, as SVG and PNG. Only this file uses the plotting crate.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use kuva::backend::png::PngBackend;
use kuva::backend::svg::SvgBackend;
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{BandPlot, ColorMap, ContourPlot, Heatmap, LegendEntry, LegendPosition, LegendShape, LinePlot, ScatterPlot};
use kuva::render::figure::Figure as Panels;
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Primitive, Scene, TextAnchor, render_multiple};

// Colours of Okabe and Ito. They can be distinguished with any colour vision and in print.
const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";
const GREEN: &str = "#00785a";
const BLACK: &str = "#111111";
const GREY: &str = "#777777";
/// Colours of lines in order. The eighth line has the first colour again.
const LINES: [&str; 7] = [BLUE, ORANGE, BLACK, GREEN, "#cc79a7", "#56b4e9", "#b58900"];
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
const MARKS: [(&str, MarkerShape); 3] =
    [(BLUE, MarkerShape::Circle), (ORANGE, MarkerShape::Triangle), (GREEN, MarkerShape::Square)];
/// Pixels of the PNG per unit of the SVG.
const PNG_SCALE: f32 = 2.0;

/// A finished figure.
pub(crate) struct Figure {
    pub svg: String,
    pub png: Vec<u8>,
}

/// A fit in one dimension. The slices of the training rows have one length, and so do those of the grid.
pub(crate) struct Curve<'a> {
    /// Above the panel; may be empty.
    pub title: &'a str,
    /// The training rows.
    pub x: &'a [f64],
    pub t: &'a [f64],
    /// The vectors among them, and what they are called.
    pub vectors: &'a [usize],
    pub name: &'a str,
    /// Grid points in ascending order; truth, mean and band are given at these points.
    pub grid: &'a [f64],
    pub truth: &'a [f64],
    pub mean: &'a [f64],
    /// Half the width of the band.
    pub band: &'a [f64],
    pub band_name: &'a str,
}

/// The quantity that is shaded over the plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shade {
    /// The probability of class 1: contours at 0.25, 0.5 and 0.75.
    Probability,
    /// A decision function: contours at -1, 0 and 1.
    Margin,
    /// The number of the class, 0 to 2: the boundaries.
    Class,
}

/// A classifier in the plane.
pub(crate) struct Plane<'a> {
    /// Above the panel; may be empty.
    pub title: &'a str,
    /// The training rows.
    pub points: &'a [(f64, f64)],
    /// Classes: 0, 1 or 2.
    pub labels: &'a [usize],
    /// The vectors among them, and what they are called.
    pub vectors: &'a [usize],
    pub name: &'a str,
    /// Grid coordinates, ascending.
    pub xs: &'a [f64],
    pub ys: &'a [f64],
    pub shade: Shade,
    /// Values of the shaded quantity at (xs[j], ys[i]); i is the row.
    pub values: &'a [Vec<f64>],
}

/// Points in order, drawn as a line or as spikes.
pub(crate) struct Series<'a> {
    pub name: &'a str,
    pub points: Vec<(f64, f64)>,
}

/// One panel: its plots, axes and legend.
struct Panel {
    plots: Vec<Plot>,
    layout: Layout,
    legend: Vec<LegendEntry>,
}

/// Draws data, true function, fit with a band of two standard deviations, and circled relevance vectors.
pub(crate) fn curve(c: &Curve) -> Result<Figure> {
    let Panel { plots, layout, legend } = curve_panel(c);
    let layout = layout.with_legend_position(LegendPosition::InsideTopRight).with_legend_entries(legend);
    finish(render_multiple(plots, layout.with_width(640.0).with_height(420.0)))
}

/// Draws several curves side by side.
pub(crate) fn curves(panels: &[Curve]) -> Result<Figure> {
    side_by_side(panels.iter().map(curve_panel).collect(), panels.len(), (520.0, 400.0))
}

/// Draws shading, contours, classes and circled vectors.
pub(crate) fn plane(p: &Plane) -> Result<Figure> {
    let Panel { plots, layout, legend } = plane_panel(p);
    let layout = layout
        .with_width(640.0)
        .with_height(560.0)
        .with_legend_position(LegendPosition::OutsideBottomColumns)
        .with_legend_entries(legend)
        .with_legend_col_limit(2);
    let mut scene = render_multiple(plots, layout);
    match p.shade {
        Shade::Probability => label_colour_bar(&mut scene, "p, probability of class 1"),
        Shade::Margin => label_colour_bar(&mut scene, "f, decision function"),
        Shade::Class => {}
    }
    finish(scene)
}

/// Draws several planes in rows of `columns` panels, without colour bars and with the legend of the first panel.
pub(crate) fn planes(panels: &[Plane], columns: usize) -> Result<Figure> {
    let bare = |p: &Plane| {
        let mut panel = plane_panel(p);
        panel.layout.show_colorbar = false;
        panel
    };
    let size = if columns > 2 { (340.0, 320.0) } else { (480.0, 440.0) };
    side_by_side(panels.iter().map(bare).collect(), columns, size)
}

/// Draws series as lines.
pub(crate) fn lines(x_label: &str, y_label: &str, series: &[Series]) -> Result<Figure> {
    let line = |(s, color): (&Series, &&str)| {
        LinePlot::new().with_data(s.points.clone()).with_color(*color).with_stroke_width(2.0).into()
    };
    let plots = series.iter().zip(LINES.iter().cycle()).map(line).collect();
    numbered(plots, x_label, y_label, series, LegendShape::Line)
}

/// Draws two series as spikes from the bottom of the axes, beside each other.
pub(crate) fn spikes(x_label: &str, y_label: &str, series: &[Series]) -> Result<Figure> {
    let all = || series.iter().flat_map(|s| s.points.iter());
    let (low, high) = range(all().map(|p| p.1));
    let foot = low - 0.04 * (high - low);
    let mut plots: Vec<Plot> = Vec::new();
    for (k, (s, color)) in series.iter().zip([BLUE, ORANGE]).enumerate() {
        let shift = 0.3 * k as f64;
        for (x, y) in &s.points {
            let spike = vec![(x + shift, foot), (x + shift, *y)];
            plots.push(LinePlot::new().with_data(spike).with_color(color).with_stroke_width(1.4).into());
        }
        let heads: Vec<(f64, f64)> = s.points.iter().map(|(x, y)| (x + shift, *y)).collect();
        plots.push(ScatterPlot::new().with_data(heads).with_color(color).with_size(POINT).into());
    }
    numbered(plots, x_label, y_label, series, LegendShape::Circle)
}

/// Draws a figure of series with a legend below.
fn numbered(plots: Vec<Plot>, x_label: &str, y_label: &str, series: &[Series], shape: LegendShape) -> Result<Figure> {
    let all = || series.iter().flat_map(|s| s.points.iter());
    let ((left, right), (low, high)) = (range(all().map(|p| p.0)), range(all().map(|p| p.1)));
    let (side, gap) = (0.02 * (right - left).max(1.0), 0.06 * (high - low).max(1e-9));
    let legend = series.iter().zip(LINES.iter().cycle()).map(|(s, color)| entry(s.name, color, shape)).collect();
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

fn side_by_side(panels: Vec<Panel>, columns: usize, (width, height): (f64, f64)) -> Result<Figure> {
    let rows = panels.len().div_ceil(columns);
    let (mut plots, mut layouts, mut legend) = (Vec::new(), Vec::new(), Vec::new());
    for panel in panels {
        // Entries that several panels have in common appear once in the legend.
        legend.extend(panel.legend);
        plots.push(panel.plots);
        // The crate sizes the box of a common legend for letters of this size.
        layouts.push(panel.layout.with_body_size(12));
    }
    let mut names: Vec<String> = Vec::new();
    legend.retain(|entry: &LegendEntry| {
        let new = !names.contains(&entry.label);
        names.push(entry.label.clone());
        new
    });
    let scene = Panels::new(rows, columns)
        .with_plots(plots)
        .with_layouts(layouts)
        .with_cell_size(width, height)
        .with_spacing(10.0)
        .with_shared_legend_bottom()
        .with_shared_legend_entries(legend)
        .render();
    finish(scene)
}

fn curve_panel(c: &Curve) -> Panel {
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
    let layout = axes(&plots, (left - side, right + side), (low - gap, high + 2.0 * gap)).with_x_label("x").with_y_label("t");
    let legend = vec![
        entry("data", GREY, LegendShape::Circle),
        entry("truth", ORANGE, LegendShape::Line),
        entry("fit", BLUE, LegendShape::Line),
        entry(c.band_name, BAND, LegendShape::Rect),
        entry(c.name, RING, LegendShape::Circle),
    ];
    Panel { plots, layout: titled(layout, c.title), legend }
}

fn plane_panel(p: &Plane) -> Panel {
    let (x_range, y_range) = (ends(p.xs), ends(p.ys));
    let (low, high) = range(p.values.iter().flatten().copied());
    let shade = p.shade;
    // The heat map stretches its colours over the range of its values. This is undone here, so that the boundary is
    // white.
    let shading = ColorMap::Custom(Arc::new(move |t| shade.tint(low + t * (high - low))));
    let heat = Heatmap::new()
        .with_data(p.values.to_vec())
        .with_x_range(x_range.0, x_range.1)
        .with_y_range(y_range.0, y_range.1)
        .with_cell_size(1.0)
        .with_color_map(shading);
    let contour = |levels: &[f64], width: f64| {
        ContourPlot::new()
            .with_grid(p.values.to_vec(), p.xs.to_vec(), p.ys.to_vec())
            .with_levels(levels)
            .with_line_color(BLACK)
            .with_line_width(width)
    };
    let class = |k: usize| -> Vec<(f64, f64)> {
        p.points.iter().zip(p.labels).filter(|(_, label)| **label == k).map(|(point, _)| *point).collect()
    };
    let circled: Vec<(f64, f64)> = p.vectors.iter().map(|i| p.points[*i]).collect();
    let mut plots: Vec<Plot> = vec![heat.into()];
    let boundary = match shade {
        Shade::Probability => (vec![0.25, 0.75], vec![0.5], "p = 0.5 (thin: 0.25 and 0.75)"),
        Shade::Margin => (vec![-1.0, 1.0], vec![0.0], "boundary (thin: f = -1 and 1)"),
        Shade::Class => (vec![], vec![], ""),
    };
    if shade != Shade::Class {
        plots.extend([contour(&boundary.0, 0.8).into(), contour(&boundary.1, 2.2).into()]);
    }
    let mut legend = Vec::new();
    for (k, (color, marker)) in MARKS.iter().enumerate().take(if shade == Shade::Class { 3 } else { 2 }) {
        let marks = ScatterPlot::new().with_data(class(k)).with_color(*color).with_size(POINT).with_marker(*marker);
        plots.push(marks.into());
        legend.push(entry(&format!("class {k}"), color, LegendShape::Marker(*marker)));
    }
    plots.push(rings(circled).into());
    legend.push(entry(p.name, RING, LegendShape::Circle));
    if shade != Shade::Class {
        legend.push(entry(boundary.2, BLACK, LegendShape::Line));
    }
    let layout = axes(&plots, x_range, y_range).with_x_label("x₁").with_y_label("x₂");
    Panel { plots, layout: titled(layout, p.title), legend }
}

/// Adds a title to a panel if it is not empty. Only panels of a group have titles.
fn titled(layout: Layout, title: &str) -> Layout {
    if title.is_empty() { layout } else { layout.with_title(title).with_title_size(16) }
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

impl Shade {
    /// Returns a light tint: blue for class 0, white for the boundary, orange for class 1, green for class 2.
    fn tint(self, value: f64) -> String {
        const ENDS: [[f64; 3]; 3] = [[120.0, 180.0, 220.0], [240.0, 165.0, 110.0], [120.0, 200.0, 165.0]];
        let (class, strength) = match self {
            Shade::Probability => (usize::from(value > 0.5), (2.0 * value - 1.0).abs().min(1.0)),
            Shade::Margin => (usize::from(value > 0.0), 0.5 * value.abs().min(2.0)),
            Shade::Class => (value.round() as usize, 0.6),
        };
        let [r, g, b] = ENDS[class.min(2)].map(|c| (255.0 + strength * (c - 255.0)).round() as u8);
        format!("#{r:02x}{g:02x}{b:02x}")
    }
}

fn ends(values: &[f64]) -> (f64, f64) {
    (values[0], values[values.len() - 1])
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}
