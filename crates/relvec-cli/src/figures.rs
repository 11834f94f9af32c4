//! The figures of a fit, as SVG and PNG. The only file that names the plotting crate.

use std::sync::Arc;

use anyhow::{Result, anyhow};
use kuva::backend::png::PngBackend;
use kuva::backend::svg::SvgBackend;
use kuva::plot::scatter::MarkerShape;
use kuva::plot::{BandPlot, ColorMap, ContourPlot, Heatmap, LegendEntry, LegendPosition, LegendShape, LinePlot, ScatterPlot};
use kuva::render::layout::Layout;
use kuva::render::plots::Plot;
use kuva::render::render::{Primitive, Scene, TextAnchor, render_multiple};

// Colours of Okabe and Ito: told apart with any colour vision, and in print.
const BLUE: &str = "#0072b2";
const ORANGE: &str = "#d55e00";
const BLACK: &str = "#111111";
const GREY: &str = "#777777";
/// Blue at the opacity of the band on white: what the legend shows of it.
const BAND: &str = "#cce3f0";
const BAND_OPACITY: f64 = 0.2;
/// Colour of the rings around relevance vectors; nothing else has it, so the legend's can be found.
const RING: &str = "#000001";
const RING_RADIUS: f64 = 7.5;
const RING_WIDTH: f64 = 1.6;
const TICK_SIZE: u32 = 14;
const POINT: f64 = 3.2;
/// Pixels of the PNG per unit of the SVG.
const PNG_SCALE: f32 = 2.0;

/// A finished figure.
pub(crate) struct Figure {
    pub svg: String,
    pub png: Vec<u8>,
}

/// A fit in one dimension; all slices of one group have one length.
pub(crate) struct Curve<'a> {
    /// The training rows.
    pub x: &'a [f64],
    pub t: &'a [f64],
    /// The relevance vectors among them.
    pub relevance: &'a [usize],
    /// Points at which the following are known, ascending.
    pub grid: &'a [f64],
    pub truth: &'a [f64],
    pub mean: &'a [f64],
    pub std: &'a [f64],
}

/// A two-class fit in the plane.
pub(crate) struct Plane<'a> {
    /// The training rows.
    pub points: &'a [(f64, f64)],
    /// 0 or 1.
    pub labels: &'a [usize],
    /// The relevance vectors among them.
    pub relevance: &'a [usize],
    /// Grid coordinates, ascending.
    pub xs: &'a [f64],
    pub ys: &'a [f64],
    /// Probability of class 1 at (xs[j], ys[i]), row i.
    pub probability: &'a [Vec<f64>],
}

/// Data, truth, fit with a band of two standard deviations, circled relevance vectors.
pub(crate) fn curve(c: &Curve) -> Result<Figure> {
    let pairs = |xs: &[f64], ys: &[f64]| xs.iter().copied().zip(ys.iter().copied()).collect::<Vec<_>>();
    let edge = |sign: f64| c.mean.iter().zip(c.std).map(move |(m, s)| m + sign * 2.0 * s).collect::<Vec<_>>();
    let circled: Vec<(f64, f64)> = c.relevance.iter().map(|i| (c.x[*i], c.t[*i])).collect();
    let band = BandPlot::new(c.grid.to_vec(), edge(-1.0), edge(1.0)).with_color(BLUE).with_opacity(BAND_OPACITY);
    let truth = LinePlot::new().with_data(pairs(c.grid, c.truth)).with_color(ORANGE).with_stroke_width(1.6);
    let fit = LinePlot::new().with_data(pairs(c.grid, c.mean)).with_color(BLUE).with_stroke_width(2.4);
    let data = ScatterPlot::new().with_data(pairs(c.x, c.t)).with_color(GREY).with_size(POINT);
    let plots: Vec<Plot> = vec![band.into(), truth.into(), fit.into(), data.into(), rings(circled).into()];

    let (low, high) = range(c.t.iter().copied().chain(edge(-1.0)).chain(edge(1.0)));
    // Room at the sides for the rings of the outermost points, and above for the legend.
    let (left, right) = ends(c.grid);
    let (side, gap) = (0.04 * (right - left), 0.08 * (high - low));
    let layout = axes(&plots, (left - side, right + side), (low - gap, high + 2.0 * gap))
        .with_width(640.0)
        .with_height(420.0)
        .with_x_label("x")
        .with_y_label("t")
        .with_legend_position(LegendPosition::InsideTopRight)
        .with_legend_entries(vec![
            entry("data", GREY, LegendShape::Circle),
            entry("truth", ORANGE, LegendShape::Line),
            entry("fit", BLUE, LegendShape::Line),
            entry("fit ± 2 sd", BAND, LegendShape::Rect),
            entry("relevance vectors", RING, LegendShape::Circle),
        ]);
    finish(render_multiple(plots, layout))
}

/// Probability shading, contours at 0.25, 0.5 and 0.75, both classes, circled relevance vectors.
pub(crate) fn plane(p: &Plane) -> Result<Figure> {
    let (x_range, y_range) = (ends(p.xs), ends(p.ys));
    let (low, high) = range(p.probability.iter().flatten().copied());
    // The heat map stretches its colours over the values it gets; undo that, so that white is 0.5.
    let shading = ColorMap::Custom(Arc::new(move |t| tint(low + t * (high - low))));
    let heat = Heatmap::new()
        .with_data(p.probability.to_vec())
        .with_x_range(x_range.0, x_range.1)
        .with_y_range(y_range.0, y_range.1)
        .with_cell_size(1.0)
        .with_color_map(shading);
    let contour = |levels: &[f64], width: f64| {
        let grid = p.probability.to_vec();
        ContourPlot::new()
            .with_grid(grid, p.xs.to_vec(), p.ys.to_vec())
            .with_levels(levels)
            .with_line_color(BLACK)
            .with_line_width(width)
    };
    let class = |k: usize| -> Vec<(f64, f64)> {
        p.points.iter().zip(p.labels).filter(|(_, label)| **label == k).map(|(point, _)| *point).collect()
    };
    let circled: Vec<(f64, f64)> = p.relevance.iter().map(|i| p.points[*i]).collect();
    let plots: Vec<Plot> = vec![
        heat.into(),
        contour(&[0.25, 0.75], 0.8).into(),
        contour(&[0.5], 2.2).into(),
        ScatterPlot::new().with_data(class(0)).with_color(BLUE).with_size(POINT).into(),
        ScatterPlot::new().with_data(class(1)).with_color(ORANGE).with_size(POINT).with_marker(MarkerShape::Triangle).into(),
        rings(circled).into(),
    ];
    let layout = axes(&plots, x_range, y_range)
        .with_width(640.0)
        .with_height(560.0)
        .with_x_label("x₁")
        .with_y_label("x₂")
        .with_legend_position(LegendPosition::OutsideBottomColumns)
        .with_legend_entries(vec![
            entry("class 0", BLUE, LegendShape::Circle),
            entry("class 1", ORANGE, LegendShape::Marker(MarkerShape::Triangle)),
            entry("relevance vectors", RING, LegendShape::Circle),
            entry("p = 0.5 (thin: 0.25 and 0.75)", BLACK, LegendShape::Line),
        ])
        .with_legend_col_limit(2);
    let mut scene = render_multiple(plots, layout);
    label_colour_bar(&mut scene, "p, probability of class 1");
    finish(scene)
}

/// What the figures have in common, with exactly these ranges of the axes.
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

/// The crate's legends know filled markers only: the filled disc in the colour of the rings becomes one.
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

/// The crate gives the colour bar of a heat map no label: put one to its left, reading upwards.
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

/// Light tints: blue for 0, white for 1/2, orange for 1.
fn tint(probability: f64) -> String {
    const ENDS: [[f64; 3]; 2] = [[120.0, 180.0, 220.0], [240.0, 165.0, 110.0]];
    let end = ENDS[usize::from(probability > 0.5)];
    let strength = (2.0 * probability - 1.0).abs().min(1.0);
    let [r, g, b] = end.map(|c| (255.0 + strength * (c - 255.0)).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn ends(values: &[f64]) -> (f64, f64) {
    (values[0], values[values.len() - 1])
}

fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}
