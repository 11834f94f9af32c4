//! What candidates outside a problem would add to the evidence: one pass over rows and candidates.

use std::collections::BTreeMap;

use ndarray::{Array2, ArrayView1, ArrayView2, Axis, s};
use rayon::prelude::*;

use crate::design::Design;
use crate::error::Result;
use crate::rvm::data::budget::KEPT_SHARE;
use crate::rvm::data::noise::{Noise, Profile};
use crate::rvm::data::table::Table;
use crate::rvm::evidence::fitted::fitted;
use crate::rvm::evidence::gain::{Candidate, Seen, by_noise};
use crate::rvm::evidence::solution::Solution;
use crate::rvm::evidence::workspace::Workspace;
use crate::rvm::gram::all_sums::{AllSums, Products};
use crate::rvm::gram::low_rank::LowRank;
use crate::rvm::gram::problem::is_little;
use crate::sums::Sums;
use crate::{linalg, mutual};

/// Candidates at a time: a block of them, and their products with the model, are all that is kept.
const TILE: usize = 4096;
/// Of these a thread judges so many in a row, at least.
const AT_ONCE: usize = 256;
/// As in the factor: a candidate with a smaller share outside the span of the model is never added.
const SPAN_FLOOR: f64 = 1e-11;

/// Share of the memory limit that products between all rows may take for a while.
const MUTUAL_SHARE: u64 = 4;
/// Of the candidates of a part at least one in so many have to have been in the model for its sums to be pieced together.
const PIECED: usize = 8;

/// Passes over the candidates of one fit. Where the curvature is constant, products of a column of the model
/// with all candidates stay what they are: a later pass makes those of new columns only, and so do the sums of a part.
#[derive(Debug, Default)]
pub(crate) struct Passes {
    /// Of columns of the model, by the place of the candidate (`None`: the bias).
    products: BTreeMap<Option<usize>, Kept>,
    /// phi'B phi of the candidates, `[P]`, once they are known; kept where the curvature is constant.
    squares: Vec<f64>,
    /// Instead of kernel values, where their rank is low.
    pub factor: Option<LowRank>,
    /// Or where the candidates are few.
    pub all: Option<AllSums>,
}

/// What is known of a column phi.
#[derive(Debug)]
struct Kept {
    /// |phi|, weighted.
    norm: f64,
    /// Phi'B phi / |phi|, `[P]`.
    products: Vec<f64>,
}

impl Passes {
    /// Over so many candidates.
    pub fn of(table: &Table, candidates: usize) -> Passes {
        // Of what may be kept the factor takes at most half, a copy of it while it is made the other half.
        let factor = LowRank::of(table, candidates, table.memory_limit / KEPT_SHARE);
        Passes { factor, ..Passes::default() }
    }

    /// What each of `candidates` (always the same, ascending) would add to the evidence of `solution` at its best
    /// precision, less what it costs, 0 if nothing; and the same as if the noise precision were held `held` times higher.
    ///
    /// With B and r the curvature and the slope of the log-likelihood at the solution (by row, times the sample
    /// weights), S = phi'B phi - |inv(R) Phi_A'B phi|^2 and Q = phi'r: the same for every likelihood.
    pub fn gains(&mut self, work: &Workspace, solution: &Solution, candidates: &[usize], held: f64) -> Result<Vec<(f64, f64)>> {
        let problem = work.problem;
        let table = problem.table;
        let (outputs, noises) = (solution.outputs, table.noise.len());
        let copies = (outputs / noises) as f64;
        let energy: Vec<f64> = solution.energy.iter().map(|e| e.max(1e-13 * table.count)).collect();
        let of_noise = |(noise, e): (&Noise, &f64)| noise.profile(*e, table.count, copies);
        let profiles: Vec<Profile> = table.noise.iter().zip(&energy).map(of_noise).collect();
        let held: Vec<Profile> = solution.beta.iter().map(|beta| Profile::Held { beta: held * beta, copies }).collect();
        let nats = work.prior.nats;
        self.judge(work, solution, candidates, &energy, |square, candidate| {
            let outside = candidate.s > SPAN_FLOOR * square;
            let gain = |profile: &[Profile]| {
                let best = candidate.best(profile, 0.0).filter(|_| outside);
                best.map_or(0.0, |a| (candidate.contribution(a, profile) - nats).max(0.0))
            };
            (gain(&profiles), gain(&held))
        })
    }

    /// What `of` says of each of `candidates`, in their order, as the model sees it (S and Q), after its squared norm; `energy`:
    /// of each noise.
    fn judge<T: Send>(
        &mut self,
        work: &Workspace,
        solution: &Solution,
        candidates: &[usize],
        energy: &[f64],
        of: impl Fn(f64, Candidate) -> T + Sync,
    ) -> Result<Vec<T>> {
        let (outputs, noises) = (solution.outputs, energy.len());
        let mut out = Vec::with_capacity(candidates.len());
        self.visit(work, solution, candidates, |mut products| {
            linalg::solve_lower(solution.lower.view(), products.with_model.view_mut());
            let inside = squares(products.with_model.view());
            let each = products.square.par_iter().zip(inside).enumerate().with_min_len(AT_ONCE);
            out.par_extend(each.map(|(j, (square, inside))| {
                let seen = |k: usize, q: f64| Seen { q, energy: energy[k] };
                let seen = by_noise(noises, outputs, |r| products.with_residual[[r, j]], seen);
                of(*square, Candidate { s: square - inside, seen })
            }));
        })?;
        Ok(out)
    }

    /// The sums of the candidates `places`, the bias before them if there is one: of columns that have been in the model by
    /// their products with all `candidates` (those of every pass), so that the rest alone needs a pass over the rows; `None`
    /// if that is nearly all, or needs closer looks.
    pub fn sums_of(&self, table: &Table, candidates: &[usize], places: &[usize]) -> Result<Option<Sums>> {
        let (known, fresh): (Vec<usize>, Vec<usize>) = places.iter().partition(|p| self.products.contains_key(&Some(**p)));
        let first = usize::from(table.rvm.bias);
        if is_little(table, places.len())
            || PIECED * known.len() < places.len()
            || (table.rvm.bias && !self.products.contains_key(&None))
        {
            return Ok(None);
        }
        let design = |places: &[usize], bias: bool| {
            let (rows, columns) = table.columns(places);
            Design::unscaled(rows, columns, bias, table.memory_limit, table.interrupt.clone())
        };
        let of_fresh = table.sums(&design(&fresh, false));
        if of_fresh.norms().is_none() {
            return Ok(None);
        }
        let outputs = of_fresh.f.len();
        let mut weighted = Array2::from_shape_vec((table.weights.len(), outputs), table.targets.to_vec()).expect("K a row");
        weighted.outer_iter_mut().zip(&table.weights).for_each(|(mut t, c)| t *= *c);
        let (_, f_known) = design(&known, table.rvm.bias).products(&table.weights, weighted.view());
        table.interrupt.check()?;

        let column = |place: &usize| first + places.binary_search(place).expect("one of them");
        let all: Vec<usize> = places.iter().map(|p| candidates.binary_search(p).expect("a candidate")).collect();
        let mut sums = Sums::new(first + places.len(), outputs);
        let bias = table.rvm.bias.then_some(None);
        let names: Vec<Option<usize>> = bias.into_iter().chain(known.iter().map(|p| Some(*p))).collect();
        for (k, name) in names.iter().enumerate() {
            let (own, kept) = (name.as_ref().map_or(0, column), &self.products[name]);
            for (j, c) in all.iter().enumerate() {
                let value = kept.norm * kept.products[*c];
                sums.gram[[own, first + j]] = value;
                sums.gram[[first + j, own]] = value;
            }
            for (f, known) in sums.f.iter_mut().zip(f_known.outer_iter()) {
                f[own] = known[k];
            }
        }
        if table.rvm.bias {
            sums.gram[[0, 0]] = self.products[&None].norm.powi(2);
        }
        let fresh: Vec<usize> = fresh.iter().map(column).collect();
        for (row, i) in of_fresh.gram.outer_iter().zip(&fresh) {
            row.iter().zip(&fresh).for_each(|(g, j)| sums.gram[[*i, *j]] = *g);
        }
        for (f, of_fresh) in sums.f.iter_mut().zip(&of_fresh.f) {
            of_fresh.iter().zip(&fresh).for_each(|(v, j)| f[*j] = *v);
        }
        Ok(Some(Sums { tt: of_fresh.tt, count: of_fresh.count, ..sums }))
    }

    /// Shows the products of `candidates`, in their order, some at a time.
    fn visit(
        &mut self,
        work: &Workspace,
        solution: &Solution,
        candidates: &[usize],
        mut see: impl FnMut(Products),
    ) -> Result<()> {
        let problem = work.problem;
        let table = problem.table;
        let outputs = solution.outputs;
        let first = usize::from(problem.has_bias);
        let names: Vec<Option<usize>> =
            solution.active.iter().map(|j| (*j >= first).then(|| problem.places[*j - first])).collect();
        if let Some(products) =
            self.all.as_ref().and_then(|all| all.products(problem, &solution.active, (outputs, &solution.mean), &names))
        {
            see(products);
            return Ok(());
        }
        let f = fitted(problem, solution);
        let derivatives = problem.working(&f);
        let b: Vec<f64> = derivatives.curvature.iter().zip(&table.weights).map(|(b, c)| b * c).collect();

        // Those of columns that have left the model make room first.
        let room = table.memory_limit / KEPT_SHARE - self.factor.as_ref().map_or(0, LowRank::bytes);
        let most = room as usize / (8 * candidates.len().max(1));
        let keeps = problem.constant_curvature() && names.len() <= most;
        if self.products.keys().filter(|name| !names.contains(name)).count() + names.len() > most {
            self.products.retain(|name, _| names.contains(name));
        }
        if !keeps {
            self.products.clear();
        }
        let fresh: Vec<usize> = (0..names.len()).filter(|i| !self.products.contains_key(&names[*i])).collect();
        let columns: Vec<usize> = fresh.iter().map(|i| solution.active[*i]).collect();
        let k = fresh.len();
        let mut left = Array2::zeros((b.len(), k + outputs));
        left.slice_mut(s![.., ..k]).assign(&problem.design.select(&columns));
        for (n, mut row) in left.outer_iter_mut().enumerate() {
            row.slice_mut(s![..k]).mapv_inplace(|v| v * b[n]);
            let residual = &derivatives.residual[n * outputs..(n + 1) * outputs];
            row.slice_mut(s![k..]).iter_mut().zip(residual).for_each(|(v, r)| *v = r * table.weights[n]);
        }
        let mut made = vec![Vec::new(); k];
        let mut seen = 0;
        if !problem.constant_curvature() {
            self.squares.clear();
        }
        let unknown = self.squares.is_empty().then_some(b.as_slice());
        let mutual = if self.factor.is_none() { between_rows(table, candidates, unknown, &left) } else { None };
        table.interrupt.check()?;
        let mutual = mutual.map(|(squares, all)| {
            if unknown.is_some() {
                self.squares = squares;
            }
            all
        });
        for tile in candidates.chunks(TILE) {
            let range = seen..seen + tile.len();
            seen = range.end;
            let of_rows =
                mutual.as_ref().map(|all| (self.squares[range.clone()].to_vec(), all.slice(s![.., range.clone()]).to_owned()));
            let short = || self.factor.as_ref().and_then(|factor| factor.products(&b, left.view(), &table.rows_of(tile)?.1));
            let (square, new) = of_rows.or_else(short).unwrap_or_else(|| {
                let (rows, columns) = table.columns(tile);
                let design = Design::unscaled(rows, columns, false, table.memory_limit, table.interrupt.clone());
                design.products(&b, left.view())
            });
            table.interrupt.check()?;
            let mut with_model = Array2::zeros((names.len(), tile.len()));
            for (name, mut row) in names.iter().zip(with_model.outer_iter_mut()) {
                if let Some(kept) = self.products.get(name) {
                    row.assign(&ArrayView1::from(&kept.products[range.clone()]));
                }
            }
            for ((i, new), made) in fresh.iter().zip(new.outer_iter()).zip(&mut made) {
                with_model.row_mut(*i).assign(&new);
                if keeps {
                    made.extend(new);
                }
            }
            see(Products { square, with_model, with_residual: new.slice_move(s![k.., ..]) });
        }
        if keeps {
            let kept = fresh.iter().zip(columns).zip(made);
            let norms = problem.design.norms();
            self.products.extend(kept.map(|((i, j), products)| (names[*i], Kept { norm: norms[j], products })));
        }
        Ok(())
    }
}

/// As [`Design::products`] of all candidates, from half of the kernel values where the candidates are the rows, each once, and
/// memory allows; the squares if `b` is given.
fn between_rows(table: &Table, candidates: &[usize], b: Option<&[f64]>, left: &Array2<f64>) -> Option<(Vec<f64>, Array2<f64>)> {
    let (kernel, rows) = table.rows_of(candidates)?;
    let all_rows = rows.len() == table.rows.nrows() && rows.iter().enumerate().all(|(k, row)| k == *row);
    // The left side turned, its products by block, and all of them.
    if !all_rows || 3 * 8 * left.len() as u64 > table.memory_limit / MUTUAL_SHARE {
        return None;
    }
    let left = left.t().as_standard_layout().into_owned();
    Some(mutual::products(kernel, table.rows.view(), b, left.view(), &table.interrupt))
}

/// Sums of squares of the columns.
fn squares(a: ArrayView2<f64>) -> Vec<f64> {
    let mut out = vec![0.0; a.ncols()];
    for row in a.axis_iter(Axis(0)) {
        out.iter_mut().zip(row).for_each(|(o, v)| *o += v * v);
    }
    out
}

#[cfg(test)]
mod tests {
    use ndarray::{Array1, Array2};

    use super::*;
    use crate::kernel::Rbf;
    use crate::likelihood::{Bernoulli, Gaussian, Softmax};
    use crate::report::Interrupt;
    use crate::rvm::data::noise::Noise;
    use crate::rvm::evidence::factor::{Action, Factor};
    use crate::rvm::evidence::solution::At;
    use crate::rvm::gram::problem::Problem;
    use crate::rvm::settings::dictionary::{Dictionary, DictionaryRule};
    use crate::rvm::settings::rvm::Rvm;
    use crate::targets::Targets;

    /// What additions to a model would gain according to the problem of all candidates, `[P]`.
    fn by_factor(factor: &Factor) -> Vec<f64> {
        let gain = |action| match action {
            Some((Action::Add { .. }, gain)) => f64::max(gain, 0.0),
            _ => 0.0,
        };
        factor.actions().into_iter().map(gain).collect()
    }

    /// |r| as each noise sees it: r are the slopes of the log-likelihoods by row, which count as columns' entries do.
    fn residual_sizes(problem: &Problem, solution: &Solution) -> Vec<f64> {
        let (outputs, weights) = (solution.outputs, &problem.table.weights);
        let residual = problem.working(&fitted(problem, solution)).residual;
        let square = |k: usize| residual.iter().skip(k).step_by(outputs).zip(weights).map(|(r, c)| c * r * r).sum::<f64>();
        match problem.table.noise.len() {
            1 => vec![(0..outputs).map(square).sum::<f64>().sqrt()],
            noises => (0..noises).map(|k| square(k).sqrt()).collect(),
        }
    }

    /// The pass from row derivatives says of candidates outside a part what the factor of the whole says.
    #[test]
    fn gains_outside_a_part_are_those_of_the_whole() {
        let x = Array2::from_shape_fn((600, 2), |(i, d)| ((i * (7 + 4 * d)) % 600) as f64 / 150.0 + 0.001 * (i + d) as f64);
        let f = x.map_axis(Axis(1), |r| f64::sin(2.0 * r[0]) + f64::cos(3.0 * r[1]) + 0.3 * f64::sin(40.0 * r[0] * r[1]));
        let labels: Vec<usize> = f.iter().map(|f| usize::from(*f > 0.2)).collect();
        let kinds: Vec<usize> = f.iter().map(|f| (f + 1.5).clamp(0.0, 3.0) as usize).collect();
        let c = Array1::from_shape_fn(600, |i| 0.5 * (1 + i % 4) as f64);
        let t = f.mapv(|f| f + 50.0);
        let three = Array2::from_shape_fn((600, 3), |(i, k)| [t[i], 0.1 * f[599 - i], 7.0 * f[i].powi(2) - 900.0][k]);
        let variances = Array1::from_shape_fn(600, |i| 0.02 * (1 + i % 5) as f64);
        let fixed = Gaussian { noise_variance: Some(0.05) };
        for (likelihood, bias, outputs, known) in [
            (Gaussian::default().into(), true, 1, false),
            (Gaussian::default().into(), false, 1, false),
            (Gaussian::default().into(), true, 1, true),
            (fixed.clone().into(), true, 1, false),
            (Bernoulli::default().into(), true, 1, false),
            (Bernoulli::default().into(), false, 1, false),
            (Softmax::default().into(), true, 1, false),
            (Softmax::default().into(), false, 1, false),
            (Gaussian::default().into(), true, 3, false),
            (Gaussian::default().into(), false, 3, false),
            (fixed.into(), true, 3, false),
        ] {
            let kernel = Rbf { gamma: 1.5.into() }.into();
            let dictionary = Dictionary::Rule(DictionaryRule::All);
            let rvm = Rvm { kernel, dictionary, bias, likelihood, ..Rvm::tipping2001() };
            let (classes, several) = (rvm.likelihood.name() != "gaussian", rvm.likelihood.name() == "softmax");
            let targets = match (classes, several) {
                (false, _) if outputs > 1 => Targets::outputs(three.view()),
                (false, _) => Targets::real(t.view()),
                (true, false) => Targets::classes(&labels, 2),
                (true, true) => Targets::classes(&kinds, 4),
            };
            let targets = targets.with_weights(c.view());
            let targets = if known { targets.with_noise_variance(variances.view()) } else { targets };
            let table = Table::new(&rvm, x.view(), &targets, &Interrupt::default()).unwrap();
            let (inside, outside): (Vec<usize>, Vec<usize>) = table.dictionary().into_iter().partition(|k| k % 3 == 0);

            let (part, sums) = Problem::new(&table, inside).unwrap();
            let work = Workspace::new(&part, sums);
            let active: Vec<usize> = (0..part.design.n_columns()).step_by(17).collect();
            let a: Vec<f64> = (0..active.len()).map(|k| 10f64.powi((k % 4) as i32 - 3)).collect();
            let solution = work.solve(&active, &a, &table.noise, At::Best, None).unwrap();
            let mut passes = Passes::default();
            // The second time from what the first has kept, where anything is.
            let found = [(); 2].map(|()| passes.gains(&work, &solution, &outside, 3.0).unwrap());
            assert_eq!(passes.products.is_empty(), classes);

            let (all, sums) = Problem::new(&table, table.dictionary()).unwrap();
            let whole = Workspace::new(&all, sums);
            let first = usize::from(bias);
            let column = |j: usize| if j < first { 0 } else { all.column_of(part.places[j - first]).unwrap() };
            let active: Vec<usize> = active.into_iter().map(column).collect();
            let same = whole.solve(&active, &a, &table.noise, At::Best, None).unwrap();
            let name = format!("{:?} bias {bias} outputs {outputs} known noise {known}", rvm.likelihood);
            assert!((same.log_evidence - solution.log_evidence).abs() < 1e-9 * solution.log_evidence.abs(), "{name}");
            let factor_of = |noise: &[Noise]| Factor::new(whole.quadratic(&same).unwrap(), &same, noise, whole.prior);
            let factor = |noise: &[Noise]| by_factor(&factor_of(noise));

            // S and Q of every candidate that is not in the model, S beside phi'B phi and Q beside |phi| |r|.
            let model: Vec<usize> = same.active.iter().filter(|j| **j >= first).map(|j| all.places[*j - first]).collect();
            let rest: Vec<usize> = table.dictionary().into_iter().filter(|p| !model.contains(p)).collect();
            let expected = factor_of(&table.noise).candidates();
            let sizes = residual_sizes(&part, &solution);
            let mut passes = Passes::default();
            for _ in 0..2 {
                let see = |square: f64, candidate| (square, candidate);
                let found = passes.judge(&work, &solution, &rest, &solution.energy, see).unwrap();
                assert_eq!(found.len(), rest.len());
                for (place, (square, found)) in rest.iter().zip(&found) {
                    let column = all.column_of(*place).unwrap();
                    let (norm, expected) = (all.design.norms()[column], &expected[column]);
                    let off = (found.s - expected.s * norm * norm).abs();
                    assert!(off < 1e-9 * square, "{name}: S of {place} is off by {off:e} of {square:e}");
                    for ((found, expected), size) in found.seen.iter().zip(&expected.seen).zip(&sizes) {
                        let off = (found.q - expected.q * norm).abs();
                        assert!(off < 1e-9 * norm * size, "{name}: Q of {place} is off by {off:e} of {:e}", norm * size);
                    }
                }
            }

            let held: Vec<Noise> = same.beta.iter().map(|beta| Noise::Fixed(3.0 * beta)).collect();
            for (which, expected) in [factor(&table.noise), factor(&held)].iter().enumerate() {
                let largest = expected.iter().fold(0.0f64, |l, g| l.max(*g));
                assert!(largest > 1.0, "{name}: something is to be gained, {largest}");
                for (place, found) in outside.iter().cycle().zip(found.iter().flatten()) {
                    let found = if which == 0 { found.0 } else { found.1 };
                    let expected = expected[all.column_of(*place).unwrap()];
                    assert!((found - expected).abs() < 1e-9 * largest, "{name}: {found} {expected} of {largest}");
                }
            }
        }
    }

    /// Without kernel values, where their rank is low or the sums of all candidates are known, gains and the sums of a part
    /// are what they are with them.
    #[test]
    fn what_is_known_of_all_candidates_changes_no_gain() {
        let n = 1600;
        let x = Array2::from_shape_fn((n, 1), |(i, _)| 10.0 * ((i * 997) % n) as f64 / n as f64);
        let f = x.column(0).mapv(|x| f64::sin(2.0 * x) + 0.4 * f64::sin(300.0 * x));
        let labels: Vec<usize> = f.iter().map(|f| usize::from(*f > 0.1)).collect();
        let kinds: Vec<usize> = f.iter().map(|f| (f + 1.5).clamp(0.0, 2.9) as usize).collect();
        let c = Array1::from_shape_fn(n, |i| 0.5 * (1 + i % 4) as f64);
        let two = Array2::from_shape_fn((n, 2), |(i, k)| [f[i] + 50.0, 0.1 * f[n - 1 - i]][k]);
        for (likelihood, bias, outputs) in [
            (Gaussian::default().into(), true, 1),
            (Gaussian::default().into(), false, 1),
            (Gaussian::default().into(), false, 2),
            (Gaussian { noise_variance: Some(0.05) }.into(), true, 1),
            (Bernoulli::default().into(), true, 1),
            (Softmax::default().into(), false, 1),
        ] {
            let dictionary = Dictionary::Rule(DictionaryRule::All);
            let rvm = Rvm { kernel: Rbf { gamma: 0.5.into() }.into(), dictionary, bias, likelihood, ..Rvm::tipping2001() };
            let targets = match rvm.likelihood.name() {
                "gaussian" if outputs > 1 => Targets::outputs(two.view()),
                "gaussian" => Targets::real(f.view()),
                "softmax" => Targets::classes(&kinds, 3),
                _ => Targets::classes(&labels, 2),
            };
            let targets = targets.with_weights(c.view());
            let table = Table::new(&rvm, x.view(), &targets, &Interrupt::default()).unwrap();
            let name = format!("{:?} bias {bias} outputs {outputs}", rvm.likelihood);
            let classes = rvm.likelihood.name() != "gaussian";
            let mut short = Passes::of(&table, n);
            let factor = short.factor.as_ref().unwrap_or_else(|| panic!("{name}: of low rank"));

            let places: Vec<usize> = (0..n).step_by(5).collect();
            let all = table.dictionary();
            assert_eq!(AllSums::pay(&table, n), !classes, "{name}");
            let known_of_all = if classes { None } else { AllSums::of(&table, &all).unwrap() };
            let known = [factor.sums_of(&table, &places), known_of_all.as_ref().and_then(|known| known.sums_of(&places))];
            let (part, sums) = Problem::new(&table, places.clone()).unwrap();
            assert!(known.iter().all(|known| known.is_some() == sums.is_some()), "{name}");
            for (known, sums) in known.into_iter().flatten().zip(sums.iter().cycle()) {
                let (_, known) = Problem::beside_rows(&table, places.clone(), known);
                let largest = |a: &[f64]| a.iter().fold(0.0f64, |l, v| l.max(v.abs()));
                assert!(largest((&known.gram - &sums.gram).as_slice().unwrap()) < 1e-12, "{name}");
                for (known, sums) in known.f.iter().zip(&sums.f) {
                    let apart: Vec<f64> = known.iter().zip(sums).map(|(k, s)| k - s).collect();
                    assert!(largest(&apart) < 1e-12 * largest(sums), "{name}");
                }
                assert!(known.tt.iter().zip(&sums.tt).all(|(k, s)| (k - s).abs() < 1e-12 * s) && known.count == sums.count);
            }

            let work = Workspace::new(&part, sums);
            let (mut plain, mut of_sums) = (Passes::default(), Passes { all: known_of_all, ..Passes::default() });
            // With the bias in the model, if there is one, and without.
            for skipped in [0, 1] {
                let active: Vec<usize> = (skipped..part.design.n_columns()).step_by(50).collect();
                let a: Vec<f64> = (0..active.len()).map(|k| 10f64.powi((k % 4) as i32 - 3)).collect();
                let solution = work.solve(&active, &a, &table.noise, At::Best, None).unwrap();
                let expected = plain.gains(&work, &solution, &all, 3.0).unwrap();
                let largest = expected.iter().fold(0.0f64, |l, g| l.max(g.0).max(g.1));
                assert!(largest > 1.0, "{name}: something is to be gained, {largest}");
                // The second time from what the first has kept, where anything is.
                for which in (0..3).cycle().take(6) {
                    let passes = [&mut plain, &mut short, &mut of_sums].into_iter().nth(which).unwrap();
                    let found = passes.gains(&work, &solution, &all, 3.0).unwrap();
                    for (found, expected) in found.iter().zip(&expected) {
                        let apart = (found.0 - expected.0).abs().max((found.1 - expected.1).abs());
                        assert!(apart < 1e-9 * largest, "{name}: {found:?} {expected:?} of {largest}");
                    }
                }
            }
        }
    }

    /// Sums pieced together from products with columns that have been in the model are those over the rows.
    #[test]
    fn pieced_sums_are_those_of_a_pass() {
        let n = 5000;
        let x = Array2::from_shape_fn((n, 3), |(i, d)| 4.0 * (0.618_033_988_749_895 * (1 + d * d) as f64 * i as f64).fract());
        let f = x.map_axis(Axis(1), |r| f64::sin(2.0 * r[0]) + f64::cos(3.0 * r[1] * r[2]));
        let c = Array1::from_shape_fn(n, |i| 0.5 * (1 + i % 4) as f64);
        let two = Array2::from_shape_fn((n, 2), |(i, k)| [f[i] + 50.0, 0.1 * f[n - 1 - i]][k]);
        let fixed = Gaussian { noise_variance: Some(0.05) };
        for (likelihood, bias, outputs) in [
            (Gaussian::default(), true, 1),
            (Gaussian::default(), false, 1),
            (fixed, true, 1),
            (Gaussian::default(), true, 2),
            (Gaussian::default(), false, 2),
        ] {
            let name = format!("{likelihood:?} bias {bias} outputs {outputs}");
            let dictionary = Dictionary::Rule(DictionaryRule::All);
            let kernel = Rbf { gamma: 1.5.into() }.into();
            let rvm = Rvm { kernel, dictionary, bias, likelihood: likelihood.into(), ..Rvm::tipping2001() };
            let targets = if outputs == 2 { Targets::outputs(two.view()) } else { Targets::real(f.view()) };
            let targets = targets.with_weights(c.view());
            let table = Table::new(&rvm, x.view(), &targets, &Interrupt::default()).unwrap();
            let candidates: Vec<usize> = (0..n).step_by(2).collect();
            let part: Vec<usize> = candidates.iter().copied().step_by(5).collect();
            let (problem, sums) = Problem::new(&table, part).unwrap();
            let work = Workspace::new(&problem, sums);
            let active: Vec<usize> = (0..problem.design.n_columns()).step_by(7).collect();
            let solution = work.solve(&active, &vec![1e-2; active.len()], &table.noise, At::Best, None).unwrap();
            let mut passes = Passes::default();
            passes.gains(&work, &solution, &candidates, 3.0).unwrap();

            let first = usize::from(bias);
            let model = active.iter().filter(|j| **j >= first).map(|j| problem.places[*j - first]);
            let mut next: Vec<usize> = model.chain(candidates.iter().copied().skip(3).step_by(6)).collect();
            next.sort_unstable();
            next.dedup();
            let pieced = passes.sums_of(&table, &candidates, &next).unwrap().unwrap_or_else(|| panic!("{name}: pieced"));
            let (_, pieced) = Problem::beside_rows(&table, next.clone(), pieced);
            let plain = Problem::new(&table, next).unwrap().1.unwrap();
            let largest = |a: &[f64]| a.iter().fold(0.0f64, |l, v| l.max(v.abs()));
            assert!(largest((&pieced.gram - &plain.gram).as_slice().unwrap()) < 1e-12, "{name}");
            for (pieced, plain) in pieced.f.iter().zip(&plain.f) {
                let apart: Vec<f64> = pieced.iter().zip(plain).map(|(a, b)| a - b).collect();
                assert!(largest(&apart) < 1e-12 * largest(plain), "{name}");
            }
            assert!(pieced.tt.iter().zip(&plain.tt).all(|(a, b)| (a - b).abs() < 1e-12 * b) && pieced.count == plain.count);
            // Nothing to speak of is known of other candidates, or by who has seen nothing.
            let others: Vec<usize> = candidates.iter().copied().skip(4).step_by(5).collect();
            assert!(passes.sums_of(&table, &candidates, &others).unwrap().is_none(), "{name}");
            assert!(Passes::default().sums_of(&table, &candidates, &problem.places).unwrap().is_none(), "{name}");
        }
    }
}
