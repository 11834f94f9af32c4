//! Published results: Tipping 1999 (NIPS 12), section 4 and table 2; Tipping 2001 (JMLR 1).

use ndarray::{Array1, Array2};
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};
use relvec::*;

fn sinc(x: f64) -> f64 {
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

/// Tipping 1999, section 4.1: 100 noise-free points of sinc on [-10, 10], linear spline, sigma fixed at 0.01. The paper
/// has 9 relevance vectors and a largest error of 0.0087.
#[test]
fn fit_of_sinc_without_noise_agrees_with_the_paper() {
    let x = Array2::from_shape_fn((100, 1), |(i, _)| -10.0 + 20.0 * i as f64 / 99.0);
    let t = x.column(0).mapv(sinc);
    let rvm = Rvm {
        kernel: LinearSpline::default().into(),
        likelihood: Gaussian { noise_variance: Some(1e-4) }.into(),
        ..Rvm::tipping2001()
    };
    let (model, report) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
    let grid = Array2::from_shape_fn((1001, 1), |(i, _)| -10.0 + 20.0 * i as f64 / 1000.0);
    let mean = model.predict(grid.view()).unwrap().mean;
    let worst = mean.iter().zip(grid.column(0)).map(|(y, x)| (y - sinc(*x)).abs()).fold(0.0, f64::max);
    println!("sinc: {} vectors, largest error {worst:.4}, evidence {:.2}", model.relevance.len(), model.log_evidence.unwrap());
    assert_eq!(report.status, Status::Converged);
    assert!((8..=10).contains(&model.relevance.len()), "{} relevance vectors", model.relevance.len());
    assert!(worst < 0.01, "largest error {worst}");
}

/// Tipping 1999, section 4.1: sinc with noise of 0.2. The paper has 6 relevance vectors and a noise estimate of 0.189.
/// The test uses ten draws, and the noise estimate is that of the draw (its standard error is 0.015).
#[test]
fn fits_of_sinc_with_noise_agree_with_the_paper() {
    let mut estimates = Vec::new();
    for seed in 0..10 {
        let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
        let x = Array2::from_shape_fn((100, 1), |(i, _)| -10.0 + 20.0 * i as f64 / 99.0);
        let noise: Array1<f64> = (0..100).map(|_| 0.2 * Distribution::<f64>::sample(&StandardNormal, &mut random)).collect();
        let t = x.column(0).mapv(sinc) + &noise;
        let rvm = Rvm { kernel: LinearSpline::default().into(), ..Rvm::tipping2001() };
        let (model, _) = rvm.fit(x.view(), &Targets::real(t.view())).unwrap();
        let (got, drawn) = (model.noise_std().unwrap(), (noise.dot(&noise) / 100.0).sqrt());
        println!("noisy sinc {seed}: {} vectors, noise {got:.3}, drawn {drawn:.3}", model.relevance.len());
        assert!(model.relevance.len() <= 12, "draw {seed}: {} relevance vectors", model.relevance.len());
        assert!((got / drawn - 1.0).abs() < 0.1, "draw {seed}: noise {got}, drawn {drawn}");
        estimates.push(got);
    }
    let mean = estimates.iter().sum::<f64>() / 10.0;
    assert!((0.17..=0.23).contains(&mean), "noise {mean}");
}

/// Wide kernels do not trap the search. An empty start ends 60 nats lower at gamma 0.01, with an error of 0.30. At 0.03
/// the models of highest evidence are not those of least error: MacKay's, up to 2 nats lower on some draws, have 0.056.
#[test]
fn wide_kernels_do_not_trap_the_search() {
    for (gamma, most) in [(0.01, 0.12), (0.03, 0.068), (1.0 / 9.0, 0.056)] {
        let mut errors: Vec<f64> = (0..8)
            .map(|seed| {
                let mut random = rand_pcg::Pcg64::seed_from_u64(seed);
                let x = Array2::from_shape_fn((200, 1), |_| random.random_range(-10.0..10.0));
                let t = x.column(0).mapv(|x| {
                    let noise: f64 = StandardNormal.sample(&mut random);
                    sinc(x) + 0.2 * noise
                });
                let rvm = Rvm { kernel: Rbf { gamma: gamma.into() }.into(), ..Rvm::tipping2001() };
                let targets = Targets::real(t.view());
                let (model, _) = rvm.fit(x.view(), &targets).unwrap();
                let mackay = Rvm { inference: Inference::from_name("mackay").unwrap(), ..rvm };
                let (other, _) = mackay.fit(x.view(), &targets).unwrap();
                assert!(
                    model.log_evidence.unwrap() >= other.log_evidence.unwrap() - 0.5,
                    "gamma {gamma}, draw {seed}: {} against mackay's {}",
                    model.log_evidence.unwrap(),
                    other.log_evidence.unwrap()
                );
                let grid = Array2::from_shape_fn((1001, 1), |(i, _)| -10.0 + 20.0 * i as f64 / 1000.0);
                let mean = model.predict(grid.view()).unwrap().mean;
                let square = mean.iter().zip(grid.column(0)).map(|(y, x)| (y - sinc(*x)).powi(2)).sum::<f64>();
                (square / 1001.0).sqrt()
            })
            .collect();
        errors.sort_by(f64::total_cmp);
        let median = 0.5 * (errors[3] + errors[4]);
        println!("gamma {gamma:.3}: median error {median:.4}, worst {:.4}", errors[7]);
        assert!(median <= most, "gamma {gamma}: median error {median}");
    }
}
