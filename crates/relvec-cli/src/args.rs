//! The arguments as they are typed. Nothing is opened or worked out here: see `settings` for that.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use relvec::{
    CentreRule, Dictionary, Formulation, Inference, Kernel, Likelihood, MOST_THREADS, Missing, MultiClass, Rvm, Sparsity,
    Variance, WeightPrior,
};

use crate::terminal::{Colour, Level, WIDEST};

/// What --landmarks takes.
const LANDMARKS: &str = "kmedoids|uniform|FILE";

/// Train and use relevance vector machines: sparse kernel models with error bars
#[derive(Debug, Parser)]
#[command(name = "relvec", version, arg_required_else_help = true, max_term_width = WIDEST)]
#[command(after_help = "`relvec help fit` explains every option of a command, `relvec fit -h` lists them.
Results go to stdout; the report of a fit, notes, warnings and errors go to stderr.
Exit code: 0 done, 1 failed, 2 wrong arguments.")]
pub(crate) struct Args {
    #[command(subcommand)]
    pub command: Command,
    /// Print warnings and errors only
    #[arg(short, long, global = true, help_heading = SCREEN, display_order = LAST, conflicts_with = "verbose")]
    pub quiet: bool,
    /// Print iterations and reasons as well
    #[arg(short, long, global = true, help_heading = SCREEN, display_order = LAST)]
    pub verbose: bool,
    /// When words are coloured; auto: on a terminal, unless the environment sets NO_COLOR
    #[arg(
        long, value_name = "WHEN", global = true, help_heading = SCREEN, display_order = LAST, hide_possible_values = true,
        value_parser = clap::builder::EnumValueParser::<Colour>::new(), default_value = "auto",
        long_help = "When words are coloured: always, never, or auto, on a terminal, unless the environment sets NO_COLOR"
    )]
    pub color: Colour,
}

/// The command with all its options; a value may be a negative number, so that the option says what is wrong with it.
pub(crate) fn command() -> clap::Command {
    let option = |arg: clap::Arg| {
        let takes_value = arg.get_action().takes_values() && !arg.is_positional();
        if takes_value { arg.allow_negative_numbers(true) } else { arg }
    };
    Args::command().mut_subcommands(|command| command.mut_args(option))
}

impl Args {
    /// How much is said.
    pub fn level(&self) -> Level {
        match (self.quiet, self.verbose) {
            (true, _) => Level::Quiet,
            (_, true) => Level::Verbose,
            _ => Level::Usual,
        }
    }
}

/// Headings of the options of `fit`.
const TABLE: &str = "Target and columns";
const READING: &str = "Reading the table";
const MODEL: &str = "Model";
const KERNEL: &str = "Kernel";
const ERROR_BARS: &str = "Error bars and validation";
const LARGE: &str = "Large tables";
const MORE_ROWS: &str = "Adding rows";
const SVM: &str = "Support vector machines";
const LIMITS: &str = "Limits and other settings";
const RESULT: &str = "Result";

/// Headings of the options of `predict`.
const OUTPUT: &str = "Output";
const REGRESSION: &str = "Regression";

/// Heading of the options that all commands have, which stand last.
const SCREEN: &str = "Screen";
const LAST: usize = 900;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Describe(DescribeArgs),
    Fit(Box<FitArgs>),
    Predict(PredictArgs),
    Score(ScoreArgs),
    Report(ReportArgs),
    Inspect(InspectArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Compare(CompareArgs),
    Demo(DemoArgs),
    Reproduce(ReproduceArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// How a table is read.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ReadArgs {
    /// What separates the cells of a CSV file [default: as found]
    ///
    /// comma, semicolon, tab, space (any number of spaces and tabs) or another character. Without it the first line decides: the
    /// most frequent of comma, semicolon and tab; spaces if there is none of them.
    #[arg(help_heading = READING, long, value_name = "MARK", value_parser = separator)]
    pub sep: Option<u8>,
    /// Pass over lines that begin with this character
    #[arg(help_heading = READING, long, value_name = "CHARACTER", value_parser = mark)]
    pub comment: Option<u8>,
    /// The decimal mark of numbers [default: a point]
    ///
    /// . or , and the other one may then group thousands, as may spaces and apostrophes: 1,234.5 or 1.234,5. Without it numbers
    /// have decimal points, or decimal commas if a semicolon, a tab or spaces separate the cells and every cell of the column fits;
    /// thousands are not grouped.
    #[arg(help_heading = READING, long, value_name = "MARK", value_parser = decimal)]
    pub decimal: Option<char>,
    /// Texts of missing cells [default: NA,N/A,#N/A,NaN,null,?]
    ///
    /// Whatever the case of their letters. Empty cells are missing in any case.
    #[arg(help_heading = READING, long, value_name = "TEXT,TEXT", value_delimiter = ',')]
    pub na: Option<Vec<String>>,
}

/// Describe a table and say how to fit it
///
/// Shows each column as `fit` reads it: numbers with their range, categories, missing cells, and what stops a fit or looks wrong
/// (dates, numbers in unusual spelling, constant columns, copies, row numbers). Below stands the command to type. Nothing is
/// changed or saved.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  relvec describe export.csv
  relvec describe export.csv --target price --sep semicolon
  relvec describe measurements.dat --comment '#' --json")]
pub(crate) struct DescribeArgs {
    /// The table
    pub data: PathBuf,
    /// Name of the column to predict [default: the last column]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Columns that hold categories, whatever their cells
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// As a JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reading: ReadArgs,
}

/// What `--missing` takes.
fn missing_rules() -> impl TypedValueParser<Value = Missing> {
    PossibleValuesParser::new(Missing::NAMES).map(|name| Missing::from_name(&name).expect("one of the names"))
}

/// Train a model on a table and save it as a file
///
/// No setting is needed: the kernel is learned, and the weights have the prior of a Gaussian process.
///
/// DATA is a CSV file with a header (comma, semicolon or tab; plain or gzip), a Parquet file, an .npy file
/// with a matrix, whose columns are named by their places: 0, 1, ..., and -1 is the last, or a file of LIBSVM's format
/// (.svm, .svmlight or .libsvm; plain or gzip), whose features are named by their indices and whose target is `label`. All columns
/// but the target, the weights, what else is known of each row and those in --drop are features: numbers or categories.
///
/// A column of texts or booleans holds categories: of two categories one feature is made, 0 or 1; of more, one for each. They may
/// be at most 50, and a tenth of the rows. Missing cells stop the fit unless --missing says what to do with them. Dates are no
/// features. The model file keeps what was done, so that predict and score take tables as they are. relvec describe shows
/// how a table is read.
///
/// Numbers have decimal points. If a semicolon or tab separates the cells, they may have decimal commas, where every
/// cell of the column fits; --decimal reads grouped thousands. A table has at most 1,000,000 columns, a row of a CSV file at most 64 MiB and a text cell
/// at most 1 MiB.
///
/// A table is read in blocks, twice, if a fit in memory would take more than half of memory_limit (a row
/// takes 8 x (3 x features + 28) bytes; by default the limit is a quarter of the machine's memory), or with
/// --stream. Memory then does not depend on the number of rows, and landmarks are chosen from 20,000 rows
/// drawn at random. Rows of classes are copied once to a temporary file, 8 bytes a number, from which the fit reads them
/// as often as it has to. A kernel that is to be learned is learned from 1,000 of the rows drawn, with their targets.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  relvec fit houses.csv --target price -o houses.json
  relvec fit houses.csv --target price --weight-prior ard -o few-kernels.json
  relvec fit houses.csv --target price --preset tipping2001 --gamma 0.1 -o papers.json
  relvec fit cells.csv --target kind --drop id,date -o cells.json
  relvec fit export.csv --target price --decimal , --missing mean --categories zip -o prices.json
  relvec fit houses.csv --target price --gamma evidence-ard --kernel rbf,matern52 -o houses.json
  relvec fit sinc.csv --target y --kernel linear_spline --no-standardize --json
  relvec fit flights.parquet --target delay --dictionary 1000 --checkpoint flights.sums -o flights.json
  relvec fit table.npy --target -1 --landmarks centres.csv -o table.json
  relvec fit visits.csv --target visits --likelihood poisson --exposure days -o visits.json
  relvec fit wind.csv --target east --target north -o wind.json
  relvec fit may.csv --target load --dictionary 300 --keep-statistics -o load.json
  relvec fit june.csv --target load --add-to load.json -o load.json
  relvec fit sensor.csv --target level --likelihood student_t --set likelihood.noise_degrees=4 -o level.json
  relvec fit cells.csv --target kind --machine svm --set formulation.c=10 --probability -o cells.json")]
pub(crate) struct FitArgs {
    /// The table to learn from
    pub data: PathBuf,
    /// Name of the column to predict
    ///
    /// Given again, of further columns of numbers, which one model then predicts together: they share its relevance vectors.
    #[arg(help_heading = TABLE, long = "target", value_name = "NAME", required = true)]
    pub targets: Vec<String>,
    /// What to learn: values or classes [default: as the target looks]
    ///
    /// Without it: classify if the target is text or boolean, has exactly two distinct numbers, or --multi-class is given;
    /// else regress. A numeric target of 3 to 20 distinct whole values, each in three rows or more, stops the fit, unless
    /// something else decides (such as --likelihood): say whether these are classes. So do quantities that are no plain
    /// numbers, such as 5% or 1,010. Classes are named by numbers if all are, however these are written, unless one is a code
    /// such as 007 or a whole number beyond 2^53.
    #[arg(help_heading = TABLE, long)]
    pub task: Option<Task>,
    /// Columns to leave out, by name
    #[arg(help_heading = TABLE, long, value_name = "A,B", value_delimiter = ',')]
    pub drop: Vec<String>,
    /// Columns that hold categories, whatever their cells
    ///
    /// Codes such as postal codes and grades, or texts and numbers mixed; at most 1000 categories each.
    #[arg(help_heading = TABLE, long, value_name = "A,B", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// What to do with missing cells [default: refuse them]
    ///
    /// drop: leave their rows out. mean: fill them with the mean of the column (for categories, with the shares of each). indicator:
    /// fill them as well, and add a feature that is 1 where the cell is missing. Cells are missing if they are empty or hold a text
    /// of --na. The model keeps the rule, and predict and score follow it.
    #[arg(help_heading = TABLE, long, value_name = "RULE", value_parser = missing_rules())]
    pub missing: Option<Missing>,
    /// Column with the weight of each row
    ///
    /// Weights are from 0 to 2^53. A weight of 1 counts as one row: weights that sum to 1 count as one row in all.
    #[arg(help_heading = TABLE, long, value_name = "NAME")]
    pub weights: Option<String>,
    /// Column with the known noise variance of each row
    ///
    /// Variances are positive, in squared units of the target. The noise is then known, not learned, and std, lower and upper
    /// of a prediction are those of the function.
    #[arg(help_heading = TABLE, long, value_name = "NAME", conflicts_with = "exposure")]
    pub noise_variance: Option<String>,
    /// Column with the exposure of each count
    ///
    /// What a count was gathered over, positive: a time, an area, a number of people. For --likelihood poisson.
    #[arg(help_heading = TABLE, long, value_name = "NAME")]
    pub exposure: Option<String>,
    /// Use the features as they are
    ///
    /// Without it features are scaled to mean 0 and standard deviation 1; the model file keeps the scaling.
    #[arg(help_heading = TABLE, long)]
    pub no_standardize: bool,
    #[command(flatten)]
    pub reading: ReadArgs,
    /// The kind of machine
    #[arg(help_heading = MODEL, long, value_enum, default_value = "rvm")]
    pub machine: MachineKind,
    /// Start from named settings instead of the defaults
    ///
    /// Other options win over them. tipping2001: the settings of the papers on relevance vector machines, --gamma scale
    /// --weight-prior ard --sparsity 0 --variance posterior.
    #[arg(help_heading = MODEL, long, value_enum, value_name = "NAME")]
    pub preset: Option<Preset>,
    /// How targets depend on the function [default: by the task]
    ///
    /// gaussian, or student_t where there are outliers; poisson for counts; bernoulli or softmax for classes. The default is
    /// gaussian for values and bernoulli or softmax for classes.
    #[arg(help_heading = MODEL, long, value_name = "NAME", value_parser = PossibleValuesParser::new(Likelihood::NAMES))]
    pub likelihood: Option<String>,
    /// How the precisions of the weights are learned
    #[arg(help_heading = MODEL, long, default_value = "search", value_parser = PossibleValuesParser::new(Inference::NAMES))]
    pub inference: String,
    /// How more than two classes are modelled
    ///
    /// joint: one model of all classes; the others: models of two classes. Unless it is auto, the task is to classify.
    #[arg(help_heading = MODEL, long, default_value = "auto", value_parser = PossibleValuesParser::new(MultiClass::NAMES))]
    pub multi_class: String,
    /// The prior of the weights [default: auto]
    ///
    /// ard: a precision for each weight, which leaves few kernels. process: the covariance of a Gaussian process, whose
    /// variance grows away from the data; for values with Gaussian noise, or classes in one model, and a kernel that is a
    /// covariance. auto: process where there is one, else ard.
    #[arg(help_heading = MODEL, long, value_name = "NAME", value_parser = PossibleValuesParser::new(WeightPrior::NAMES))]
    pub weight_prior: Option<String>,
    /// How closely centres span the process prior
    ///
    /// Rows become centres until the variance of the process that they do not span is, in the mean over the rows, at most
    /// this share of the noise variance; for classes, until the probabilities are within so many nats of those of all rows.
    /// Less takes more centres. The default is 0.3, beyond 3000 rows 0.01; for classes 0.005.
    #[arg(help_heading = MODEL, long, value_name = "SHARE")]
    pub residual: Option<f64>,
    /// Penalty per relevance vector [default: auto]
    ///
    /// In nats of log evidence. With 0 the evidence alone decides, cv chooses by cross-validation; auto: 1, or 0 for other
    /// schemes than search.
    #[arg(help_heading = MODEL, long, value_name = "NATS|auto|cv")]
    pub sparsity: Option<Sparsity>,
    /// The kernel, or several to choose from
    ///
    /// rbf, laplacian, matern32, matern52, rational_quadratic, linear, poly, sigmoid, linear_spline or periodic. Of several the one
    /// of the highest posterior is taken; auto tries rbf, matern52 and matern32. Sums and products are written with + and *,
    /// parameters in parentheses, features in brackets by number from 0, as in "rbf[0] + periodic(period=12)[1] + linear". What
    /// they do not say is learned, and their features are not standardised.
    #[arg(help_heading = KERNEL, long, value_name = "NAME[,NAME]|SUM", default_value = "rbf")]
    pub kernel: Vec<String>,
    /// Scale of the kernel [default: evidence]
    ///
    /// A number; scale: 1 / (features x variance); auto: 1 / features; or learned from a Gaussian process on at most 1000
    /// rows, beyond 3000 rows from more: evidence-one (one width), evidence-ard (one for each feature), evidence
    /// (whichever suits the rows; for classes up to 3000 rows one).
    #[arg(help_heading = KERNEL, long, value_name = "VALUE")]
    pub gamma: Option<String>,
    /// Whether centres stay at training rows
    ///
    /// learned: the gradient of the evidence moves them.
    #[arg(help_heading = KERNEL, long, default_value = "fixed", value_parser = PossibleValuesParser::new(CentreRule::NAMES))]
    pub centres: String,
    /// Cross-validate with so many folds and print the scores
    ///
    /// The search is repeated in each fold. A row whose weight is a whole number w counts as w rows. By default there is
    /// none, or 5 folds where something is chosen by them, fewer for fewer rows.
    #[arg(help_heading = ERROR_BARS, long, value_name = "FOLDS", value_parser = at_least_two)]
    pub cv: Option<usize>,
    /// Widen variances that cross-validation shows too small
    ///
    /// For regression: predictive variances are multiplied by what held-out rows ask for.
    #[arg(help_heading = ERROR_BARS, long)]
    pub calibrate: bool,
    /// The variance of predictions [default: auto]
    ///
    /// posterior: that of the weights; healed: one that does not shrink away from the data (values with Gaussian noise; the
    /// model then keeps rows). auto: that of the process under a process prior, else healed where possible.
    #[arg(help_heading = ERROR_BARS, long, value_name = "NAME", value_parser = variances())]
    pub variance: Option<String>,
    /// Rows that the model keeps for the healed variance
    ///
    /// A sample of more rows. The default is 2000 where that variance is used, else none.
    #[arg(help_heading = ERROR_BARS, long, value_name = "N", value_parser = at_least_one)]
    pub keep_rows: Option<usize>,
    /// Rows that may become relevance vectors
    ///
    /// all, a number of them, or auto: all up to 10,000, else 1,000; 1,000 also where a table read in blocks would need more
    /// than the memory limit.
    #[arg(help_heading = LARGE, long, value_name = "auto|all|N", default_value = "auto")]
    pub dictionary: Dictionary,
    /// How these rows are chosen, or a table of other points
    ///
    /// A table has the features as columns, in the units of DATA; its points are taken instead of rows.
    #[arg(help_heading = LARGE, long, value_name = LANDMARKS, default_value = "kmedoids")]
    pub landmarks: String,
    /// Read the table in blocks, whatever its size
    ///
    /// --time-limit counts from the first row. If it ends the reading, the model is of the rows read so far, and a warning
    /// says how many.
    #[arg(help_heading = LARGE, long)]
    pub stream: bool,
    /// Keep what is read in this file, to go on from it
    ///
    /// The sums over the rows read so far are kept after each block (less often if writing takes more than a tenth of the
    /// time). A fit goes on from the file if the table holds the same bytes, under whatever name or date. It stays when the
    /// fit ends. For regression. Implies --stream.
    #[arg(help_heading = LARGE, long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Let the model keep what adding rows needs
    ///
    /// Sums over its rows at its landmarks, for --add-to (regression, with --dictionary N or --landmarks FILE).
    #[arg(help_heading = MORE_ROWS, long)]
    pub keep_statistics: bool,
    /// Add the rows of the table to those of this model
    ///
    /// The model must keep statistics. The old rows are not needed; kernel, landmarks and scaling of the model stay.
    #[arg(help_heading = MORE_ROWS, long, value_name = "MODEL", conflicts_with_all = [
        "init", "stream", "checkpoint", "dictionary", "landmarks", "kernel", "gamma", "no_standardize", "keep_statistics",
        "machine", "preset", "centres", "cv", "calibrate", "weight_prior", "residual", "variance", "keep_rows", "categories",
    ])]
    pub add_to: Option<PathBuf>,
    /// Begin the search at this model
    ///
    /// It has the same kernel and features, and was learned from the first rows of the table.
    #[arg(help_heading = MORE_ROWS, long, value_name = "MODEL", conflicts_with_all = ["stream", "checkpoint", "machine", "categories"])]
    pub init: Option<PathBuf>,
    /// What a support vector machine minimises [default: by the task]
    ///
    /// The default is c_svc for classes and epsilon_svr for values.
    #[arg(help_heading = SVM, long, value_name = "NAME", value_parser = PossibleValuesParser::new(Formulation::NAMES))]
    pub formulation: Option<String>,
    /// Let a support vector classifier have probabilities
    ///
    /// By sigmoids fitted in a cross-validation: six fits instead of one. With fewer than 5 rows of a class they follow the
    /// training rows.
    #[arg(help_heading = SVM, long)]
    pub probability: bool,
    /// Seconds that the fit may take [default: no limit]
    ///
    /// Reading a table in blocks counts too. The model is then the best so far.
    #[arg(help_heading = LIMITS, long, value_name = "SECONDS", value_parser = positive)]
    pub time_limit: Option<f64>,
    /// Memory that the fit may take, such as 500MB or 4GB
    ///
    /// In bytes, or with a unit. A larger table is read in blocks, and what does not fit is refused. The default is a quarter
    /// of the machine's memory.
    #[arg(help_heading = LIMITS, long, value_name = "BYTES", value_parser = bytes)]
    pub memory_limit: Option<u64>,
    /// Threads to use [default: one per processor]
    ///
    /// The model does not depend on it.
    #[arg(help_heading = LIMITS, long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Any other setting, such as max_iterations=100
    ///
    /// By its path in the settings, such as kernel.rbf.gamma=0.5. May be repeated; a wrong path lists what there is.
    #[arg(help_heading = LIMITS, long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Where to write the model (JSON); not needed with --json
    #[arg(help_heading = RESULT, short, long, value_name = "MODEL")]
    pub output: Option<PathBuf>,
    /// Print the summary as JSON on stdout
    ///
    /// What `inspect --json` prints, with the seconds taken; then -o may be left out.
    #[arg(help_heading = RESULT, long)]
    pub json: bool,
}

/// Predict the rows of a table with a trained model
///
/// Regression writes the columns prediction, std, lower, upper (noise and uncertainty of the weights together; for counts the
/// expected count, and quantiles of a new count). Classification writes prediction and one probability_<label> per class. A support
/// vector machine has no std, lower and upper, and probabilities only if it was trained with them. Features are found by name, in any
/// order; other columns are ignored. Categories and missing cells become features as in the fit. A row that is left out for a missing
/// cell (--missing drop) keeps its line, without values. The columns of an .npy file are the features in their order if there are as
/// many, else they are found by their places. Rows are read and written in blocks: a table of any size takes the same memory.
///
/// Of a classifier, --prior, --costs and --reject make other decisions of the same model: the prediction is then
/// the decision. Where rows may be rejected, the column rejected says which are (true or false; prediction is
/// what would have been decided); with costs there is expected_cost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  relvec predict houses.json new_houses.csv -o prices.csv
  relvec predict houses.json new_houses.parquet -o prices.parquet
  relvec predict houses.json new_houses.csv --quantiles 0.05,0.5,0.95 -o prices.csv
  relvec predict cells.json cells.csv.gz | head
  relvec predict cells.json screening.csv --prior ill=0.01,well=0.99 --costs ill:well=50,well:ill=1
  relvec predict cells.json cells.csv --reject 0.9 -o sure.csv")]
pub(crate) struct PredictArgs {
    /// The model file
    pub model: PathBuf,
    /// The table to predict
    pub data: PathBuf,
    /// Where to write the predictions [default: stdout]
    ///
    /// As CSV; as Parquet if the name ends with .parquet.
    #[arg(help_heading = OUTPUT, short, long, value_name = "OUT.csv")]
    pub output: Option<PathBuf>,
    /// Probability of the interval from lower to upper [default: 0.95]
    ///
    /// That a new value lies in it.
    #[arg(help_heading = REGRESSION, long, value_parser = probability)]
    pub level: Option<f64>,
    /// Also write quantiles with these probabilities
    ///
    /// Columns quantile_0.05, quantile_0.5, ...: what a new value is below with that probability. For counts, the least
    /// whole number that is not exceeded with that probability.
    #[arg(help_heading = REGRESSION, long, value_name = "P,P", value_delimiter = ',', value_parser = probability)]
    pub quantiles: Vec<f64>,
    /// Write std and samples of Student's t distribution too
    ///
    /// For models of the variational scheme that have learned the noise; the degrees of freedom say how well. lower, upper
    /// and quantiles are of that distribution in any case.
    #[arg(help_heading = REGRESSION, long)]
    pub student_t: bool,
    /// The variance of predictions [default: as in the model]
    ///
    /// healed: one that grows away from the training rows; it needs a model that keeps rows (fit --variance healed or --keep-
    /// rows).
    #[arg(help_heading = REGRESSION, long, value_parser = PossibleValuesParser::new(Variance::NAMES))]
    pub variance: Option<String>,
    /// Also write so many draws from the posterior
    ///
    /// Values with noise: columns sample_1, sample_2, ...; each is one function, the same at all rows.
    #[arg(help_heading = OUTPUT, long, value_name = "N", value_parser = at_least_one)]
    pub samples: Option<usize>,
    /// Seed of the draws
    #[arg(help_heading = OUTPUT, long, value_name = "N", default_value = "0", requires = "samples")]
    pub seed: u64,
    /// Column with the exposure of each count [default: 1 each]
    ///
    /// For a model of counts (fit --likelihood poisson).
    #[arg(help_heading = REGRESSION, long, value_name = "NAME", conflicts_with = "noise_variance")]
    pub exposure: Option<String>,
    /// Column with the noise variance of each row
    ///
    /// For a model that was trained with such a column: std, lower and upper are then those of a new value.
    #[arg(help_heading = REGRESSION, long, value_name = "NAME")]
    pub noise_variance: Option<String>,
    /// Threads to use; the predictions do not depend on it [default: one per processor]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub rules: RuleArgs,
    #[command(flatten)]
    pub reading: ReadArgs,
    #[command(flatten)]
    pub decision: DecisionArgs,
}

/// What is done with cells that the model has no feature for.
#[derive(Debug, clap::Args)]
pub(crate) struct RuleArgs {
    /// What to do with missing cells [default: as in the model]
    ///
    /// drop: make no prediction for their rows. mean: fill them with the mean of the training rows. indicator: only if the model was
    /// trained with it. A model that was trained without a rule refuses them.
    #[arg(help_heading = READING, long, value_name = "RULE", value_parser = missing_rules())]
    pub missing: Option<Missing>,
    /// What to do with categories that the model does not know
    ///
    /// error: stop. ignore: predict as if the cell said nothing, with the means of the column's features.
    #[arg(help_heading = READING, long, value_enum, default_value = "error")]
    pub unknown: Unknown,
}

/// What is done with categories that no training row had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unknown {
    /// Stop
    Error,
    /// Predict as if the cell said nothing
    Ignore,
}

/// How probabilities of classes become decisions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Decisions of classifiers")]
pub(crate) struct DecisionArgs {
    /// Class probabilities where the model is used
    ///
    /// Of all classes and summing to 1, in place of their shares among the rows trained on.
    #[arg(long, value_name = "LABEL=P,LABEL=P", value_delimiter = ',', value_parser = label_and_probability)]
    pub prior: Vec<(String, f64)>,
    /// Costs of decisions: choose the least expected cost
    ///
    /// Zero or positive. For each two classes TRUE:DECIDED=COST (TRUE:TRUE is 0 unless given), or a table: a column for each
    /// decision, by the name of the class, and before them a column that names the true class of each row.
    #[arg(long, value_name = "TABLE|TRUE:DECIDED=COST,...")]
    pub costs: Option<String>,
    /// Reject rows whose decision is less probable than that
    #[arg(long, value_name = "P", value_parser = probability, conflicts_with = "costs")]
    pub reject: Option<f64>,
    /// With --costs: what rejecting a row costs
    ///
    /// Rows whose least expected cost is higher are rejected.
    #[arg(long, value_name = "COST", value_parser = zero_or_positive, requires = "costs")]
    pub reject_cost: Option<f64>,
}

/// Evaluate a model on labelled data
///
/// DATA holds rows with the true values or classes: best rows that the model was not trained on. Of classes: error
/// rate, log loss, Brier score (summed over the classes), area under the ROC curve and average precision (of the second
/// class; of more than two the mean over the classes, each against the rest), expected calibration error (15 bins). Of
/// real values: RMSE, MAE, mean negative log predictive density, share of rows between lower and upper. What a
/// model does not have is left out: a support vector machine has no density, and probabilities only if it was trained
/// with them.
///
/// With --costs: the mean cost of the decisions, by the true classes and as the probabilities expect it. With --reject
/// or --reject-cost: the share of rows rejected, and the error rate of the others.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  relvec score houses.json test.csv
  relvec score cells.json test.csv --figures figures
  relvec score houses.json houses.csv --leave-one-out
  relvec score cells.json test.csv --costs ill:well=50,well:ill=1 --reject-cost 0.5 --format json")]
pub(crate) struct ScoreArgs {
    /// The model file
    pub model: PathBuf,
    /// The table with true values or classes
    pub data: PathBuf,
    /// Name of the column with them [default: the name of the target that the model was trained for]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Probability of the interval whose share of rows is told (regression) [default: 0.95]
    #[arg(long, value_parser = probability)]
    pub level: Option<f64>,
    /// NLPD by Student's t distribution, as coverage is: for models of the variational scheme that have learned the noise
    #[arg(long)]
    pub student_t: bool,
    /// DATA is the training table: predict each row as if it had been left out. Precisions (under a process prior
    /// kernel, amplitude and noise) stay those of the fit to all rows, so the scores are optimistic if a large share of the
    /// rows are relevance vectors.
    /// Sample weights are taken for 1
    #[arg(long)]
    pub leave_one_out: bool,
    /// Column with the exposure of each count [default: 1 each]
    #[arg(long, value_name = "NAME")]
    pub exposure: Option<String>,
    /// Folder for figures, made if need be: ROC, precision against recall, reliability (classes)
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// How the measures are written; CSV and JSON have every digit
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Where to write them [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Threads to use; the measures do not depend on it [default: one per processor]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub rules: RuleArgs,
    #[command(flatten)]
    pub reading: ReadArgs,
    #[command(flatten)]
    pub decision: DecisionArgs,
}

/// Write a model and its predictions as an HTML page
///
/// One file that needs no other, to be read in a browser or printed: measures beside a constant prediction, predictions against
/// observations or ROC, reliability and confusions, coverage of intervals, residuals, feature relevance, relevance vectors, warnings
/// with advice. Without TABLE, or without its target, the page is on the model alone.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  relvec report houses.json test.csv -o houses.html
  relvec report visits.json test.csv --exposure days -o visits.html
  relvec report houses.json -o model.html")]
pub(crate) struct ReportArgs {
    /// The model file
    pub model: PathBuf,
    /// The table with true values or classes
    #[arg(value_name = "TABLE")]
    pub data: Option<PathBuf>,
    /// Where to write the page
    #[arg(short, long, value_name = "OUT.html")]
    pub output: PathBuf,
    /// Name of the column with true values or classes
    ///
    /// Default: the name of the target that the model was trained for. Of a model of several targets: the one to report on, instead
    /// of all.
    #[arg(long, value_name = "NAME", requires = "data")]
    pub target: Option<String>,
    /// Column with the exposure of each count [default: 1 each]
    ///
    /// For a model of counts (fit --likelihood poisson).
    #[arg(long, value_name = "NAME", conflicts_with = "noise_variance", requires = "data")]
    pub exposure: Option<String>,
    /// Column with the noise variance of each row
    ///
    /// For a model that was trained with such a column.
    #[arg(long, value_name = "NAME", requires = "data")]
    pub noise_variance: Option<String>,
    /// Threads to use; the page does not depend on it [default: one per processor]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub rules: RuleArgs,
    #[command(flatten)]
    pub reading: ReadArgs,
}

/// Show the contents of a model file
#[derive(Debug, clap::Args)]
pub(crate) struct InspectArgs {
    /// The model file
    pub model: PathBuf,
    /// As a JSON object
    #[arg(long)]
    pub json: bool,
}

/// Write a model for other programs: ONNX, C or LIBSVM
///
/// The file predicts raw rows as `relvec predict` does, scaling included: ONNX (.onnx) in any ONNX runtime, C (.h) as one
/// header without dependencies, LIBSVM (.libsvm) a support vector machine as LIBSVM's model file. Values have mean and standard
/// deviation, classes label and probabilities. Rows are not checked there: a feature that is not finite gives a prediction
/// without meaning. A model with a healed variance or an external kernel cannot be written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  relvec export houses.json -o houses.onnx
  relvec export houses.json -o houses.onnx --precision mixed --no-std
  relvec export level.json -o level.h --name level
  relvec export cells.json -o cells.libsvm")]
pub(crate) struct ExportArgs {
    /// The model file
    pub model: PathBuf,
    /// Where to write it; .onnx, .h or .libsvm says the format
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// The format [default: by the ending of the output]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ExportFormat>,
    /// Precision of the numbers [default: float64 or float]
    ///
    /// ONNX: float64 (the default); mixed, rows and predictions in single precision and everything between in double; float32,
    /// single throughout. C: float (the default); double; int16, tables of 16-bit whole numbers, whose effect the header tells.
    /// Less than double precision is refused if it would change predictions by more than a hundredth of their standard
    /// deviation (int16: two).
    #[arg(long, value_name = "NAME")]
    pub precision: Option<String>,
    /// Leave out standard deviations, which are most of the file
    #[arg(long)]
    pub no_std: bool,
    /// What names in a C header begin with [default: model]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// What other programs read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A graph of standard operators
    Onnx,
    /// A header in C99 and C++11
    C,
    /// A model file of LIBSVM
    Libsvm,
}

/// Read a model of another program: LIBSVM
///
/// The model file predicts as LIBSVM does. Features are columns without names, in the order of the table. What LIBSVM does not
/// keep is unknown: training rows, iterations and objective. One-class machines and precomputed kernels cannot be read.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  relvec import cells.libsvm -o cells.json")]
pub(crate) struct ImportArgs {
    /// The model file of LIBSVM
    pub file: PathBuf,
    /// Where to write the model
    #[arg(short, long, value_name = "OUT.json")]
    pub output: PathBuf,
    /// Number of features [default: the largest in the file]
    ///
    /// A file does not say it if the last features are 0 in all support vectors.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub features: Option<usize>,
}

/// Compare RVMs and SVMs by cross-validation
///
/// The rows of the result: rvm, a relevance vector machine whose gamma is chosen by an inner cross-validation; rvm
/// evidence, the same whose gamma is learned by the evidence; vrvm, the variational scheme with the gamma of rvm, at
/// most 200 candidates, a tolerance of 0.001 nats and useless weights pruned; svm, C-SVC or epsilon-SVR, whose c, gamma and
/// epsilon are chosen by the inner cross-validation. The other settings of relevance vector machines are those of `fit --preset
/// tipping2001`.
///
/// Every fold is predicted by machines that have seen the other folds only: within these the settings are chosen (the
/// least squared error, or error rate; of equals the smoothest) and the features are standardised. Of real values:
/// RMSE, MAE, mean negative log predictive density, share of rows in the central 95 % interval; of classes: error rate,
/// log loss, Brier score (summed over the classes), expected calibration error (15 bins). An SVM has no predictive
/// density; its probabilities of classes are Platt's. Means over the folds, and the standard errors of these means.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  relvec compare houses.csv --target price
  relvec compare cells.csv --target kind --cv 10 --machines rvm,svm --grid c=1,10,100 --grid gamma=0.3,1
  relvec compare houses.csv --target price --format json -o comparison.json")]
pub(crate) struct CompareArgs {
    /// The table: as for `fit`
    pub data: PathBuf,
    /// Name of the column to predict
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// What to learn. Default: as for `fit`
    #[arg(long)]
    pub task: Option<Task>,
    /// Columns to leave out, by name
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub drop: Vec<String>,
    /// Columns that hold categories, whatever their cells look like
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// What to do with missing cells: as for `fit`; the means are those of the rows that a machine sees
    #[arg(long, value_name = "RULE", value_parser = missing_rules())]
    pub missing: Option<Missing>,
    /// What to compare
    #[arg(long, value_name = "NAME[,NAME]", value_enum, value_delimiter = ',', default_value = "rvm,vrvm,svm")]
    pub machines: Vec<Compared>,
    /// Folds of the table; classes are spread over them evenly
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least_two)]
    pub cv: usize,
    /// Folds within the rows learned from, by which settings are chosen
    #[arg(long, value_name = "N", default_value = "3", value_parser = at_least_two)]
    pub inner_cv: usize,
    /// The kernel of all machines
    #[arg(long, value_name = "NAME", default_value = "rbf", value_parser = kernels())]
    pub kernel: String,
    /// Values to choose among (may be repeated): gamma, in multiples of 1 / (features x variance); c, in regression in
    /// standard deviations of the target; epsilon, in the same. A single value is taken as it is
    /// [default: gamma=0.03,0.1,0.3,1,3 c=0.1,1,10,100 epsilon=0.05,0.2]
    #[arg(long, value_name = "NAME=V,V")]
    pub grid: Vec<String>,
    /// Use the features as they are, not scaled to mean 0 and standard deviation 1
    #[arg(long)]
    pub no_standardize: bool,
    /// Seed of the folds, and of what else is drawn
    #[arg(long, value_name = "N", default_value = "0")]
    pub seed: u64,
    /// Threads to use; only times depend on it [default: one per processor]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// How the table is written; CSV and JSON have every digit, and JSON each fold and its settings
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Where to write the table [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub reading: ReadArgs,
}

/// What `compare` compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compared {
    /// Relevance vector machine, gamma by cross-validation and by evidence
    Rvm,
    /// Variational relevance vector machine
    Vrvm,
    /// Support vector machine
    Svm,
}

/// How a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// For the eye
    Text,
    /// One line of numbers (of `compare` one per machine)
    Csv,
    /// With all that there is (of `compare` each fold)
    Json,
}

/// Fit two built-in problems and draw them
///
/// Needs no file and no network. The problems are those of the papers: sinc with noise, and two classes
/// in the plane, each a mixture of two Gaussians.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Folder for the figures, made if need be
    #[arg(long, value_name = "DIR", default_value = "relvec-demo")]
    pub out: PathBuf,
}

/// The experiments of the papers, in the order of the report.
pub(crate) const EXPERIMENTS: [&str; 12] = [
    "textbook",
    "sinc",
    "sinc50",
    "friedman1",
    "friedman2",
    "friedman3",
    "boston",
    "boston-cubic",
    "mixture",
    "ripley",
    "pima",
    "usps",
];

/// Reproduce the experiments of the original papers
///
/// The papers are Tipping 1999 and 2001 and Bishop & Tipping 2000; the examples of a textbook's chapter on sparse
/// kernel machines (Bishop 2006, chapter 7) come first. Prints a table, and writes report.md with the figures
/// drawn from our fits. Synthetic problems need nothing; the others need their tables in --data, and where one is not
/// there its row says so.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  relvec reproduce --quick
  relvec reproduce --data tables --out report
  relvec reproduce --data tables --only pima,ripley")]
pub(crate) struct ReproduceArgs {
    /// Folder with boston_housing.csv, ripley_synth_train.csv, ripley_synth_test.csv, pima_train.csv, pima_test.csv,
    /// usps_train.csv.gz, usps_test.csv.gz; the target of each is the column `target`
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// A few repeats of each, and not the longest: two minutes
    #[arg(long)]
    pub quick: bool,
    /// Only these experiments
    #[arg(long, value_name = "NAME[,NAME]", value_delimiter = ',', value_parser = PossibleValuesParser::new(EXPERIMENTS))]
    pub only: Vec<String>,
    /// Folder for the report and the figures, made if need be
    #[arg(long, value_name = "DIR", default_value = "relvec-reproduction")]
    pub out: PathBuf,
    /// Seed of samples, splits and folds
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Threads to use; the figures do not depend on it [default: one per processor]
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
}

/// Print a script that completes the options of `relvec` in a shell
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  relvec completions bash > ~/.local/share/bash-completion/completions/relvec
  relvec completions zsh > ~/.zfunc/_relvec
  relvec completions fish > ~/.config/fish/completions/relvec.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Write the manual pages of all commands
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  relvec man ~/.local/share/man/man1")]
pub(crate) struct ManArgs {
    /// Folder for relvec.1, relvec-fit.1 and so on, made if need be
    pub folder: PathBuf,
}

/// The kinds of machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum MachineKind {
    /// Relevance vector machine
    Rvm,
    /// Support vector machine
    Svm,
}

/// Named settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// Of Tipping (2001), and Tipping and Faul (2003)
    #[value(name = "tipping2001")]
    Tipping2001,
}

impl Preset {
    /// The machine with these settings.
    pub fn rvm(self) -> Rvm {
        match self {
            Preset::Tipping2001 => Rvm::tipping2001(),
        }
    }
}

/// What to learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    /// Real values
    Regress,
    /// Classes
    Classify,
}

impl FitArgs {
    /// The kernels: an expression each, or names with commas between them.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernel
            .iter()
            .flat_map(|text| if text.contains(['(', '[']) { vec![text.as_str()] } else { text.split(',').collect() })
    }

    /// Whether features are standardised before the fit: parts of sums and periods have the units of their columns.
    pub fn standardizes(&self) -> bool {
        !self.no_standardize && !self.kernels().any(|text| text.contains(['+', '*', '[']) || text.contains("periodic"))
    }
}

impl Task {
    /// The name used in arguments and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Task::Regress => "regress",
            Task::Classify => "classify",
        }
    }
}

/// What --kernel of a comparison takes.
fn kernels() -> PossibleValuesParser {
    PossibleValuesParser::new(Kernel::NAMES.iter().copied().filter(|name| !matches!(*name, "periodic" | "sum")))
}

/// What --variance of a fit takes.
fn variances() -> PossibleValuesParser {
    PossibleValuesParser::new(Variance::NAMES.iter().copied().chain(["auto"]))
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("expected a whole number, 1 or more".into()),
        Ok(n) => Ok(n),
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(n) if (1..=MOST_THREADS).contains(&n) => Ok(n),
        _ => Err(format!("expected a whole number, from 1 to {MOST_THREADS}")),
    }
}

/// A separator by its name, or as it is.
fn separator(text: &str) -> Result<u8, String> {
    match text {
        "comma" => Ok(b','),
        "semicolon" => Ok(b';'),
        "tab" | "\\t" => Ok(b'\t'),
        "space" => Ok(b' '),
        _ => mark(text).map_err(|_| "expected comma, semicolon, tab, space or one other character".into()),
    }
}

/// A character that is no letter, digit or quotation mark.
fn mark(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_punctuation() && *byte != b'"' || matches!(byte, b' ' | b'\t') => Ok(*byte),
        _ => Err("expected one character that is no letter, digit or quotation mark, such as #".into()),
    }
}

fn decimal(text: &str) -> Result<char, String> {
    match text {
        "." | "point" => Ok('.'),
        "," | "comma" => Ok(','),
        _ => Err("expected . or ,".into()),
    }
}

fn at_least_two(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0 | 1) | Err(_) => Err("expected a whole number, 2 or more".into()),
        Ok(n) => Ok(n),
    }
}

fn probability(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(p) if p > 0.0 && p < 1.0 => Ok(p),
        _ => Err("expected a number between 0 and 1, such as 0.95".into()),
    }
}

fn positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if seconds > 0.0 && f64::is_finite(seconds) => Ok(seconds),
        _ => Err("expected a number above 0".into()),
    }
}

/// Bytes, or a number of them with a unit of thousands.
fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1.0,
        "KB" | "K" => 1e3,
        "MB" | "M" => 1e6,
        "GB" | "G" => 1e9,
        "TB" | "T" => 1e12,
        _ => f64::NAN,
    };
    match digits.parse::<f64>().map(|number| number * unit) {
        // Beyond, bytes are no whole numbers in 64-bit floating point, and nobody has so many.
        Ok(bytes) if (1.0..2f64.powi(f64::MANTISSA_DIGITS as i32)).contains(&bytes) => Ok(bytes as u64),
        _ => Err("expected a number of bytes above 0, such as 500000000, 500MB or 4GB".into()),
    }
}

fn zero_or_positive(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(cost) if cost >= 0.0 && f64::is_finite(cost) => Ok(cost),
        _ => Err("expected a number, zero or positive".into()),
    }
}

fn label_and_probability(text: &str) -> Result<(String, f64), String> {
    let (label, p) = text.rsplit_once('=').ok_or("expected LABEL=P, such as ill=0.01")?;
    match p.trim().parse() {
        Ok(p) if (0.0..=1.0).contains(&p) => Ok((label.trim().to_string(), p)),
        _ => Err("expected LABEL=P with a probability from 0 to 1".into()),
    }
}
