//! The arguments as they are typed. No file is opened here; `settings` turns the arguments into settings of a fit.

use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{CommandFactory, Parser, Subcommand, ValueEnum};
use relvec::{
    CentreRule, Dictionary, Formulation, Inference, Likelihood, MOST_THREADS, Missing, MultiClass, Rvm, Sparsity, Variance,
    WeightPrior,
};

use crate::terminal::{Colour, Level, WIDEST};

/// Values that --landmarks accepts.
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
    /// Also print iterations and reasons
    #[arg(short, long, global = true, help_heading = SCREEN, display_order = LAST)]
    pub verbose: bool,
    /// Colour the output: always, never or auto
    #[arg(
        long, value_name = "WHEN", global = true, help_heading = SCREEN, display_order = LAST, hide_possible_values = true,
        value_parser = clap::builder::EnumValueParser::<Colour>::new(), default_value = "auto",
        long_help = "Colour the output: always, never or auto\n\nauto colours it on a terminal, unless NO_COLOR is set."
    )]
    pub color: Colour,
}

/// Returns the command with all its options. Every option accepts negative numbers, so that its own check can explain
/// an error.
pub(crate) fn command() -> clap::Command {
    let option = |arg: clap::Arg| {
        let takes_value = arg.get_action().takes_values() && !arg.is_positional();
        if takes_value { arg.allow_negative_numbers(true) } else { arg }
    };
    Args::command().mut_subcommands(|command| command.mut_args(option))
}

impl Args {
    /// Returns how much is printed on stderr.
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

/// Heading and position of the options that all commands have: they are listed last.
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
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Options of reading a table.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct ReadArgs {
    /// Set the cell separator of a CSV file [default: detected]
    ///
    /// Values: comma, semicolon, tab, space (any number of spaces and tabs) or another character. By default the first
    /// line decides: its most frequent character of comma, semicolon and tab is the separator. A line without these is
    /// separated by spaces.
    #[arg(help_heading = READING, long, value_name = "MARK", value_parser = separator)]
    pub sep: Option<u8>,
    /// Skip lines that begin with this character
    #[arg(help_heading = READING, long, value_name = "CHARACTER", value_parser = mark)]
    pub comment: Option<u8>,
    /// Set the decimal mark of numbers: . or , [default: detected]
    ///
    /// With this option the other mark may group thousands, as may spaces and apostrophes: 1,234.5 or 1.234,5. By
    /// default numbers have decimal points and no grouped thousands. If a semicolon, a tab or spaces separate the
    /// cells, a column is also read with decimal commas, provided that all of its cells are such numbers.
    #[arg(help_heading = READING, long, value_name = "MARK", value_parser = decimal)]
    pub decimal: Option<char>,
    /// Treat texts as missing [default: NA,N/A,#N/A,NaN,null,?]
    ///
    /// Upper and lower case count as equal. Empty cells are always missing.
    #[arg(help_heading = READING, long, value_name = "TEXT,TEXT", value_delimiter = ',')]
    pub na: Option<Vec<String>>,
}

/// Describe a table and suggest the command that fits it
///
/// Shows each column as `fit` reads it: numbers with their range, categories and missing cells. Remarks name what stops
/// a fit or looks wrong: dates, numbers in unusual spelling, constant columns, copies and row numbers. The last line is
/// the command to type. Nothing is changed or saved.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Show how a table is read
  relvec describe export.csv
  # Name the target and the separator
  relvec describe export.csv --target price --sep semicolon
  # Skip comments and print JSON
  relvec describe measurements.dat --comment '#' --json")]
pub(crate) struct DescribeArgs {
    /// The table to describe
    pub data: PathBuf,
    /// Name the column to predict [default: the last column]
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Read these columns as categories, whatever their cells
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
    #[command(flatten)]
    pub reading: ReadArgs,
}

/// Returns the parser of the values of `--missing`.
fn missing_rules() -> impl TypedValueParser<Value = Missing> {
    PossibleValuesParser::new(Missing::NAMES).map(|name| Missing::from_name(&name).expect("one of the names"))
}

/// Train a model on a table and save it as a file
///
/// No setting is needed. By default the kernel is learned, and the weights have the prior of a Gaussian process.
///
/// DATA has one of four formats. A CSV file has a header and is separated by comma, semicolon or tab, plain or gzip. A
/// Parquet file has named columns. An .npy file holds a matrix: its columns are named 0, 1, ..., and -1 names the last.
/// A file in LIBSVM's format (.svm, .svmlight or .libsvm; plain or gzip) names features by their indices and the target
/// `label`. Columns are features, numbers or categories, except the target, the columns that other options name (such
/// as --weights), and those in --drop.
///
/// A column of texts or booleans holds categories. Two categories become one feature, 0 or 1. More become one feature
/// for each category. A column may have at most 50 categories, and at most one for every ten rows. Missing cells stop
/// the fit unless --missing says what to do with them. Dates cannot be features. The model file keeps these rules, so
/// that predict and score accept tables as they are. relvec describe shows how a table is read.
///
/// Numbers have decimal points. If a semicolon or tab separates the cells, a column may have decimal commas, provided
/// that all of its cells do; --decimal reads grouped thousands. A table may have at most 1,000,000 columns, a row of a
/// CSV file at most 64 MiB, and a text cell at most 1 MiB.
///
/// A table is read in blocks, twice, with --stream or if a fit in memory would take more than half of memory_limit. A
/// row takes 8 x (3 x features + 28) bytes, and the default limit is a quarter of the machine's memory. The memory of a
/// fit in blocks does not depend on the number of rows. Landmarks are then chosen from 20,000 rows drawn at random. A
/// learned kernel uses 1,000 of these rows with their targets. Counts and Student-t noise read the table several times.
/// For classes the rows are copied once to a temporary file, 8 bytes a number, which the fit reads several times.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Learn prices; the kernel and the noise are learned
  relvec fit houses.csv --target price -o houses.json
  # Learn classes, without two columns
  relvec fit cells.csv --target kind --drop id,date -o cells.json
  # Read a table with decimal commas, missing cells and postal codes
  relvec fit export.csv --target price --decimal , --missing mean --categories zip -o prices.json
  # Keep few kernels
  relvec fit houses.csv --target price --weight-prior ard -o few-kernels.json
  # Learn one width per feature, and choose between two kernels
  relvec fit houses.csv --target price --gamma evidence-ard --kernel rbf,matern52 -o houses.json
  # Learn counts observed over different times
  relvec fit visits.csv --target visits --likelihood poisson --exposure days -o visits.json
  # Resist outliers
  relvec fit sensor.csv --target level --likelihood student_t -o level.json
  # Learn two targets with one model
  relvec fit wind.csv --target east --target north -o wind.json
  # Continue a large fit if it is interrupted
  relvec fit flights.parquet --target delay --checkpoint flights.sums -o flights.json
  # Store sums over the rows of May, then add the rows of June
  relvec fit may.csv --target load --dictionary 300 --keep-statistics -o load.json
  relvec fit june.csv --target load --add-to load.json -o load.json
  # Use the settings of the papers
  relvec fit houses.csv --target price --preset tipping2001 --gamma 0.1 -o papers.json
  # Fit a support vector machine with probabilities
  relvec fit cells.csv --target kind --machine svm --set formulation.c=10 --probability -o svm.json")]
pub(crate) struct FitArgs {
    /// The table to learn from
    pub data: PathBuf,
    /// Name the column to predict
    ///
    /// Repeat the option for further columns of numbers. One model then predicts all targets with the same relevance
    /// vectors.
    #[arg(help_heading = TABLE, long = "target", value_name = "NAME", required = true)]
    pub targets: Vec<String>,
    /// Learn values or classes [default: decided by the target]
    ///
    /// The default is classify if the target is text or boolean, has exactly two distinct numbers, or --multi-class is
    /// given. Otherwise it is regress. Two kinds of target need this option, unless another one decides (such as
    /// --likelihood): 3 to 20 distinct whole numbers, each in three rows or more, and quantities that are not plain
    /// numbers, such as 5% or 1,010. If all names of classes are numbers, their spelling does not matter, unless one is
    /// a code such as 007 or a whole number above 2^53.
    #[arg(help_heading = TABLE, long)]
    pub task: Option<Task>,
    /// Leave out these columns
    #[arg(help_heading = TABLE, long, value_name = "A,B", value_delimiter = ',')]
    pub drop: Vec<String>,
    /// Read these columns as categories, whatever their cells
    ///
    /// For codes such as postal codes and grades, and for mixed texts and numbers. A column may have at most 1000
    /// categories.
    #[arg(help_heading = TABLE, long, value_name = "A,B", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// Choose what to do with missing cells [default: refuse them]
    ///
    /// drop leaves out their rows. mean fills them with the mean of the column (for categories, with the share of each
    /// category). indicator fills them in the same way and adds a feature that is 1 if the cell is missing. A cell is
    /// missing if it is empty or holds a text of --na. The model keeps the rule, and predict and score follow it.
    #[arg(help_heading = TABLE, long, value_name = "RULE", value_parser = missing_rules())]
    pub missing: Option<Missing>,
    /// Name the column with the weight of each row
    ///
    /// Weights are from 0 to 2^53. A weight of 1 counts as one row, so weights that sum to 1 count as one row in total.
    #[arg(help_heading = TABLE, long, value_name = "NAME")]
    pub weights: Option<String>,
    /// Name the column with the known noise variance of each row
    ///
    /// Variances are positive, in squared units of the target. The noise is not learned then. The columns std, lower
    /// and upper of predictions describe the function without noise.
    #[arg(help_heading = TABLE, long, value_name = "NAME", conflicts_with = "exposure")]
    pub noise_variance: Option<String>,
    /// Name the column with the exposure of each count
    ///
    /// The exposure is the time, the area or the number of people that a count refers to. It is positive. For --likelihood
    /// poisson.
    #[arg(help_heading = TABLE, long, value_name = "NAME")]
    pub exposure: Option<String>,
    /// Use the features as they are
    ///
    /// By default features are scaled to mean 0 and standard deviation 1, and the model file keeps the scaling.
    #[arg(help_heading = TABLE, long)]
    pub no_standardize: bool,
    #[command(flatten)]
    pub reading: ReadArgs,
    /// Choose the kind of model
    #[arg(help_heading = MODEL, long, value_enum, default_value = "rvm")]
    pub machine: MachineKind,
    /// Start from named settings instead of the defaults
    ///
    /// Other options override these settings. tipping2001 stands for the settings of the papers on relevance vector
    /// machines: --gamma scale --weight-prior ard --sparsity 0 --variance posterior.
    #[arg(help_heading = MODEL, long, value_enum, value_name = "NAME")]
    pub preset: Option<Preset>,
    /// Choose the distribution of the target [default: by the task]
    ///
    /// Use gaussian for values, student_t for values with outliers, poisson for counts, and bernoulli or softmax for
    /// classes. The default is gaussian for values and bernoulli or softmax for classes.
    #[arg(help_heading = MODEL, long, value_name = "NAME", value_parser = PossibleValuesParser::new(Likelihood::NAMES))]
    pub likelihood: Option<String>,
    /// Choose how the precisions of the weights are learned
    #[arg(help_heading = MODEL, long, default_value = "search", value_parser = PossibleValuesParser::new(Inference::NAMES))]
    pub inference: String,
    /// Choose how more than two classes are modelled
    ///
    /// joint is one model of all classes. one_vs_rest and one_vs_one combine models of two classes. Any value but auto
    /// implies --task classify.
    #[arg(help_heading = MODEL, long, default_value = "auto", value_parser = PossibleValuesParser::new(MultiClass::NAMES))]
    pub multi_class: String,
    /// Choose the prior of the weights [default: auto]
    ///
    /// ard learns a precision for each weight and keeps few kernels. process gives the weights the covariance of a
    /// Gaussian process, whose variance grows away from the data. process needs a kernel that is a covariance function,
    /// and one model of all classes. auto is process if that is possible, otherwise ard.
    #[arg(help_heading = MODEL, long, value_name = "NAME", value_parser = PossibleValuesParser::new(WeightPrior::NAMES))]
    pub weight_prior: Option<String>,
    /// Set how closely the centres span the process prior
    ///
    /// For values: rows become centres until the part of the process variance that the centres do not span, averaged
    /// over the rows, is at most this share of the noise variance. For classes: until the probabilities are within this
    /// number of nats of the probabilities with all rows as centres. A smaller value takes more centres. The default is
    /// 0.3 for values, 0.1 for counts, 0.01 for more than 3000 rows of either, and 0.005 for classes.
    #[arg(help_heading = MODEL, long, value_name = "SHARE")]
    pub residual: Option<f64>,
    /// Set the penalty per relevance vector [default: auto]
    ///
    /// The unit is nats of log evidence. 0 disables the penalty. cv chooses it by cross-validation. auto is 1 with
    /// --inference search and 0 with the other schemes.
    #[arg(help_heading = MODEL, long, value_name = "NATS|auto|cv")]
    pub sparsity: Option<Sparsity>,
    /// Choose the kernel, or name several to select from
    ///
    /// Names: rbf, laplacian, matern32, matern52, rational_quadratic, linear, poly, sigmoid, linear_spline and
    /// periodic. If several are given, the fit takes the kernel with the highest posterior; auto tries rbf, matern52
    /// and matern32.
    ///
    /// Write sums and products with + and *, parameters in parentheses, and features in brackets by name or by number
    /// from 0, as in 'rbf[age,income] + periodic(period=365.25)[day] + linear'. The name of a column stands for all of
    /// its features: its categories, and the indicator of its missing cells. One feature of a column has a name of its
    /// own, such as colour=red. A name with a space, comma, bracket or quotation mark needs quotation marks, and so does
    /// a name that is a number: 'rbf["net income","2019"]'.
    ///
    /// Parameters that a sum or product does not give are learned. A period begins at its given value, or is found.
    /// Features are not standardised for sums, products and periodic kernels.
    #[arg(help_heading = KERNEL, long, value_name = "NAME[,NAME]|SUM", default_value = "rbf")]
    pub kernel: Vec<String>,
    /// Set the scale of the kernel [default: evidence]
    ///
    /// The value is a number, scale for 1 / (features x variance), auto for 1 / features, or a rule that learns it.
    /// evidence-one learns one width, evidence-ard one for each feature, and evidence selects between the two.
    /// evidence-isotropic learns one number for features that have one unit. The widths are learned by a Gaussian process on at most 1000 rows, or on
    /// more if the table has more than 3000 rows.
    #[arg(help_heading = KERNEL, long, value_name = "VALUE")]
    pub gamma: Option<String>,
    /// Keep the centres at training rows, or learn them
    ///
    /// fixed keeps them. learned moves them along the gradient of the evidence.
    #[arg(help_heading = KERNEL, long, default_value = "fixed", value_parser = PossibleValuesParser::new(CentreRule::NAMES))]
    pub centres: String,
    /// Cross-validate with this number of folds and print scores
    ///
    /// The search is repeated in each fold. A row whose weight is a whole number w counts as w rows. By default there is no
    /// cross-validation, except if a setting is chosen by it: then there are 5 folds, or fewer for fewer rows.
    #[arg(help_heading = ERROR_BARS, long, value_name = "FOLDS", value_parser = at_least_two)]
    pub cv: Option<usize>,
    /// Widen variances that cross-validation shows to be too small
    ///
    /// For regression. Multiplies all predictive variances by the factor that held-out rows require.
    #[arg(help_heading = ERROR_BARS, long)]
    pub calibrate: bool,
    /// Choose the variance of predictions [default: auto]
    ///
    /// posterior is the variance of the weights. healed does not shrink away from the data; it needs values with
    /// Gaussian noise, and the model keeps training rows for it. auto is the variance of the process under a process
    /// prior, otherwise healed if possible.
    #[arg(help_heading = ERROR_BARS, long, value_name = "NAME", value_parser = variances())]
    pub variance: Option<String>,
    /// Set how many rows the model keeps for the healed variance
    ///
    /// If the table has more rows, the model keeps a sample of them. The default is 2000 if the healed variance is used,
    /// otherwise none.
    #[arg(help_heading = ERROR_BARS, long, value_name = "N", value_parser = at_least_one)]
    pub keep_rows: Option<usize>,
    /// Set how many rows may become relevance vectors
    ///
    /// The value is a number, all or auto. auto is all rows if they are at most 10,000, otherwise 1,000. It is also
    /// 1,000 if a table read in blocks would need more than the memory limit.
    #[arg(help_heading = LARGE, long, value_name = "auto|all|N", default_value = "auto")]
    pub dictionary: Dictionary,
    /// Choose how these rows are selected, or give other points
    ///
    /// FILE is a table with the features as columns, in the units of DATA. Its points then replace the rows.
    #[arg(help_heading = LARGE, long, value_name = LANDMARKS, default_value = "kmedoids")]
    pub landmarks: String,
    /// Read the table in blocks, whatever its size
    ///
    /// --time-limit counts from the first row. If the limit is reached while the table is read, the model is fitted to the rows
    /// read so far, and a warning gives their number.
    #[arg(help_heading = LARGE, long)]
    pub stream: bool,
    /// Save the progress of reading in this file, and resume it
    ///
    /// The sums over the rows read so far are saved after each block, or less often if saving takes more than a tenth of the
    /// time. If the file exists, the fit resumes from it. The content of the table must be identical; its name and date may
    /// differ. The file is kept when the fit ends. For regression. Implies --stream.
    #[arg(help_heading = LARGE, long, value_name = "FILE")]
    pub checkpoint: Option<PathBuf>,
    /// Keep the statistics that --add-to needs in the model
    ///
    /// The statistics are sums over the rows at the landmarks. For regression, with --dictionary N or --landmarks FILE.
    #[arg(help_heading = MORE_ROWS, long)]
    pub keep_statistics: bool,
    /// Add the rows of the table to the rows of this model
    ///
    /// The model must have been fitted with --keep-statistics. Its old rows are not needed. Kernel, landmarks and
    /// scaling of the model do not change.
    #[arg(help_heading = MORE_ROWS, long, value_name = "MODEL", conflicts_with_all = [
        "init", "stream", "checkpoint", "dictionary", "landmarks", "kernel", "gamma", "no_standardize", "keep_statistics",
        "machine", "preset", "centres", "cv", "calibrate", "weight_prior", "residual", "variance", "keep_rows", "categories",
    ])]
    pub add_to: Option<PathBuf>,
    /// Start the search from this model
    ///
    /// The model must have the same kernel and features, and must have been fitted to the first rows of the table.
    #[arg(help_heading = MORE_ROWS, long, value_name = "MODEL", conflicts_with_all = ["stream", "checkpoint", "machine", "categories"])]
    pub init: Option<PathBuf>,
    /// Choose what the SVM minimises [default: by the task]
    ///
    /// The default is c_svc for classes and epsilon_svr for values.
    #[arg(help_heading = SVM, long, value_name = "NAME", value_parser = PossibleValuesParser::new(Formulation::NAMES))]
    pub formulation: Option<String>,
    /// Add probabilities to a support vector classifier
    ///
    /// Sigmoids are fitted to the decision values of a cross-validation, which takes six fits instead of one. If a class has
    /// fewer than 5 rows, they are fitted to the decision values of the training rows.
    #[arg(help_heading = SVM, long)]
    pub probability: bool,
    /// Limit the time of the fit, in seconds [default: no limit]
    ///
    /// At the limit the fit ends with the best model found so far. The time of reading a table in blocks counts as well.
    #[arg(help_heading = LIMITS, long, value_name = "SECONDS", value_parser = positive)]
    pub time_limit: Option<f64>,
    /// Limit the memory of the fit, such as 500MB or 4GB
    ///
    /// In bytes, or with a unit. A larger table is read in blocks. A fit that still needs more memory stops with an
    /// error. The default is a quarter of the machine's memory.
    #[arg(help_heading = LIMITS, long, value_name = "BYTES", value_parser = bytes)]
    pub memory_limit: Option<u64>,
    /// Set the number of threads [default: one per processor]
    ///
    /// The model does not depend on the number of threads.
    #[arg(help_heading = LIMITS, long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Set any other parameter, such as max_iterations=100
    ///
    /// PATH is the path in the settings, as in kernel.rbf.gamma=0.5. The option may be repeated. The error of a wrong
    /// path lists the valid names.
    #[arg(help_heading = LIMITS, long, value_name = "PATH=VALUE")]
    pub set: Vec<String>,
    /// Write the model to this file (JSON); optional with --json
    #[arg(help_heading = RESULT, short, long, value_name = "MODEL")]
    pub output: Option<PathBuf>,
    /// Print the summary as JSON on stdout
    ///
    /// The object has the fields of `inspect --json` and the time of the fit in seconds. With this option -o is optional.
    #[arg(help_heading = RESULT, long)]
    pub json: bool,
}

/// Predict the rows of a table with a trained model
///
/// For regression the output has the columns prediction, std, lower and upper, which include the noise and the
/// uncertainty of the weights. For counts, prediction and std describe the expected count, lower and upper a new count.
/// For classification the output has the column prediction and one probability_<label> per class. A support vector
/// machine has no std, lower and upper, and it has probabilities only if it was trained with --probability.
///
/// Features are found by name, in any order; other columns are ignored. The columns of an .npy file are the features in
/// their order if the numbers of both are equal; otherwise they are found by their numbers. Categories and missing
/// cells become features as in the fit. A row that is left out because of a missing cell (--missing drop) keeps its
/// line, without values. Rows are read and written in blocks, so the memory does not depend on the size of the table.
///
/// For a classifier, --prior, --costs and --reject change the decision but not the model. The column prediction then
/// contains the decision. If rows may be rejected, the column rejected is true for the rejected rows, and prediction
/// contains the decision without rejection. With costs there is a column expected_cost.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Predict prices with 95 % intervals
  relvec predict houses.json new_houses.csv -o prices.csv
  # Add quantiles
  relvec predict houses.json new_houses.csv --quantiles 0.05,0.5,0.95 -o prices.csv
  # Read and write Parquet
  relvec predict houses.json new_houses.parquet -o prices.parquet
  # Screen people of whom 1 % are ill; a missed case costs 50
  relvec predict cells.json screening.csv --prior ill=0.01,well=0.99 --costs ill:well=50,well:ill=1
  # Leave doubtful rows undecided
  relvec predict cells.json cells.csv --reject 0.9 -o sure.csv")]
pub(crate) struct PredictArgs {
    /// The model file
    pub model: PathBuf,
    /// The table to predict
    pub data: PathBuf,
    /// Write the predictions to this file [default: stdout]
    ///
    /// The format is Parquet if the name ends with .parquet, otherwise CSV.
    #[arg(help_heading = OUTPUT, short, long, value_name = "OUT.csv")]
    pub output: Option<PathBuf>,
    /// Set the probability of lower to upper [default: 0.95]
    ///
    /// A new value lies between the columns lower and upper with this probability.
    #[arg(help_heading = REGRESSION, long, value_parser = probability)]
    pub level: Option<f64>,
    /// Also write quantiles with these probabilities
    ///
    /// The columns are quantile_0.05, quantile_0.5, ... A new value is below the quantile with the given probability. For
    /// counts, the quantile is the least whole number that is not exceeded with this probability.
    #[arg(help_heading = REGRESSION, long, value_name = "P,P", value_delimiter = ',', value_parser = probability)]
    pub quantiles: Vec<f64>,
    /// Use Student's t distribution also for std and samples
    ///
    /// For models of the variational scheme with learned noise. The degrees of freedom express how well the noise is
    /// known. lower, upper and quantiles of these models always use the t distribution.
    #[arg(help_heading = REGRESSION, long)]
    pub student_t: bool,
    /// Choose the variance of predictions [default: as in fit]
    ///
    /// posterior is the variance of the weights. healed grows away from the training rows; it needs a model that keeps
    /// rows (fit --variance healed or --keep-rows).
    #[arg(help_heading = REGRESSION, long, value_parser = PossibleValuesParser::new(Variance::NAMES))]
    pub variance: Option<String>,
    /// Also write this number of draws from the posterior
    ///
    /// The columns are sample_1, sample_2, ... and contain values with noise. Each column is one function drawn at all rows.
    #[arg(help_heading = OUTPUT, long, value_name = "N", value_parser = at_least_one)]
    pub samples: Option<usize>,
    /// Set the seed of the draws
    #[arg(help_heading = OUTPUT, long, value_name = "N", default_value = "0", requires = "samples")]
    pub seed: u64,
    /// Name the column with the exposure of each count [default: 1]
    ///
    /// For a model of counts (fit --likelihood poisson).
    #[arg(help_heading = REGRESSION, long, value_name = "NAME", conflicts_with = "noise_variance")]
    pub exposure: Option<String>,
    /// Name the column with the noise variance of each row
    ///
    /// For a model that was trained with --noise-variance. The columns std, lower and upper then describe a new value
    /// with noise.
    #[arg(help_heading = REGRESSION, long, value_name = "NAME")]
    pub noise_variance: Option<String>,
    /// Set the number of threads [default: one per processor]
    ///
    /// The predictions do not depend on the number of threads.
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub rules: RuleArgs,
    #[command(flatten)]
    pub reading: ReadArgs,
    #[command(flatten)]
    pub decision: DecisionArgs,
}

/// Rules for missing cells and unknown categories.
#[derive(Debug, clap::Args)]
pub(crate) struct RuleArgs {
    /// Choose what to do with missing cells [default: as in fit]
    ///
    /// drop makes no prediction for their rows. mean fills them with the mean of the training rows. indicator needs a
    /// model that was trained with it. By default the rule of the model applies. Without such a rule a missing cell is
    /// an error.
    #[arg(help_heading = READING, long, value_name = "RULE", value_parser = missing_rules())]
    pub missing: Option<Missing>,
    /// Choose what to do with categories unknown to the model
    ///
    /// error stops the command. ignore predicts with the means of the features of the column.
    #[arg(help_heading = READING, long, value_enum, default_value = "error")]
    pub unknown: Unknown,
}

/// Rules for categories that no training row had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Unknown {
    /// Stop
    Error,
    /// Predict with the means of the features of the column
    Ignore,
}

/// Options that turn probabilities of classes into decisions.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Decisions of classifiers")]
pub(crate) struct DecisionArgs {
    /// Set the class probabilities of the rows to predict
    ///
    /// Give the probabilities of all classes; they sum to 1. They replace the shares of the classes among the training rows.
    #[arg(long, value_name = "LABEL=P,LABEL=P", value_delimiter = ',', value_parser = label_and_probability)]
    pub prior: Vec<(String, f64)>,
    /// Choose decisions by the least expected cost
    ///
    /// Costs are zero or positive. Give TRUE:DECIDED=COST for every two classes (TRUE:TRUE is 0 unless given), or a
    /// table. The first column of the table names the true class of each row. Each further column has the costs of one
    /// decision and the name of its class.
    #[arg(long, value_name = "TABLE|TRUE:DECIDED=COST,...")]
    pub costs: Option<String>,
    /// Reject rows whose decision is less probable than P
    #[arg(long, value_name = "P", value_parser = probability, conflicts_with = "costs")]
    pub reject: Option<f64>,
    /// Set the cost of rejecting a row (with --costs)
    ///
    /// A row is rejected if the least expected cost of its decisions is higher.
    #[arg(long, value_name = "COST", value_parser = zero_or_positive, requires = "costs")]
    pub reject_cost: Option<f64>,
}

/// Evaluate a model on labelled data
///
/// DATA holds rows with the true values or classes, preferably rows that were not used for training.
///
/// The measures for classes are error rate, log loss, Brier score (summed over the classes), area under the ROC curve,
/// average precision and expected calibration error (15 bins). Area and average precision refer to the second class.
/// For more than two classes they are means over the classes, each against the rest. The measures for real values are
/// RMSE, MAE, mean negative log predictive density, and the share of rows between lower and upper. Measures that the
/// model cannot have are left out: a support vector machine has no density, and it has probabilities only if it was
/// trained with --probability.
///
/// With --costs the mean cost of the decisions is added, both by the true classes and as expected from the
/// probabilities. With --reject or --reject-cost the share of rejected rows and the error rate of the other rows are
/// added.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Measure errors and intervals on rows that the fit has not seen
  relvec score houses.json test.csv
  # Draw ROC curves, precision against recall, and reliability
  relvec score cells.json test.csv --figures figures
  # Predict each training row as if it had been left out
  relvec score houses.json houses.csv --leave-one-out
  # Measure the cost of decisions
  relvec score cells.json test.csv --costs ill:well=50,well:ill=1 --reject-cost 0.5 --format json")]
pub(crate) struct ScoreArgs {
    /// The model file
    pub model: PathBuf,
    /// The table with true values or classes
    pub data: PathBuf,
    /// Name the target column [default: as in fit]
    ///
    /// It contains the true values or classes. By default it has the name of the target that the model was trained for.
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Set the probability of the intervals [default: 0.95]
    ///
    /// For regression: the share of rows that lie inside their intervals is printed.
    #[arg(long, value_parser = probability)]
    pub level: Option<f64>,
    /// Compute the NLPD from Student's t distribution
    ///
    /// For models of the variational scheme with learned noise. The coverage always uses the t distribution for these
    /// models.
    #[arg(long)]
    pub student_t: bool,
    /// Predict each row as if it had been left out of training
    ///
    /// DATA is the training table. The precisions (under a process prior: kernel, amplitude and noise) are not fitted
    /// again, so the scores are optimistic if a large share of the rows are relevance vectors. All sample weights count
    /// as 1.
    #[arg(long)]
    pub leave_one_out: bool,
    /// Name the column with the exposure of each count [default: 1]
    #[arg(long, value_name = "NAME")]
    pub exposure: Option<String>,
    /// Draw figures into this folder, created if missing (classes)
    ///
    /// The figures are the ROC curve, precision against recall, and reliability.
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,
    /// Choose the output format; CSV and JSON have all digits
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Write the measures to this file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Set the number of threads [default: one per processor]
    ///
    /// The measures do not depend on the number of threads.
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
/// The page is one file without links to others, to be read in a browser or printed. It contains the measures beside
/// those of a constant prediction, feature relevance, relevance vectors, and warnings with advice. For values it shows
/// predictions against observations, coverage of intervals and residuals; for classes ROC curve, reliability and
/// confusions. Without TABLE, or without its target, the page describes only the model.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Describe a model and its predictions
  relvec report houses.json test.csv -o houses.html
  # Name the exposures of counts
  relvec report visits.json test.csv --exposure days -o visits.html
  # Describe the model alone
  relvec report houses.json -o model.html")]
pub(crate) struct ReportArgs {
    /// The model file
    pub model: PathBuf,
    /// The table with true values or classes
    #[arg(value_name = "TABLE")]
    pub data: Option<PathBuf>,
    /// Write the page to this file
    #[arg(short, long, value_name = "OUT.html")]
    pub output: PathBuf,
    /// Name the target column [default: as in fit]
    ///
    /// It contains the true values or classes. By default it has the name of the target that the model was trained for.
    /// For a model of several targets the page reports on all targets, or with this option on one of them.
    #[arg(long, value_name = "NAME", requires = "data")]
    pub target: Option<String>,
    /// Name the column with the exposure of each count [default: 1]
    ///
    /// For a model of counts (fit --likelihood poisson).
    #[arg(long, value_name = "NAME", conflicts_with = "noise_variance", requires = "data")]
    pub exposure: Option<String>,
    /// Name the column with the noise variance of each row
    ///
    /// For a model that was trained with --noise-variance.
    #[arg(long, value_name = "NAME", requires = "data")]
    pub noise_variance: Option<String>,
    /// Set the number of threads [default: one per processor]
    ///
    /// The page does not depend on the number of threads.
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
    /// Print a JSON object
    #[arg(long)]
    pub json: bool,
}

/// Write a model for other programs: ONNX, C or LIBSVM
///
/// The file predicts rows in their original units as `relvec predict` does, scaling included. An ONNX file (.onnx) runs
/// in any ONNX runtime. A C file (.h) is one header without dependencies. A LIBSVM file (.libsvm) is the model file of
/// a support vector machine. Predictions of values are mean and standard deviation, those of classes label and
/// probabilities. The exported model does not check rows: for a feature that is not finite the prediction has no
/// meaning. A model with a healed variance or an external kernel cannot be exported. In ONNX and C, centres that are
/// sparse rows are written with their zeros, at most 10^8 numbers.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Write an ONNX graph
  relvec export houses.json -o houses.onnx
  # Write a graph of the mean alone, for rows in single precision
  relvec export houses.json -o houses.onnx --precision mixed --no-std
  # Write a C header whose names begin with level
  relvec export level.json -o level.h --name level
  # Write a support vector machine for LIBSVM
  relvec export cells.json -o cells.libsvm")]
pub(crate) struct ExportArgs {
    /// The model file
    pub model: PathBuf,
    /// Write to this file; format by .onnx, .h or .libsvm
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// Choose the format [default: by the ending of the output]
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<ExportFormat>,
    /// Set the precision of numbers [default: float64 or float]
    ///
    /// For ONNX: float64 (the default), mixed (rows and predictions in single precision, everything between in double
    /// precision), or float32 (single precision throughout). For C: float (the default), double, or int16 (tables of
    /// 16-bit whole numbers; the header states their effect). Less than double precision is an error if it would change
    /// predictions by more than a hundredth of their standard deviation (int16: by more than two hundredths).
    #[arg(long, value_name = "NAME")]
    pub precision: Option<String>,
    /// Leave out standard deviations, which are most of the file
    #[arg(long)]
    pub no_std: bool,
    /// Set the prefix of names in a C header [default: model]
    #[arg(long, value_name = "NAME")]
    pub name: Option<String>,
}

/// The formats of exported models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// A graph of standard ONNX operators
    Onnx,
    /// A header in C99 and C++11
    C,
    /// A model file of LIBSVM
    Libsvm,
}

/// Import a support vector machine from LIBSVM
///
/// The imported model predicts as LIBSVM does. Features are columns without names, in the order of the table. Training
/// rows, iterations and objective are unknown, since a LIBSVM file does not contain them. One-class models and
/// precomputed kernels cannot be imported.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:
  relvec import cells.libsvm -o cells.json")]
pub(crate) struct ImportArgs {
    /// The model file of LIBSVM
    pub file: PathBuf,
    /// Write the model to this file
    #[arg(short, long, value_name = "OUT.json")]
    pub output: PathBuf,
    /// Set the number of features [default: largest in the file]
    ///
    /// Needed if the last features are 0 in all support vectors, since the file then does not mention them.
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    pub features: Option<usize>,
}

/// Compare RVMs and SVMs by cross-validation
///
/// The result has a row for each model. rvm is a relevance vector machine whose gamma is chosen by an inner
/// cross-validation. rvm evidence is a relevance vector machine whose gamma is learned by the evidence. vrvm uses the
/// variational scheme with the gamma of rvm, at most 200 candidates, a tolerance of 0.001 nats, and pruning of useless
/// weights. svm is a C-SVC or epsilon-SVR whose c, gamma and epsilon are chosen by the inner cross-validation. The
/// other settings of relevance vector machines are those of `fit --preset tipping2001`.
///
/// Every fold is predicted by models that were fitted to the other folds only. Within these, features are standardised
/// and settings are chosen by the least squared error or the least error rate; of equal settings the smoothest is
/// taken. The measures for real values are RMSE, MAE, mean negative log predictive density, and the share of rows in
/// the central 95 % interval. The measures for classes are error rate, log loss, Brier score (summed over the classes)
/// and expected calibration error (15 bins). An SVM has no predictive density; its class probabilities are computed by
/// Platt's method. The table shows means over the folds and the standard errors of these means.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  # Compare all models
  relvec compare houses.csv --target price
  # Compare two models in ten folds, over given settings
  relvec compare cells.csv --target kind --cv 10 --machines rvm,svm --grid c=1,10,100 --grid gamma=0.3,1
  # Write every digit as JSON
  relvec compare houses.csv --target price --format json -o comparison.json")]
pub(crate) struct CompareArgs {
    /// The table, in a format that `fit` reads
    pub data: PathBuf,
    /// Name the column to predict
    #[arg(long, value_name = "NAME")]
    pub target: String,
    /// Learn values or classes [default: decided as by `fit`]
    #[arg(long)]
    pub task: Option<Task>,
    /// Leave out these columns
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub drop: Vec<String>,
    /// Read these columns as categories, whatever their cells
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub categories: Vec<String>,
    /// Choose what to do with missing cells [default: refuse them]
    ///
    /// The rules are those of `fit`. Means are taken over the rows that a model is fitted to.
    #[arg(long, value_name = "RULE", value_parser = missing_rules())]
    pub missing: Option<Missing>,
    /// Choose the models to compare
    #[arg(long, value_name = "NAME[,NAME]", value_enum, value_delimiter = ',', default_value = "rvm,vrvm,svm")]
    pub machines: Vec<Compared>,
    /// Set the number of folds; classes are spread over them evenly
    #[arg(long, value_name = "N", default_value = "5", value_parser = at_least_two)]
    pub cv: usize,
    /// Set the number of inner folds, which choose settings
    ///
    /// The inner folds divide the training rows of each outer fold.
    #[arg(long, value_name = "N", default_value = "3", value_parser = at_least_two)]
    pub inner_cv: usize,
    /// Choose the kernel of all models
    ///
    /// The kernel is a name or an expression, as for `fit`. Only gamma of a kernel that is neither a sum nor periodic is
    /// chosen by inner folds. Other parameters that are not given are learned by the evidence alone. Elsewhere gamma has
    /// the rule scale, amplitudes are 1, and a period must be given for the SVM. As in `fit`, features are not standardised for sums,
    /// products and periodic kernels.
    #[arg(long, value_name = "NAME|SUM", default_value = "rbf")]
    pub kernel: String,
    /// List the values among which a setting is chosen
    ///
    /// gamma is in multiples of 1 / (features x variance). c and epsilon are in standard deviations of the target
    /// (regression); for classes c has no unit. A setting with a single value is not chosen but used as it is. May be
    /// repeated for several settings [default: gamma=0.03,0.1,0.3,1,3 c=0.1,1,10,100 epsilon=0.05,0.2]
    #[arg(long, value_name = "NAME=V,V")]
    pub grid: Vec<String>,
    /// Use the features as they are
    ///
    /// By default features are scaled to mean 0 and standard deviation 1.
    #[arg(long)]
    pub no_standardize: bool,
    /// Set the seed of the folds and of other random draws
    #[arg(long, value_name = "N", default_value = "0")]
    pub seed: u64,
    /// Set the number of threads [default: one per processor]
    ///
    /// Only the times depend on the number of threads.
    #[arg(long, value_name = "N", value_parser = threads)]
    pub threads: Option<usize>,
    /// Choose the output format; CSV and JSON have all digits
    ///
    /// JSON also contains each fold and its settings.
    #[arg(long, value_enum, default_value = "text")]
    pub format: Format,
    /// Write the table to this file [default: stdout]
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub reading: ReadArgs,
}

/// The models that `compare` can fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Compared {
    /// Relevance vector machine, gamma by cross-validation and by evidence
    Rvm,
    /// Variational relevance vector machine
    Vrvm,
    /// Support vector machine
    Svm,
}

/// The formats of tables of measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned text for the screen
    Text,
    /// One line of numbers (`compare`: one per model)
    Csv,
    /// All results (`compare`: also of each fold)
    Json,
}

/// Fit two built-in problems and draw them
///
/// Needs no file and no network. The problems come from the papers on relevance vector machines: the sinc function with
/// noise, and two classes in the plane, each a mixture of two Gaussians.
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Draw the figures into this folder, created if missing
    #[arg(long, value_name = "DIR", default_value = "relvec-demo")]
    pub out: PathBuf,
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
    /// Folder for relvec.1, relvec-fit.1 and so on, created if missing
    pub folder: PathBuf,
}

/// The kinds of model.
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
    /// Settings of Tipping (2001) and Tipping and Faul (2003)
    #[value(name = "tipping2001")]
    Tipping2001,
}

impl Preset {
    /// Returns a relevance vector machine with these settings.
    pub fn rvm(self) -> Rvm {
        match self {
            Preset::Tipping2001 => Rvm::tipping2001(),
        }
    }
}

/// The quantity to learn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Task {
    /// Real values
    Regress,
    /// Classes
    Classify,
}

impl FitArgs {
    /// Returns the kernels of --kernel. An argument with parentheses or brackets is one expression; others are lists of
    /// names with commas.
    pub fn kernels(&self) -> impl Iterator<Item = &str> {
        self.kernel
            .iter()
            .flat_map(|text| if text.contains(['(', '[']) { vec![text.as_str()] } else { text.split(',').collect() })
    }

    /// True if features are standardised before the fit. They are not for sums, products and periodic kernels, whose
    /// parameters have the units of their columns.
    pub fn standardizes(&self) -> bool {
        !self.no_standardize && self.kernels().all(standardizes)
    }
}

/// Returns false for the text of a sum, a product or a periodic kernel.
pub(crate) fn standardizes(kernel: &str) -> bool {
    !kernel.contains(['+', '*', '[']) && !kernel.contains("periodic")
}

impl Task {
    /// Returns the name used in arguments and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Task::Regress => "regress",
            Task::Classify => "classify",
        }
    }
}

/// Returns the parser of --variance of `fit`.
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

/// Reads a separator that is given by its name or as the character itself.
fn separator(text: &str) -> Result<u8, String> {
    match text {
        "comma" => Ok(b','),
        "semicolon" => Ok(b';'),
        "tab" | "\\t" => Ok(b'\t'),
        "space" => Ok(b' '),
        _ => mark(text).map_err(|_| "expected comma, semicolon, tab, space or one other character".into()),
    }
}

/// Reads a character that is not a letter, digit or quotation mark.
fn mark(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_punctuation() && *byte != b'"' || matches!(byte, b' ' | b'\t') => Ok(*byte),
        _ => Err("expected one character that is not a letter, digit or quotation mark, such as #".into()),
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

/// Reads a number of bytes, with or without a decimal unit such as MB (10^6 bytes).
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
        // Above 2^53, whole numbers are not exact in 64-bit floating point.
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
