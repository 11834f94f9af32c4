//! Laws that every registered kernel obeys, and the accuracy of its blocks.

use ndarray::{Array2, ArrayView1, ArrayView2, s};
use relvec::{
    DataScale, Error, Factor, Gamma, GammaRule, Kernel, KernelGradient, Laplacian, Linear, LinearSpline, Matern32, Matern52,
    Periodic, Poly, RationalQuadratic, Rbf, Sigmoid, Sum, Term,
};

/// Returns the registered kernel `name` for D features, with `gamma` as given. A new kernel adds a line here.
fn sample(name: &str, gamma: impl Into<Gamma>) -> Kernel {
    let gamma = gamma.into();
    match name {
        "rbf" => Rbf { gamma }.into(),
        "laplacian" => Laplacian { gamma }.into(),
        "matern32" => Matern32 { gamma }.into(),
        "matern52" => Matern52 { gamma }.into(),
        "rational_quadratic" => RationalQuadratic { gamma, shape: 1.7 }.into(),
        "linear" => Linear {}.into(),
        "poly" => Poly { gamma, coef0: 0.5, degree: 3 }.into(),
        "sigmoid" => Sigmoid { gamma, coef0: -0.3 }.into(),
        "linear_spline" => LinearSpline {}.into(),
        "periodic" => Periodic { gamma, period: Some(1.3), fixed: false }.into(),
        "sum" => {
            let product =
                vec![Factor::new(Periodic { gamma: gamma.clone(), period: Some(2.7), fixed: true }), Factor::new(Linear {})];
            let rbf = vec![Factor::new(Rbf { gamma })];
            Sum { terms: vec![Term { amplitude: Some(1.4), factors: rbf }, Term { amplitude: Some(0.3), factors: product }] }
                .into()
        }
        _ => panic!("kernel `{name}` is registered, but the tests have no sample of it"),
    }
}

/// Returns k(x, z) by the formula of the documentation.
fn formula(kernel: &Kernel, x: ArrayView1<f64>, z: ArrayView1<f64>) -> f64 {
    let at = |gamma: &Gamma, d: usize| match gamma {
        Gamma::Value(v) => *v,
        Gamma::PerFeature(v) => v[d],
        Gamma::Rule(_) => panic!("not resolved"),
    };
    let sum = |term: &dyn Fn(usize) -> f64| (0..x.len()).map(term).sum::<f64>();
    let d2 = |gamma: &Gamma| sum(&|d| at(gamma, d) * (x[d] - z[d]).powi(2));
    let inner = |gamma: &Gamma| sum(&|d| at(gamma, d) * x[d] * z[d]);
    match kernel {
        Kernel::Rbf(k) => (-d2(&k.gamma)).exp(),
        Kernel::Laplacian(k) => (-sum(&|d| at(&k.gamma, d) * (x[d] - z[d]).abs())).exp(),
        Kernel::Matern32(k) => {
            let s = 6f64.sqrt() * d2(&k.gamma).sqrt();
            (1.0 + s) * (-s).exp()
        }
        Kernel::Matern52(k) => {
            let s = 10f64.sqrt() * d2(&k.gamma).sqrt();
            (1.0 + s + s.powi(2) / 3.0) * (-s).exp()
        }
        Kernel::RationalQuadratic(k) => (1.0 + d2(&k.gamma) / k.shape).powf(-k.shape),
        Kernel::Linear(_) => sum(&|d| x[d] * z[d]),
        Kernel::Poly(k) => (inner(&k.gamma) + k.coef0).powi(k.degree as i32),
        Kernel::Sigmoid(k) => (inner(&k.gamma) + k.coef0).tanh(),
        Kernel::Periodic(k) => {
            let turn = |d: usize| (std::f64::consts::PI * (x[d] - z[d]) / k.period.unwrap()).sin();
            (-4.0 * sum(&|d| at(&k.gamma, d) * turn(d).powi(2))).exp()
        }
        Kernel::Sum(k) => {
            let term = |term: &Term| -> f64 { term.factors.iter().map(|factor| formula(&factor.kernel, x, z)).product() };
            k.terms.iter().map(|own| own.amplitude.unwrap() * term(own)).sum()
        }
        Kernel::LinearSpline(_) => (0..x.len())
            .map(|d| {
                let (x, z, m) = (x[d], z[d], x[d].min(z[d]));
                1.0 + x * z + x * z * m - (x + z) / 2.0 * m.powi(2) + m.powi(3) / 3.0
            })
            .product(),
    }
}

/// Uniform numbers in [-1, 1] (splitmix64).
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    fn rows(&mut self, n: usize, features: usize) -> Array2<f64> {
        Array2::from_shape_simple_fn((n, features), || self.next())
    }
}

fn block(kernel: &Kernel, a: ArrayView2<f64>, b: ArrayView2<f64>) -> Array2<f64> {
    let mut out = Array2::from_elem((a.nrows(), b.nrows()), f64::NAN);
    kernel.block(a, b, out.view_mut());
    out
}

fn largest(a: &Array2<f64>) -> f64 {
    a.fold(1.0f64, |m, v| m.max(v.abs()))
}

/// Returns all registered kernels, with one gamma and with one per feature, and rows to evaluate them at.
fn all_cases() -> Vec<(Kernel, Array2<f64>, Array2<f64>)> {
    let mut uniform = Uniform(1);
    let mut cases = vec![];
    for name in Kernel::NAMES {
        for features in [1, 2, 5, 8, 9, 30] {
            let (a, b) = (uniform.rows(23, features) * 3.0, uniform.rows(17, features) * 3.0);
            cases.push((sample(name, 0.7 / features as f64), a.clone(), b.clone()));
            let scales: Vec<f64> = (0..features).map(|d| 0.2 + d as f64 / features as f64).collect();
            cases.push((sample(name, scales), a, b));
        }
    }
    cases
}

#[test]
fn every_registered_name_gives_its_kernel() {
    for name in Kernel::NAMES {
        assert_eq!(Kernel::from_name(name).unwrap().name(), *name);
        assert_eq!(sample(name, 1.0).name(), *name);
    }
    let error = Kernel::from_name("gauss").unwrap_err();
    assert!(error.to_string().contains("rbf") && error.to_string().contains("linear_spline"), "{error}");
}

#[test]
fn blocks_equal_the_formula() {
    for (kernel, a, b) in all_cases() {
        let k = block(&kernel, a.view(), b.view());
        let scale = largest(&k);
        for ((i, j), k) in k.indexed_iter() {
            let expected = formula(&kernel, a.row(i), b.row(j));
            assert!((k - expected).abs() <= 1e-12 * scale, "{kernel:?} at {i}, {j}: {k:e} instead of {expected:e}");
        }
    }
}

#[test]
fn blocks_equal_pairs() {
    for (kernel, a, b) in all_cases() {
        let k = block(&kernel, a.view(), b.view());
        let scale = largest(&k);
        for ((i, j), k) in k.indexed_iter() {
            let pair = block(&kernel, a.slice(s![i..=i, ..]), b.slice(s![j..=j, ..]))[[0, 0]];
            assert!((k - pair).abs() <= 1e-12 * scale, "{kernel:?} at {i}, {j}");
        }
    }
}

#[test]
fn blocks_are_symmetric() {
    for (kernel, a, b) in all_cases() {
        let (k, swapped) = (block(&kernel, a.view(), b.view()), block(&kernel, b.view(), a.view()));
        let gap = largest(&(&k - &swapped.t()).mapv(|v| 1.0 + v.abs())) - 1.0;
        assert!(gap <= 1e-12 * largest(&k), "{kernel:?}: {gap:e}");
    }
}

#[test]
fn blocks_do_not_depend_on_the_memory_layout() {
    for (kernel, a, b) in all_cases() {
        let expected = block(&kernel, a.view(), b.view());
        let scale = largest(&expected);
        // Column-major inputs, and an output that is a view of a larger array.
        let (a, b) = (a.t().as_standard_layout().into_owned(), b.t().as_standard_layout().into_owned());
        let mut out = Array2::zeros((expected.nrows(), expected.ncols() + 1));
        kernel.block(a.t(), b.t(), out.slice_mut(s![.., 1..]));
        assert!((&out.slice(s![.., 1..]) - &expected).iter().all(|e| e.abs() <= 1e-12 * scale), "{kernel:?}");
        assert!(out.column(0).iter().all(|v| *v == 0.0));
        kernel.block(a.slice(s![.., ..0]).t(), b.t(), Array2::zeros((0, expected.ncols())).view_mut());
        kernel.block(a.t(), b.slice(s![.., ..0]).t(), Array2::zeros((expected.nrows(), 0)).view_mut());
    }
}

#[test]
fn one_gamma_is_the_same_for_every_feature() {
    let mut uniform = Uniform(2);
    for name in Kernel::NAMES {
        for features in [1, 3, 12] {
            let (a, b) = (uniform.rows(9, features), uniform.rows(7, features));
            let (one, many) = (sample(name, 0.4), sample(name, vec![0.4; features]));
            assert_eq!(block(&one, a.view(), b.view()), block(&many, a.view(), b.view()), "{name}");
        }
    }
}

/// Returns true if `a` is positive definite, by a textbook Cholesky factorisation.
fn positive_definite(mut a: Array2<f64>) -> bool {
    for j in 0..a.nrows() {
        for k in 0..j {
            for i in j..a.nrows() {
                a[[i, j]] -= a[[i, k]] * a[[j, k]];
            }
        }
        if a[[j, j]].is_nan() || a[[j, j]] <= 0.0 {
            return false;
        }
        let pivot = a[[j, j]].sqrt();
        for i in j..a.nrows() {
            a[[i, j]] /= pivot;
        }
    }
    true
}

#[test]
fn gram_matrices_are_positive_semidefinite() {
    let mut uniform = Uniform(3);
    for name in Kernel::NAMES.iter().filter(|n| **n != "sigmoid") {
        for features in [1, 2, 10] {
            for gamma in [0.01, 1.0, 30.0] {
                let mut x = uniform.rows(60, features) * 2.0;
                if *name == "linear_spline" {
                    x.mapv_inplace(f64::abs); // its spline space begins at 0
                }
                let mut gram = block(&sample(name, gamma), x.view(), x.view());
                // A lower bound of the largest eigenvalue, by the power method.
                let mut v = ndarray::Array1::<f64>::ones(60);
                let mut size = 0.0;
                for _ in 0..50 {
                    let next = gram.dot(&v);
                    size = next.dot(&next).sqrt();
                    v = next / size;
                }
                gram.diag_mut().mapv_inplace(|d| d + 1e-10 * size);
                assert!(positive_definite(gram), "{name}, D = {features}, gamma = {gamma}");
            }
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let mut uniform = Uniform(4);
    for (kernel, a, b) in all_cases() {
        // Row 0 of both is equal, so that a distance is 0.
        let mut b = b;
        b.row_mut(0).assign(&a.row(0));
        let w = uniform.rows(a.nrows(), b.nrows());
        let parameters = kernel.parameters();
        let gradient = kernel.gradient(a.view(), b.view(), w.view());
        assert_eq!(gradient.len(), parameters.len(), "{kernel:?}");
        let values: Vec<f64> = parameters.iter().map(|p| p.1).collect();
        assert_eq!(kernel.with_parameters(&values), kernel);
        let step = 1e-4f64;
        for (p, g) in gradient.iter().enumerate() {
            // Differences of fourth order, so that neither truncation nor rounding matters.
            let at = |steps: f64| {
                let mut moved = values.clone();
                moved[p] *= (steps * step).exp();
                (block(&kernel.with_parameters(&moved), a.view(), b.view()) * &w).sum()
            };
            let difference = (8.0 * (at(1.0) - at(-1.0)) - (at(2.0) - at(-2.0))) / (12.0 * step);
            let scale = largest(&block(&kernel, a.view(), b.view())).max(g.abs());
            assert!((g - difference).abs() <= 1e-8 * scale, "{kernel:?}, {}: {g:e}, {difference:e}", parameters[p].0);
        }
    }
}

#[test]
fn gradients_at_extremes_are_finite() {
    for name in Kernel::NAMES {
        for features in [1, 12] {
            let mut x = Array2::zeros((3, features));
            x.row_mut(1).fill(1e-160);
            x.row_mut(2).fill(1e60);
            let kernel = sample(name, 1e-20);
            let w = Array2::ones((3, 3));
            if *name != "poly" && *name != "linear_spline" {
                assert!(block(&kernel, x.view(), x.view()).iter().all(|k| k.is_finite()), "{name}");
                assert!(kernel.gradient(x.view(), x.view(), w.view()).iter().all(|g| g.is_finite()), "{name}");
            }
        }
    }
}

#[test]
fn kernels_survive_json() {
    for name in Kernel::NAMES {
        for gamma in [Gamma::Value(0.1 + 0.2), vec![1e-300, 1.0 / 3.0, 4.9e-324].into(), Gamma::Rule(GammaRule::Auto)] {
            let kernel = sample(name, gamma);
            let text = serde_json::to_string(&kernel).unwrap();
            assert_eq!(serde_json::from_str::<Kernel>(&text).unwrap(), kernel, "{text}");
        }
        let default: Kernel = serde_json::from_str(&format!("{{\"{name}\":{{}}}}")).unwrap();
        assert_eq!(default, Kernel::from_name(name).unwrap());
        default.check().unwrap();
        let error = serde_json::from_str::<Kernel>(&format!("{{\"{name}\":{{\"gama\":1}}}}")).unwrap_err();
        assert!(error.to_string().contains("unknown field `gama`"), "{error}");
    }
    let written = serde_json::to_string(&Kernel::from(Poly { gamma: Gamma::default(), coef0: 1.0, degree: 2 })).unwrap();
    assert_eq!(written, r#"{"poly":{"gamma":"scale","coef0":1.0,"degree":2}}"#);
    assert!(serde_json::from_str::<Kernel>(r#"{"poly":{"degree":2.5}}"#).is_err());
}

#[test]
fn default_kernels_have_documented_parameters() {
    let json = |name: &str| serde_json::to_string(&Kernel::from_name(name).unwrap()).unwrap();
    assert_eq!(json("rbf"), r#"{"rbf":{"gamma":"scale"}}"#);
    assert_eq!(json("rational_quadratic"), r#"{"rational_quadratic":{"gamma":"scale","shape":1.0}}"#);
    assert_eq!(json("poly"), r#"{"poly":{"gamma":"scale","coef0":0.0,"degree":3}}"#);
    assert_eq!(json("sigmoid"), r#"{"sigmoid":{"gamma":"scale","coef0":0.0}}"#);
    assert_eq!(json("linear"), r#"{"linear":{}}"#);
}

#[test]
fn invalid_kernel_parameters_are_rejected() {
    let refused = |kernel: &Kernel, data: Option<&DataScale>, parameter: &str, value: &str| {
        let result = data.map_or_else(|| kernel.check(), |data| kernel.resolve(data).map(|_| ()));
        match result {
            Err(Error::Parameter { name, found, expected }) => {
                assert_eq!(name, format!("kernel.{}.{parameter}", kernel.name()));
                assert_eq!(found, value, "{name}");
                assert!(expected.contains("number"), "{expected}");
            }
            other => panic!("{kernel:?}: {other:?}"),
        }
    };
    let data = DataScale { features: 3, variance: 1.0 };
    for name in Kernel::NAMES.iter().filter(|n| !n.starts_with("linear") && **n != "sum") {
        for (value, text) in [(0.0, "0"), (-1.0, "-1"), (f64::NAN, "NaN"), (f64::INFINITY, "inf")] {
            refused(&sample(name, value), None, "gamma", text);
            refused(&sample(name, value), Some(&data), "gamma", text);
        }
        refused(&sample(name, vec![]), None, "gamma", "[]");
        refused(&sample(name, vec![1.0, -2.0, 3.0]), None, "gamma", "[1.0, -2.0, 3.0]");
        refused(&sample(name, vec![1.0, 2.0]), Some(&data), "gamma", "2 values");
    }
    for (shape, text) in [(0.0, "0"), (-2.0, "-2"), (f64::NAN, "NaN")] {
        refused(&RationalQuadratic { shape, ..Default::default() }.into(), None, "shape", text);
    }
    refused(&Poly { degree: 0, ..Default::default() }.into(), None, "degree", "0");
    refused(&Poly { coef0: f64::NAN, ..Default::default() }.into(), None, "coef0", "NaN");
    refused(&Sigmoid { coef0: f64::INFINITY, ..Default::default() }.into(), None, "coef0", "inf");
    let text = sample("rbf", 0.0).check().unwrap_err().to_string();
    assert_eq!(
        text,
        "kernel.rbf.gamma = 0: expected a positive, finite number, one such number per feature, \"scale\", \"auto\", \"evidence\", \"evidence-ard\", \"evidence-one\" or \"evidence-isotropic\""
    );
}

#[test]
fn scale_and_auto_are_resolved_as_scikit_learn_does() {
    let resolved = |rule, features, variance| {
        let kernel = sample("rbf", Gamma::Rule(rule)).resolve(&DataScale { features, variance });
        kernel.map(|k| k.parameters()[0].1)
    };
    assert_eq!(resolved(GammaRule::Auto, 4, 9.0), Ok(0.25));
    assert_eq!(resolved(GammaRule::Scale, 4, 2.0), Ok(0.125));
    assert_eq!(resolved(GammaRule::Scale, 4, 0.0), Ok(1.0));
    assert!(matches!(resolved(GammaRule::Scale, 4, 1e-320), Err(Error::Overflow { .. })));
    let data = DataScale { features: 2, variance: 0.5 };
    for name in Kernel::NAMES {
        let default = Kernel::from_name(name).unwrap().resolve(&data).unwrap();
        if let Some((parameter, value)) = default.parameters().iter().find(|(name, _)| name.ends_with("gamma")) {
            // 1 / (D var(X)), and 1 / D for points on circles.
            let expected = if *name == "periodic" { 0.5 } else { 1.0 };
            assert_eq!((parameter.trim_start_matches("terms[0].factors[0]."), *value), ("gamma", expected), "{name}");
        }
        // Numbers are not changed.
        let kernel = sample(name, vec![0.3, 0.4]);
        assert_eq!(kernel.resolve(&data).unwrap(), kernel);
    }
}

/// A sum of two doubles, about 32 digits.
#[derive(Clone, Copy)]
struct Twofold(f64, f64);

impl Twofold {
    fn difference(a: f64, b: f64) -> Self {
        let d = a - b;
        let v = d - a;
        Twofold(d, (a - (d - v)) - (b + v))
    }

    fn plus(self, other: Self) -> Self {
        let s = self.0 + other.0;
        let v = s - self.0;
        let low = (self.0 - (s - v)) + (other.0 - v) + self.1 + other.1;
        let high = s + low;
        Twofold(high, low - (high - s))
    }

    fn times(self, other: Self) -> Self {
        let p = self.0 * other.0;
        let low = self.0.mul_add(other.0, -p) + self.0 * other.1 + self.1 * other.0;
        let high = p + low;
        Twofold(high, low - (high - p))
    }
}

/// Checks the largest absolute error of a block of each stationary kernel.
fn check_accuracy(a: &Array2<f64>, b: &Array2<f64>, gamma: f64, what: &str) {
    for name in ["rbf", "matern32", "matern52", "rational_quadratic"] {
        let k = block(&sample(name, gamma), a.view(), b.view());
        for ((i, j), k) in k.indexed_iter() {
            let mut d2 = Twofold(0.0, 0.0);
            for (x, z) in a.row(i).iter().zip(b.row(j)) {
                let d = Twofold::difference(*x, *z);
                d2 = d2.plus(d.times(d).times(Twofold(gamma, 0.0)));
            }
            let d2 = d2.0;
            let (s3, s5) = ((6.0 * d2).sqrt(), (10.0 * d2).sqrt());
            let expected = match name {
                "rbf" => (-d2).exp(),
                "matern32" => (1.0 + s3) * (-s3).exp(),
                "matern52" => (1.0 + s5 + s5 * s5 / 3.0) * (-s5).exp(),
                _ => (-1.7 * (d2 / 1.7).ln_1p()).exp(),
            };
            let error = (k - expected).abs();
            assert!(error < 1e-12, "{name}, {what}, gamma = {gamma:e}: error {error:e} at d^2 = {d2:e}");
        }
    }
    let k = block(&sample("laplacian", gamma), a.view(), b.view());
    for ((i, j), k) in k.indexed_iter() {
        let distance = a.row(i).iter().zip(b.row(j)).fold(Twofold(0.0, 0.0), |sum, (x, z)| {
            let d = Twofold::difference(*x, *z);
            let d = if d.0 < 0.0 { Twofold(-d.0, -d.1) } else { d };
            sum.plus(d.times(Twofold(gamma, 0.0)))
        });
        let error = (k - (-distance.0).exp()).abs();
        assert!(error < 1e-12, "laplacian, {what}, gamma = {gamma:e}: error {error:e} at {:e}", distance.0);
    }
}

#[test]
fn distances_of_near_points_are_accurate() {
    let mut uniform = Uniform(5);
    for features in [1, 3, 8, 9, 30, 200] {
        for offset in [0.0, 1e6] {
            for gamma in [0.5 / features as f64, 1.0, 1e3, 1e6, 1e10] {
                let what = format!("D = {features}, offset {offset:e}");
                let a = uniform.rows(60, features) + offset;
                // Random rows, rows at a distance that matters for this gamma, and equal rows.
                let mut b = uniform.rows(64, features) + offset;
                for i in 0..20 {
                    let width = [1e-3, 0.3, 1.0, 3.0][i % 4] / (gamma * features as f64).sqrt();
                    b.row_mut(3 * i).assign(&(&a.row(i) + &(uniform.rows(1, features).row(0).to_owned() * width)));
                    b.row_mut(3 * i + 1).assign(&a.row(i));
                }
                check_accuracy(&a, &b, gamma, &what);
                check_accuracy(&a, &a, gamma, &what);
            }
        }
    }
}

#[test]
fn distances_in_tight_clusters_are_accurate() {
    let mut uniform = Uniform(6);
    for features in [2, 9, 30] {
        let centres = uniform.rows(4, features) * 1e4;
        let x = Array2::from_shape_fn((80, features), |(i, d)| centres[[i % 4, d]] + uniform.next());
        check_accuracy(&x, &x, 0.3 / features as f64, &format!("clusters, D = {features}"));
        // One row far from all others moves the centre away.
        let mut x = uniform.rows(40, features);
        x.row_mut(7).fill(1e12);
        check_accuracy(&x, &x, 0.3 / features as f64, &format!("an outlier, D = {features}"));
    }
}

#[test]
fn kernels_are_accurate_over_the_range_of_numbers() {
    let mut uniform = Uniform(7);
    for features in [2, 9, 30] {
        let x = uniform.rows(20, features);
        for (size, gamma) in [(1e150, 1e-300), (1e-150, 1e300), (1e153, 1e-306)] {
            for name in ["rbf", "matern32", "matern52", "rational_quadratic"] {
                let small = block(&sample(name, 1.0), x.view(), x.view());
                let large = block(&sample(name, gamma), (&x * size).view(), (&x * size).view());
                let gap = largest(&(&small - &large).mapv(|v| 1.0 + v.abs())) - 1.0;
                assert!(gap < 1e-12, "{name}, features near {size:e}, D = {features}: {gap:e}");
                // With one gamma that is less suitable, kernels are 0 or 1, and kernels and gradients are never NaN.
                let w = Array2::ones((20, 20));
                for gamma in [1e-308, 1.0, 1e308] {
                    let kernel = sample(name, gamma);
                    let k = block(&kernel, (&x * size).view(), (&x * size).view());
                    assert!(k.iter().all(|k| (0.0..=1.0).contains(k)), "{name}, {size:e}, {gamma:e}");
                    let gradient = kernel.gradient((&x * size).view(), (&x * size).view(), w.view());
                    assert!(gradient.iter().all(|g| g.is_finite()), "{name}, {size:e}, {gamma:e}: {gradient:?}");
                }
            }
        }
    }
}

#[test]
fn kernels_are_finite_if_the_mean_of_rows_overflows() {
    let x = Array2::from_shape_fn((20, 9), |(i, _)| 1.5e308 - 1e293 * i as f64);
    let k = block(&sample("rbf", 1e-300), x.view(), x.view());
    assert!(k.iter().all(|k| (0.0..=1.0).contains(k)));
    assert!(k.diag().iter().all(|k| *k == 1.0));
}

#[test]
fn linear_spline_is_correct_for_negative_inputs() {
    // By hand: x = -2, x' = 3: m = -2, 1 - 6 + 12 - 2 - 8/3.
    let pair =
        |x: f64, z: f64| block(&LinearSpline {}.into(), Array2::from_elem((1, 1), x).view(), ndarray::array![[z]].view())[[0, 0]];
    assert!((pair(-2.0, 3.0) - (5.0 - 8.0 / 3.0)).abs() < 1e-14);
    assert!((pair(-10.0, -10.0) - (101.0 - 1000.0 / 3.0)).abs() < 1e-12);
    assert_eq!(pair(0.0, 7.5), 1.0);
    assert!((pair(0.0, -6.0) - 37.0).abs() < 1e-12);
}
