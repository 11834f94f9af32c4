//! Classes and counts with a precision for each weight on rows that are not in memory: Laplace's approximation at
//! landmarks of a sample, by sums over all rows. More than two classes have a model each against the others, and share the
//! passes.

use std::time::Instant;

use ndarray::Array2;

use crate::design::Columns;
use crate::error::{Error, Result, require};
use crate::likelihood::{Gaussian, Likelihood};
use crate::linalg;
use crate::model::{Model, PosteriorRule};
use crate::query::RowUnits;
use crate::query::pass::{Pass, Surveyed};
use crate::query::sums::{LaplaceRequest, LaplaceSums, Trial};
use crate::report::{Adjustments, Interrupt, Observer, Report, Status, silent};
use crate::rvm::compose::binary_models;
use crate::rvm::compose::single_fit::judged;
use crate::rvm::data::training_set::TrainingSet;
use crate::rvm::gram::scaled_problem::ScaledProblem;
use crate::rvm::learn::laplace_ascent::{AscentStart, LaplaceAscent};
use crate::rvm::search::driver::FitDriver;
use crate::rvm::settings::rvm::Rvm;
use crate::rvm::settings::scheme::Inference;
use crate::sums::Sums;
use crate::targets::{MultiClass, Targets, Values};

/// The models of the functions, one for counts or two classes, with the precisions and weights at which the searches ended.
struct Ascended {
    ends: Vec<AscentStart>,
    model: Model,
    report: Report,
}

impl Rvm {
    /// Fits the classes or counts of all rows. Kernel and landmarks are those of the sample, or the landmarks are given. The
    /// relevance vectors of the model are indices of the sample or of the given landmarks.
    pub(super) fn fit_by_laplace(
        &self,
        surveyed: &Surveyed,
        pass: &Pass,
        observer: &mut Observer,
        interrupt: &Interrupt,
        start: Instant,
    ) -> Result<(Model, Report)> {
        let several = surveyed.class_frequencies().len() > 2;
        self.check_for_laplace(several)?;
        let (kernel, centres, candidates) = self.centres_of(surveyed, interrupt)?;
        let multi_class = if several { MultiClass::OneVsRest } else { MultiClass::Auto };
        let own = Rvm { multi_class, ..self.with_precisions(kernel, centres) };
        let in_time = interrupt.for_one_fit(self.deadline(start));
        let fitted = self.pool()?.install(|| {
            // The searches in the sample are the start of those in all rows, which then take fewer passes.
            let (mut quiet, sample) = (silent, vec![(surveyed.x.view(), surveyed.targets())]);
            let of_sample = Pass::new(&sample, RowUnits::default(), None);
            let mut driver = FitDriver::of(&own, &mut quiet, &in_time, start);
            let first = own.ascend(surveyed, &of_sample, None, &mut driver, &in_time)?;
            let Some(first) = first else { return Ok(None) };
            let mut driver = FitDriver::of(&own, observer, &in_time, start);
            own.ascend(surveyed, pass, Some(&first.ends), &mut driver, &in_time)
        })?;
        let Some(Ascended { mut model, report, .. }) = fitted else {
            return self.fit_sample(surveyed, observer, interrupt, start);
        };
        let members = model.committee.iter_mut().flat_map(|committee| &mut committee.members);
        let relevance = members.flat_map(|member| &mut member.relevance).chain(&mut model.relevance);
        relevance.for_each(|k| *k = candidates[*k]);
        Ok(judged((model, report), surveyed.rows().1))
    }

    /// Checks that the parameters do not need the rows themselves.
    fn check_for_laplace(&self, several: bool) -> Result<()> {
        let check = |good: bool, name: &str, found: &str, expected: &str| {
            require(good, || name.into(), found, &format!("{expected}, for rows that are not held"))
        };
        let softmax = matches!(self.likelihood, Likelihood::Softmax(_));
        check(!softmax, "likelihood", self.likelihood.name(), "bernoulli")?;
        let other = !matches!(self.inference, Inference::Variational(_));
        check(other, "inference", self.inference.name(), "another scheme than variational")?;
        let laplace = self.posterior != PosteriorRule::Averaged;
        check(laplace, "posterior", self.posterior.name(), "auto or laplace")?;
        let rest = matches!(self.multi_class, MultiClass::Auto | MultiClass::OneVsRest);
        let expected = "auto or one_vs_rest, or weight_prior = process";
        check(rest || !several, "multi_class", self.multi_class.name(), expected)
    }

    /// Returns the landmarks as candidates for all rows, or for the sample. Only sums over the rows are known.
    ///
    /// # Errors
    /// Returns [`Error::Memory`] if the sums of the `models` models do not fit into memory.
    fn training_of<'a>(
        &'a self,
        surveyed: &Surveyed,
        of_sample: bool,
        models: usize,
        interrupt: &Interrupt,
    ) -> Result<TrainingSet<'a>> {
        let second: Vec<usize>;
        let targets = match surveyed.targets().values {
            Values::Classes { labels, .. } => {
                second = labels.iter().map(|label| usize::from(*label == 1)).collect();
                Targets::classes(&second, 2)
            }
            _ => surveyed.targets(),
        };
        let sample = TrainingSet::new(self, surveyed.x.view(), &targets, interrupt)?;
        let candidates = sample.dictionary();
        let (n_rows, weight) = match of_sample {
            true => (surveyed.x.nrows(), surveyed.sample_weight()),
            false => (surveyed.rows().0, surveyed.weight()),
        };
        sample.afford_sums(candidates.len(), models)?;
        Ok(TrainingSet { n_rows, adjustments: Adjustments::default(), ..sample.of_sums(self, &candidates, weight) })
    }

    /// Searches for the models of the classes in the rows of `pass`: the sample, or all rows if the `starts` of the
    /// searches are given. Returns `None` if the time limit passes before there is a model of each class.
    fn ascend(
        &self,
        surveyed: &Surveyed,
        pass: &Pass,
        starts: Option<&[AscentStart]>,
        driver: &mut FitDriver,
        interrupt: &Interrupt,
    ) -> Result<Option<Ascended>> {
        let frequencies = surveyed.class_frequencies();
        let count = frequencies.len();
        // The model of two classes is that of the second one.
        let classes: Vec<Option<usize>> = match count {
            0 => vec![None],
            2 => vec![Some(1)],
            _ => (0..count).map(Some).collect(),
        };
        let training = self.training_of(surveyed, starts.is_none(), classes.len(), interrupt)?;
        let candidates = training.dictionary();
        let Columns::Kernel { kernel, centres } = training.columns(&candidates).1 else {
            unreachable!("the candidates are centres")
        };
        let p = candidates.len() + usize::from(self.bias);
        // Sums over the rows; `None` after the time limit.
        let ask = |trials: Vec<Trial>| {
            if interrupt.is_late() && !interrupt.is_raised_by_hand() {
                return Ok(None);
            }
            let (kernel, centres, log_rate) = (kernel.clone(), centres.clone(), training.log_rate);
            let at = LaplaceRequest { kernel, centres, bias: self.bias, log_rate, trials };
            match pass.laplace_sums(at, (count > 0).then_some(count)) {
                _ if interrupt.is_raised_by_hand() => Err(Error::Interrupted),
                Err(Error::Interrupted) => Ok(None),
                sums => sums.map(Some),
            }
        };
        // At the constant alone the curvature of all rows is that of the share of the class, or the mean count, so that the
        // Hessian gives the norms of the columns.
        let (share, rate) = (|class: usize| if self.bias { frequencies[class] } else { 0.5 }, surveyed.mean_count());
        let bias = |class: &Option<usize>| match class {
            Some(class) => (share(*class) / (1.0 - share(*class))).ln(),
            None if self.bias => rate.ln(),
            None => 0.0,
        };
        let curvature = match classes[0] {
            Some(class) => share(class) * (1.0 - share(class)),
            None => bias(&None).exp(),
        };
        let constant = |class: &Option<usize>| {
            let weights = Array2::from_shape_fn((1, p), |(_, j)| if j == 0 { bias(class) } else { 0.0 });
            Trial { class: *class, weights }
        };
        let Some(first) = ask(classes.iter().map(constant).collect())? else { return Ok(None) };
        let mut gram = &first[0].hessian / curvature;
        linalg::mirror(&mut gram);
        let plain = Sums { gram, f: vec![vec![0.0; p]], tt: vec![0.0], count: training.count };
        let (problem, _) = ScaledProblem::of_sums(&training, candidates, plain);

        let search = Rvm { likelihood: Gaussian { noise_variance: Some(1.0) }.into(), ..self.without_dictionary() };
        let new = |(k, class)| LaplaceAscent::new(&problem, &search, class, bias(&class), starts.map(|starts| &starts[k]));
        let mut ascents: Vec<LaplaceAscent> = classes.into_iter().enumerate().map(new).collect();
        let status = run(&mut ascents, starts.is_none().then_some(first), ask, driver, interrupt)?;
        interrupt.disarm();
        let (iterations, seconds) = (driver.trace.len(), driver.elapsed().as_secs_f64());
        let Some(ends) = ascents.iter().map(LaplaceAscent::end).collect() else { return Ok(None) };
        let fitted = ascents.into_iter().flat_map(|ascent| ascent.into_model(status, iterations, seconds).transpose());
        let mut fitted: Vec<(Model, Report)> = fitted.collect::<Result<_>>()?;
        let (model, report) = match count {
            0 | 2 => fitted.remove(0),
            _ => binary_models::united(self, surveyed.x.view(), fitted, iterations, driver.elapsed()),
        };
        let report = Report { trace: std::mem::take(&mut driver.trace), ..report };
        Ok(Some(Ascended { ends, model, report }))
    }
}

/// Runs searches, which share the passes, until they end. `first` are the sums at their first weights, if they are
/// known. Returns the reason for the end.
fn run(
    ascents: &mut [LaplaceAscent],
    first: Option<Vec<LaplaceSums>>,
    ask: impl Fn(Vec<Trial>) -> Result<Option<Vec<LaplaceSums>>>,
    driver: &mut FitDriver,
    interrupt: &Interrupt,
) -> Result<Status> {
    let (mut known, mut told) = (first, None);
    loop {
        let trials: Vec<Trial> = ascents.iter().filter_map(LaplaceAscent::trial).collect();
        if trials.is_empty() {
            return Ok(Status::Converged);
        }
        let sums = match known.take() {
            Some(sums) => sums,
            None => match ask(trials)? {
                Some(sums) => sums,
                None => return Ok(Status::TimeLimit),
            },
        };
        let searching = ascents.iter_mut().filter(|ascent| ascent.trial().is_some());
        match searching.zip(&sums).try_for_each(|(ascent, sums)| ascent.advance(sums, driver.left())) {
            Err(Error::Interrupted) if !interrupt.is_raised_by_hand() => return Ok(Status::TimeLimit),
            advanced => advanced?,
        }
        let best: Option<Vec<(f64, usize)>> = ascents.iter().map(LaplaceAscent::best).collect();
        if let Some(best) = best.filter(|best| told.as_ref() != Some(best)) {
            let active = best.iter().map(|(_, active)| active).sum();
            driver.tell_model(best.iter().map(|(log_evidence, _)| log_evidence).sum(), None, active);
            told = Some(best);
            if let Some(spent) = driver.spent() {
                return Ok(spent);
            }
        }
    }
}
