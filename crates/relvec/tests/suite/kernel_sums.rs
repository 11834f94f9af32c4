//! Sums and products of kernels: values, learned parameters, and notation.

use ndarray::{Array, Array1, Array2, Axis, Dimension, s};
use relvec::*;

fn close<D: Dimension>(got: &Array<f64, D>, expected: &Array<f64, D>, tolerance: f64) {
    let flat = |a: &Array<f64, D>| a.iter().copied().collect::<Vec<_>>();
    crate::support::close("values", &flat(got), &flat(expected), tolerance);
}

fn parse(text: &str) -> Kernel {
    Kernel::parse(text, &Gamma::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns a kernel whose gamma, amplitudes and periods are to be learned.
fn learned(text: &str) -> Kernel {
    Kernel::parse(text, &Gamma::Rule(GammaRule::Evidence)).unwrap_or_else(|e| panic!("{e}"))
}

fn gram(kernel: &Kernel, x: &Array2<f64>) -> Array2<f64> {
    let mut out = Array2::zeros((x.nrows(), x.nrows()));
    kernel.block(x.view(), x.view(), out.view_mut());
    out
}

/// Returns pseudo-random numbers from 0 to 1.
fn wave(i: usize, k: usize) -> f64 {
    (0.618_033_988_75 * (i * (k + 1) + 11 * k + 1) as f64 + 0.37 * (i as f64).sin()).fract().abs()
}

/// Returns nearly normal numbers of unit variance.
fn noise(n: usize, seed: usize) -> Array1<f64> {
    (0..n).map(|i| (0..12).map(|k| wave(i + 7919 * seed, 17 + 6 * k)).sum::<f64>() - 6.0).collect()
}

/// Returns a trend with a season of period 1, over `years` years of 24 rows.
fn season(years: usize, seed: usize) -> (Array2<f64>, Array1<f64>) {
    let n = 24 * years;
    let x = Array2::from_shape_fn((n, 1), |(i, _)| 1990.0 + i as f64 / 24.0);
    let angle = std::f64::consts::TAU;
    let wave = x.column(0).mapv(|x| 0.4 * (x - 1990.0) + (angle * x).sin() + 0.5 * (2.0 * angle * x + 1.0).cos());
    (x, 340.0 + wave + 0.2 * noise(n, seed))
}

fn fit(kernel: &Kernel, x: &Array2<f64>, t: &Array1<f64>) -> (Model, Report) {
    let rvm = Rvm { kernel: kernel.clone(), ..Rvm::default() };
    rvm.fit(x.view(), &Targets::real(t.view())).unwrap()
}

#[test]
fn texts_with_a_precision_are_rounded_and_read_as_kernels() {
    let exact =
        parse("1234.5678*rbf(gamma=[0.123456, 1.23456e-9])*linear[0,1] + periodic(period=2016.04, units=[[1e20,0.33333]])[2]");
    let short = "1235.0 * rbf(gamma=[0.1235, 1.235e-9]) * linear[0, 1] + periodic(";
    let text = format!("{exact:.4}");
    assert!(text.starts_with(short), "{text}");
    assert!(text.contains("period=2016.0") && text.ends_with("units=[[1e20, 0.3333]])[2]"), "{text}");
    assert_eq!(format!("{:.4}", parse(&text)), text);
    assert_eq!(parse(&exact.to_string()), exact);
}

#[test]
fn sums_and_products_equal_those_of_matrices_on_columns() {
    let x = Array2::from_shape_fn((20, 3), |(i, k)| 3.0 * wave(i, k) - 1.0);
    let some = |columns: &[usize]| x.select(Axis(1), columns);
    let (rbf, periodic) = (parse("rbf(gamma=[0.5, 2.0])"), parse("periodic(gamma=0.7, period=0.8)"));
    let (linear, matern) = (parse("linear"), parse("matern32(gamma=0.3)"));
    let sum = parse(
        "0.3*rbf(gamma=[0.5, 2.0])[2,0] + 2*periodic(gamma=0.7, period=0.8)[1]*linear(units=[[0.5, 2.0], [0.0, 1.0]])[0,1] + matern32(gamma=0.3)",
    );
    let sum = sum.resolve(&DataScale { features: 3, variance: 1.0 }).unwrap();
    let mut z = some(&[0, 1]);
    z.column_mut(0).mapv_inplace(|v| (v - 0.5) / 2.0);
    let product = gram(&periodic, &some(&[1])) * gram(&linear, &z);
    let expected = 0.3 * gram(&rbf, &some(&[2, 0])) + 2.0 * product + gram(&matern, &x);
    close(&gram(&sum, &x), &expected, 1e-14);
    let diagonal = gram(&sum, &x).diag().to_owned();
    close(&sum.diagonal(x.view()), &diagonal, 1e-14);
}

/// Gradients of the sum of weighted values in every parameter agree with finite differences, on columns of each term.
#[test]
fn gradients_of_sums_on_columns_equal_differences() {
    let x = Array2::from_shape_fn((15, 3), |(i, k)| 3.0 * wave(i, k) - 1.0);
    let w = Array2::from_shape_fn((15, 15), |(i, j)| wave(i + 20 * j, 5) - 0.5);
    let text = "0.3*rbf(gamma=[0.5, 2.0])[2,0] + 2*periodic(gamma=0.7, period=0.8)[1]*rational_quadratic(gamma=0.4, shape=1.5) \
                + 0.1*poly(gamma=0.3, coef0=0.4, degree=2)[1,2] + 0.7*laplacian(gamma=0.2)*linear[0]";
    let kernel = parse(text);
    let parameters = kernel.parameters();
    assert_eq!(parameters.len(), 4 + 2 + 2 + 2 + 2 + 1);
    let values: Vec<f64> = parameters.iter().map(|(_, v)| *v).collect();
    assert_eq!(kernel.with_parameters(&values), kernel);
    let gradient = kernel.gradient(x.view(), x.view(), w.view());
    for (p, got) in gradient.iter().enumerate() {
        let at = |h: f64| {
            let moved: Vec<f64> = values.iter().enumerate().map(|(k, v)| if k == p { v * h.exp() } else { *v }).collect();
            (gram(&kernel.with_parameters(&moved), &x) * &w).sum()
        };
        let expected = (8.0 * (at(1e-4) - at(-1e-4)) - (at(2e-4) - at(-2e-4))) / 12e-4;
        assert!((got - expected).abs() < 1e-8 * (1.0 + expected.abs()), "{}: {got}, not {expected}", parameters[p].0);
    }
}

#[test]
fn sum_of_one_term_equals_the_plain_kernel() {
    assert_eq!(parse(" rbf "), Rbf::default().into());
    assert_eq!(parse("matern52(gamma=0.5)"), Matern52 { gamma: 0.5.into() }.into());
    let (x, t) = season(3, 1);
    for text in ["rbf(gamma=0.6)", "matern32(gamma=2.0)", "linear"] {
        let plain = parse(text);
        let term = Term { amplitude: Some(1.0), factors: vec![Factor { columns: Some(vec![0]), ..Factor::new(plain.clone()) }] };
        let sum: Kernel = Sum { terms: vec![term] }.into();
        let (one, other) = (fit(&plain, &x, &t).0, fit(&sum, &x, &t).0);
        let evidence = [&one, &other].map(|model| model.log_evidence.unwrap());
        assert!((evidence[0] - evidence[1]).abs() < 1e-12 * evidence[0].abs(), "{text}: {evidence:?}");
        let [one, other] = [one, other].map(|model| model.predict_mean(x.view()).unwrap());
        close(&one, &other, 1e-12);
    }
}

#[test]
fn all_parameters_are_learned_and_neither_units_nor_order_matter() {
    let (x, t) = season(6, 2);
    let (model, report) = fit(&learned("rbf + periodic(period=1.04) + linear"), &x, &t);
    let Some(Kernel::Sum(sum)) = model.kernel() else { panic!("{:?}", model.kernel()) };
    let total: f64 = sum.terms.iter().map(|term| term.amplitude.unwrap()).sum();
    assert!((total - 1.0).abs() < 1e-12);
    let Kernel::Periodic(own) = &sum.terms[1].factors[0].kernel else { panic!("{sum:?}") };
    assert!((own.period.unwrap() - 1.0).abs() < 2e-3, "{own:?}");
    assert_eq!(sum.terms[2].factors[0].units.len(), 1, "a linear term is about the mean");
    let trial = &report.kernel_search.unwrap().tried[0];
    assert!(trial.process.gain > 50.0 && trial.evaluations > 3, "{trial:?}");

    let (other, _) = fit(&learned("linear + rbf + periodic(period=1.04)"), &x, &t);
    let (scaled, _) = fit(&learned("rbf + periodic(period=379.6) + linear"), &(&x * 365.0), &t);
    let new = x.mapv(|x| x + 0.37);
    let expected = model.predict_mean(new.view()).unwrap();
    close(&other.predict_mean(new.view()).unwrap(), &expected, 1e-4);
    close(&scaled.predict_mean((&new * 365.0).view()).unwrap(), &expected, 1e-4);
}

/// A term has one width for each column where the evidence says so, as a single kernel does. Columns without effect then cost
/// nothing, for numbers and classes, and neither units nor the order of terms matter.
#[test]
fn terms_have_a_width_for_each_column_if_these_explain_more() {
    for n in [150, 3100] {
        let x = Array2::from_shape_fn((n + 500, 5), |(i, k)| 4.0 * wave(i, k) - 2.0);
        let f = x.map_axis(Axis(1), |r| 2.0 * (2.0 * r[0]).sin());
        let t = &f + &(0.3 * noise(n + 500, 3));
        let labels: Vec<usize> = t.iter().map(|t| usize::from(*t > 0.0)).collect();
        let (rows, new) = (x.slice(s![..n, ..]), x.slice(s![n.., ..]));
        let error = |text: &str, unit: f64| {
            let rvm = Rvm { kernel: learned(text), ..Rvm::default() };
            let (model, _) = rvm.fit((&rows * unit).view(), &Targets::real(t.slice(s![..n]))).unwrap();
            (&model.predict_mean((&new * unit).view()).unwrap() - &f.slice(s![n..])).std(0.0)
        };
        let (single, expected): (f64, f64) = (error("rbf", 1.0), if n == 150 { 0.15 } else { 0.05 });
        let texts = ["rbf + linear", "linear + rbf", "rbf * linear + rbf", "rbf[0, 1, 2, 3] + rbf[4]", "matern52 + linear"];
        for text in texts {
            let own = error(text, 1.0);
            assert!(own < expected.max(1.2 * single), "{n} rows, {text}: {own}, rbf: {single}");
            // Many rows take seconds.
            if n > 3000 {
                break;
            }
            let other = error(text, 1000.0);
            assert!((own - other).abs() < 0.01, "{n} rows, {text}: {own}, in other units {other}");
        }
        let log_loss = |text: &str| {
            let rvm = Rvm { kernel: learned(text), likelihood: Bernoulli::default().into(), ..Rvm::default() };
            let (model, _) = rvm.fit(rows, &Targets::classes(&labels[..n], 2)).unwrap();
            let p = model.predict_probability(new, Moderation::Posterior).unwrap();
            -p.outer_iter().zip(&labels[n..]).map(|(p, label)| p[*label].ln()).sum::<f64>() / 500.0
        };
        if n < 3000 {
            let (own, single) = (log_loss("rbf + linear"), log_loss("rbf"));
            assert!(own < single + 0.03, "{n} rows of classes: {own}, rbf: {single}");
        }
    }
}

#[test]
fn given_parameters_are_not_learned() {
    let (x, t) = season(4, 3);
    let kernel = learned("3.0*rbf(gamma=0.2) + 1.0*periodic(period=1.02, fixed=true)");
    let (model, _) = fit(&kernel, &x, &t);
    let values = model.kernel().unwrap().parameters();
    let of = |name: &str| values.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("{values:?}")).1;
    assert_eq!([of("terms[0].amplitude"), of("terms[1].amplitude")], [3.0, 1.0]);
    assert_eq!([of("terms[0].factors[0].gamma"), of("terms[1].factors[0].period")], [0.2, 1.02]);
}

#[test]
fn models_with_sums_survive_files() {
    let (x, t) = season(4, 4);
    let (model, _) = fit(&learned("rbf + periodic + linear*rbf[0]"), &x, &t);
    let again = Model::from_json(&model.to_json().unwrap()).unwrap();
    assert_eq!(again.predict_mean(x.view()).unwrap(), model.predict_mean(x.view()).unwrap());
    let kernel = model.kernel().unwrap();
    assert_eq!(parse(&kernel.to_string()), *kernel, "{kernel}");
}

#[test]
fn classes_are_learned_with_sums() {
    let (x, t) = season(6, 5);
    let high = (&t - 340.0 - &x.column(0).mapv(|x| 0.4 * (x - 1990.0))).mapv(|v| v > 0.0);
    let labels: Vec<usize> = high.iter().map(|v| usize::from(*v)).collect();
    let rvm =
        |text: &str| Rvm { kernel: learned(text), likelihood: Likelihood::from_name("bernoulli").unwrap(), ..Rvm::default() };
    let error_of = |text: &str| {
        let some = s![..96, ..];
        let targets = Targets::classes(&labels[..96], 2);
        let (model, _) = rvm(text).fit(x.slice(some), &targets).unwrap();
        let found = model.predict_class(x.slice(s![96.., ..])).unwrap();
        found.iter().zip(&labels[96..]).filter(|(found, label)| found != label).count()
    };
    let (sum, plain) = (error_of("rbf + periodic"), error_of("rbf"));
    assert!(sum <= 6 && plain >= 12, "{sum} and {plain} of 48 rows are wrong");
}

/// Rows after the last year: five draws, over one year more than the data.
#[test]
fn a_season_with_a_trend_is_continued_with_reliable_intervals() {
    let (mut gains, mut inside, mut count) = (vec![], 0, 0);
    for draw in 0..5 {
        let (x, t) = season(7, 10 + draw);
        let (first, rest) = (s![..144, ..], s![144.., ..]);
        let nlpd = |text: &str, inside: &mut usize| {
            let (model, _) = fit(&learned(text), &x.slice(first).to_owned(), &t.slice(s![..144]).to_owned());
            let found = model.predict(x.slice(rest)).unwrap();
            let mut sum = 0.0;
            for ((mean, variance), t) in found.mean.iter().zip(&found.variance()).zip(t.slice(s![144..])) {
                let gap = t - mean;
                *inside += usize::from(gap.abs() < 1.96 * variance.sqrt());
                sum += 0.5 * ((std::f64::consts::TAU * variance).ln() + gap * gap / variance);
            }
            sum / 24.0
        };
        gains.push(nlpd("rbf", &mut 0) - nlpd("rbf + periodic + linear", &mut inside));
        count += 24;
    }
    assert!(gains.iter().all(|gain| *gain > 1.0), "{gains:?}");
    assert!((0.90..=0.98).contains(&(inside as f64 / count as f64)), "{inside} of {count}");
}

/// Returns `rows` rows of a trend with a season, over `unit` from row to row, and two more periods.
fn long_season(rows: usize, period: f64, unit: f64, seed: usize) -> (Array2<f64>, Array1<f64>) {
    let n = rows + 2 * period as usize;
    let x = Array2::from_shape_fn((n, 1), |(i, _)| unit * i as f64);
    let angle = std::f64::consts::TAU / period;
    let wave = (0..n).map(|i| i as f64).map(|i| 0.02 * i + (angle * i + seed as f64).sin() + 0.4 * (2.0 * angle * i).cos());
    (x, wave.collect::<Array1<f64>>() + 0.3 * noise(n, seed))
}

/// Returns the only period of the kernel of a model.
fn period_of(model: &Model) -> f64 {
    let all = model.kernel().unwrap().parameters();
    all.iter().find(|(name, _)| name.ends_with("period")).unwrap_or_else(|| panic!("{all:?}")).1
}

/// The rows after the last one have the density of a fit that begins at the true period.
#[test]
fn periods_that_are_not_given_are_found_in_any_unit() {
    let mut gaps = vec![];
    for (rows, period, unit) in [(72, 12.0, 2_629_800.0), (90, 7.0, 1.0), (60, 11.3, 1e-3), (120, 40.0, 86_400.0)] {
        for seed in 0..3 {
            let (x, t) = long_season(rows, period, unit, 20 + seed);
            let density = |text: &str| {
                let (model, _) = fit(&learned(text), &x.slice(s![..rows, ..]).to_owned(), &t.slice(s![..rows]).to_owned());
                let found = model.predict(x.slice(s![rows.., ..])).unwrap();
                let of = |((mean, variance), t): ((&f64, &f64), &f64)| -0.5 * (variance.ln() + (t - mean).powi(2) / variance);
                let values = found.mean.iter().zip(&found.variance()).zip(t.slice(s![rows..])).map(of).collect::<Vec<_>>();
                (values.iter().sum::<f64>() / values.len() as f64, period_of(&model))
            };
            let (own, found) = density("rbf + linear + periodic");
            let (given, _) = density(&format!("rbf + linear + periodic(period={})", period * unit));
            assert!((found / (period * unit) - 1.0).abs() < 0.02, "seed {seed}: {found} instead of {}", period * unit);
            gaps.push(given - own);
        }
    }
    // Both ascents end within 0.05 nats of gain, at points whose extrapolations differ.
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    assert!(mean < 0.05 && gaps.iter().all(|gap| *gap < 0.3), "{gaps:?}");
}

#[test]
fn periods_are_found_in_columns_products_and_several_terms() {
    let n = 84;
    let x = Array2::from_shape_fn((n, 3), |(i, d)| [2.0 * wave(i, 3) - 1.0, i as f64, (i % 12 + 1) as f64][d]);
    let angle = std::f64::consts::TAU / 12.0;
    let season = x.column(1).mapv(|i| (angle * i).sin());
    let t = x.column(0).mapv(|x| 3.0 * (2.0 * x).sin()) + &season + 0.2 * noise(n, 31);
    // Twelve months of one year determine only that the last one is followed by the first.
    for (text, tolerance) in
        [("rbf[0] + periodic[1]", 0.24), ("rbf[0] + periodic[1]*rbf[1]", 0.24), ("rbf[0] + periodic[2]", 0.5)]
    {
        let found = period_of(&fit(&learned(text), &x, &t).0);
        assert!((found - 12.0).abs() < tolerance, "{text}: {found}");
    }
    let alone = fit(&learned("periodic"), &x.slice(s![.., 1..2]).to_owned(), &(season + 0.2 * noise(n, 32))).0;
    assert!((period_of(&alone) - 12.0).abs() < 0.24);

    let x = Array2::from_shape_fn((150, 1), |(i, _)| i as f64);
    let t = x.column(0).mapv(|x| (angle * 12.0 / 6.0 * x).sin() + 1.2 * (angle * 12.0 / 35.0 * x).cos()) + 0.2 * noise(150, 33);
    let (model, _) = fit(&learned("periodic + periodic"), &x, &t);
    let mut found: Vec<f64> =
        model.kernel().unwrap().parameters().iter().filter(|(name, _)| name.ends_with("period")).map(|p| p.1).collect();
    found.sort_by(f64::total_cmp);
    assert!((found[0] - 6.0).abs() < 0.12 && (found[1] - 35.0).abs() < 0.7, "{found:?}");
}

/// In 20 series of noise, the gain over the kernel without the season is below 2 nats, except in one at most.
#[test]
fn noise_has_no_period() {
    let gain =
        |text: &str, x: &Array2<f64>, t: &Array1<f64>| fit(&learned(text), x, t).1.kernel_search.unwrap().tried[0].process.gain;
    let x = Array2::from_shape_fn((50, 1), |(i, _)| i as f64);
    let gains: Vec<f64> =
        (0..20).map(|seed| noise(50, 40 + seed)).map(|t| gain("rbf + periodic", &x, &t) - gain("rbf", &x, &t)).collect();
    assert!(gains.iter().filter(|gain| **gain > 2.0).count() <= 1, "{gains:?}");
}

#[test]
fn support_vector_machines_take_sums_whose_parameters_are_given() {
    let (x, t) = season(4, 6);
    let fit = |text: &str| {
        Svm { kernel: parse(text), formulation: EpsilonSvr::default().into(), ..Svm::default() }
            .fit(x.view(), &Targets::real(t.view()))
    };
    let (model, _) = fit("2*periodic(period=1, gamma=0.5)[0] + linear[0]").unwrap();
    let phi = gram(model.kernel().unwrap(), &x);
    // The expansion of the model in kernel values at its support vectors.
    let expected = phi.select(Axis(1), &model.relevance).dot(&model.expansion.weights.column(0)) + model.expansion.intercept[0];
    close(&model.predict_mean(x.view()).unwrap(), &expected, 1e-9);
    for (text, found) in [
        ("rbf(gamma=\"evidence\")[0] + linear", "kernel.rbf.gamma = evidence: expected a number, "),
        ("periodic[0] + linear", "kernel.periodic.period = none: expected a number: a support vector machine "),
        ("periodic", "kernel.periodic.period = none: "),
    ] {
        let error = fit(text).unwrap_err().to_string();
        assert!(error.starts_with(found), "{error}");
    }
}

#[test]
fn period_that_is_fixed_must_be_given() {
    let found = Kernel::parse("periodic(fixed=true)", &Gamma::default()).unwrap_err().to_string();
    assert_eq!(found, "kernel.periodic.period = none: expected a number, because it is fixed");
    let data = DataScale { features: 1, variance: 1.0 };
    assert_eq!(parse("periodic(gamma=2.0)").resolve(&data).unwrap(), parse("periodic(gamma=2.0, period=1.0)"));
    assert_eq!(parse("periodic(gamma=2.0) + linear").to_string(), "periodic(fixed=false, gamma=2.0) + linear");
}

fn features(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| name.to_string()).collect()
}

fn parse_named(text: &str, features: &[String]) -> Kernel {
    Kernel::parse_named(text, &Gamma::default(), features).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn names_in_brackets_are_positions_of_features() {
    let names =
        ["age", "age is missing", "colour=a", "colour=b=c", "net income", "2", "size (cm)", "x[1]", "a,b", "5\" + \\", "a"];
    let features = features(&names);
    for (text, expected) in [
        ("rbf[net income,a]", "rbf[4,10]"),
        ("rbf[ \"net income\" , a ]*linear", "rbf[4,10]*linear"),
        ("rbf[age] + linear[colour]", "rbf[0,1] + linear[2,3]"),
        ("rbf[colour=b=c, age is missing]", "rbf[3,1]"),
        ("rbf[2, \"2\"]", "rbf[2,5]"),
        ("rbf(gamma=[0.5, 1.0])[size (cm), x[1]]", "rbf(gamma=[0.5, 1.0])[6,7]"),
        ("rbf[\"a,b\"] + rbf[\"5\\\" + \\\\\"]", "rbf[8] + rbf[9]"),
    ] {
        assert_eq!(parse_named(text, &features), parse(expected), "{text}");
    }
    assert_eq!(Kernel::names("rbf[2,\"2\",age] + linear[age, \"a,b\"]").unwrap(), ["2", "age", "a,b"]);
}

/// Every list of one or two columns is read again from its text, in full and rounded.
#[test]
fn kernels_with_names_are_read_again() {
    let names = ["age", "age is missing", "colour=a", "colour=b", "colour=c", "net income", "2", "a,b]", "x=1", "x", "5\" + *\\"];
    let features = features(&names);
    for first in 0..names.len() {
        for second in (0..names.len()).filter(|second| *second != first) {
            let kernel = parse(&format!("0.5*rbf(gamma=0.25)[{first}] + linear[{first},{second}]"));
            for digits in [None, Some(4)] {
                let text = kernel.to_text(digits, &features);
                assert_eq!(parse_named(&text, &features), kernel, "{text}");
            }
        }
    }
    let text = |text: &str| parse(text).to_text(None, &features);
    assert_eq!(text("linear[0,1,2,3,4]"), "linear[age,colour]");
    // Without its indicator, the column `age` has no name.
    assert_eq!(text("linear[0,5,6,9]"), "linear[0,\"net income\",\"2\",x]");
    assert_eq!(text("linear[11,0]"), "linear[11,0]");
}

/// The name of a column of a table stands for its features in the model.
#[test]
fn names_of_columns_stand_for_their_encoding() {
    let column = |name: &str, categories: &[&str], indicator: bool| EncodedColumn {
        name: name.into(),
        categories: features(categories),
        indicator,
        means: vec![],
    };
    let columns = vec![
        column("age", &[], true),
        column("smoker", &["no", "yes"], true),
        column("colour", &["a", "b=c", "d"], true),
        column("age group", &["x", "y", "z"], false),
    ];
    let all = Encoding { columns: columns.clone(), missing: Some(Missing::Indicator) }.features();
    let mut start = 0;
    for own in &columns {
        let expected: Vec<String> = (start..start + own.width()).map(|d| d.to_string()).collect();
        assert_eq!(parse_named(&format!("rbf[{}]", own.name), &all), parse(&format!("rbf[{}]", expected.join(","))));
        start += own.width();
    }
}

#[test]
fn unknown_names_list_the_nearest_features() {
    let features = features(&["height", "weight", "age", "c1", "c2", "c3", "c4", "c5", "c6", "c7", "income", "c9"]);
    let error = |text: &str| Kernel::parse_named(text, &Gamma::default(), &features).unwrap_err().to_string();
    let unknown = error("rbf[Incom] + linear");
    assert!(unknown.contains("with `Incom`: expected a feature, of which the nearest are income, "), "{unknown}");
    assert!(unknown.ends_with("... (12 in all)"), "{unknown}");
    assert!(error("rbf[age,age]").contains("with `age`: expected each column once"));
    assert!(Kernel::names("rbf[age,age]").is_err());
}

#[test]
fn rounded_texts_with_long_lists_are_not_read_as_kernels() {
    let kernel = parse("rbf(gamma=[1.0, 2.0, 3.0, 4.0, 5.0]) + linear(units=[[0, 1], [0, 1], [0, 1], [0, 1], [0, 1]])");
    let text = format!("{kernel:.4}");
    assert_eq!(text, "rbf(gamma=[5 values]) + linear(units=[5 pairs])");
    let error = Kernel::parse(&text, &Gamma::default()).unwrap_err().to_string();
    assert!(error.contains("with `gamma=[5 values]`: expected a parameter and its value"), "{error}");
    assert_eq!(parse(&kernel.to_string()), kernel);
}

#[test]
fn kernel_texts_with_errors_are_rejected_by_name() {
    let text = |text: &str| Kernel::parse(text, &Gamma::default()).map(|kernel| kernel.to_string());
    assert_eq!(text("rbf[3, 1] + 2*linear").unwrap(), "rbf(gamma=\"scale\")[3,1] + 2*linear");
    for (given, expected) in [
        ("rbf + gauss", "with `gauss`: expected a number or one of rbf,"),
        ("rbf + ", "expected a number or one of"),
        ("rbf[height]", "with `height`: expected the number of a column, from 0, because the features have no names"),
        ("rbf[\"height]", "expected name(parameter=value, ...)"),
        ("rbf[\"a\"b]", "with `\"a\"b`: expected a name between two quotation marks"),
        ("rbf(gamma)", "with `gamma`: expected a parameter and its value"),
        ("rbf(gama=1)", "unknown field `gama`"),
        ("rbf[0][1]", "with `[1]`: expected name(parameter=value, ...)"),
        ("2*3*rbf", "with `3`: expected one number in a product"),
        ("2 + rbf", "at least one"),
        ("rbf + sum", "with `sum`"),
        ("rbf + sigmoid", "sigmoid: expected no sum, and a covariance at all rows"),
        ("rbf[0,0] + linear", "with `0`: expected each column once in a kernel"),
        ("-1*rbf + linear", "terms[0].amplitude = -1: expected a positive, finite number"),
        ("periodic(period=0)", "kernel.periodic.period = 0: expected a positive, finite number"),
    ] {
        let error = Kernel::parse(given, &Gamma::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{given}: {error}");
    }
    let (x, t) = season(2, 1);
    let wide = Rvm { kernel: learned("rbf + linear[1]"), ..Rvm::default() };
    let error = wide.fit(x.view(), &Targets::real(t.view())).unwrap_err().to_string();
    assert!(error.contains("terms[1].factors[0].columns = 1: expected columns from 0 to 0"), "{error}");
}
