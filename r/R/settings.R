# An object of JSON without members.
no_members <- setNames(list(), character())

# A member of one of the core's families, which may be given by its name alone.
member <- function(value) if (is.character(value)) setNames(rep(list(no_members), length(value)), value) else value

# The core's kernels and their parameters.
core_kernels <- list(
  rbf = "gamma", laplacian = "gamma", matern32 = "gamma", matern52 = "gamma", rational_quadratic = c("gamma", "shape"),
  linear = character(), poly = c("gamma", "degree", "coef0"), sigmoid = c("gamma", "coef0"), linear_spline = character()
)

# kernlab's kernels: the core's name of each, and the core's names of its parameters.
kernlab_kernels <- list(
  rbfdot = list("rbf", c(sigma = "gamma")),
  laplacedot = list("laplacian", c(sigma = "gamma")),
  polydot = list("poly", c(degree = "degree", scale = "gamma", offset = "coef0")),
  tanhdot = list("sigmoid", c(scale = "gamma", offset = "coef0")),
  vanilladot = list("linear", character()),
  splinedot = list("linear_spline", character())
)

# The core's setting of a kernel for rows of `features` numbers. What `kpar` does not give is learned (gamma), or has kernlab's
# default (degree 1, offset 1) or the core's.
kernel_setting <- function(kernel, kpar, features) {
  known <- c(names(kernlab_kernels), names(core_kernels))
  if (!is.character(kernel) || length(kernel) != 1 || !kernel %in% known) {
    found <- if (is.character(kernel)) paste(dQuote(kernel, FALSE), collapse = ", ") else class(kernel)[1]
    stop("kernel = ", found, ": expected one of ", paste(known, collapse = ", "), call. = FALSE)
  }
  if (kernel == "laplacedot" && features > 1) {
    stop("kernel = \"laplacedot\" with ", features, " features: kernlab's kernel takes the Euclidean distance, which relvec's ",
         "does only for 1 feature. Use \"laplacian\", which takes the sum of absolute differences, or \"matern32\"",
         call. = FALSE)
  }
  if (identical(kpar, "automatic")) kpar <- list()
  own <- if (kernel %in% names(core_kernels)) setNames(nm = core_kernels[[kernel]]) else kernlab_kernels[[kernel]][[2]]
  named <- is.list(kpar) && (length(kpar) == 0 || !is.null(names(kpar)))
  if (!named || !all(names(kpar) %in% names(own))) {
    found <- if (named) paste(setdiff(names(kpar), names(own)), collapse = ", ") else class(kpar)[1]
    takes <- if (length(own)) paste(names(own), collapse = ", ") else "no parameters"
    stop("kpar of ", kernel, ": found ", found, ", expected \"automatic\" or a list of ", takes, call. = FALSE)
  }
  given <- setNames(lapply(kpar, unname), own[names(kpar)])
  learned <- if ("gamma" %in% own) list(gamma = "evidence")
  fixed <- if (kernel == "polydot") list(degree = 1, coef0 = 1) else if (kernel == "tanhdot") list(coef0 = 1)
  values <- utils::modifyList(c(no_members, learned, fixed), given)
  setNames(list(values), if (kernel %in% names(core_kernels)) kernel else kernlab_kernels[[kernel]][[1]])
}

# What a call of the compiled part returns, or its error. Ctrl-C becomes R's own interrupt.
answer <- function(result) {
  if (is.null(result$err)) return(result$ok)
  if (identical(result$err, "interrupted")) {
    condition <- structure(list(message = "interrupted", call = NULL), class = c("interrupt", "condition"))
    signalCondition(condition)
    invokeRestart("abort")
  }
  stop(result$err, call. = FALSE)
}

# A number of things: 1 row, 2 rows.
count <- function(number, noun) paste0(number, " ", noun, if (number != 1) "s")

# The texts of the warnings of a fit: the consequence, and one action.
fit_warnings <- function(report, facts, settings) {
  best <- "the model is the best so far"
  iterations <- count(facts$iterations, "iteration")
  limits <- c(
    iteration_limit = paste0("the fit did not converge in ", iterations, ": ", best, ". Raise max_iterations"),
    time_limit = paste0("time_limit ran out before the fit converged: ", best, ". Raise time_limit"),
    memory_limit = paste0("the memory limit left the model no room to grow: ", best, ". Raise memory_limit"),
    singular = paste0("the posterior became singular before the fit converged: ", best, ". Try another kernel")
  )
  found <- unname(limits[intersect(facts$status, names(limits))])
  if (isTRUE(report$nothing_found)) {
    found <- c(found, paste("the fit found nothing to learn: the model predicts a constant, or almost.",
                            "Check that the features carry information, or add rows"))
  }
  small <- report$adjustments$small_weights
  if (!is.null(small)) {
    found <- c(found, sprintf(paste("the weights of %d rows sum to %.4g. A weight of 1 counts as one row, so that this fit",
                                    "learns almost nothing. Multiply the weights by %.4g"),
                              small$rows, small$total, small$rows / small$total))
  }
  residual <- report$adjustments$residual_over_noise
  if (!is.null(residual)) {
    found <- c(found, sprintf(paste("the given noise is too small to be reached: residuals are %.3g times it, and predicted",
                                    "standard deviations too small by about this factor. Give a larger noise_variance, or",
                                    "none to learn it"), residual))
  }
  signs <- report$interpolation
  if (!is.null(signs)) {
    sign <- "the noise variance is at its lower limit"
    if (signs$many_vectors) {
      sign <- sprintf("more than a third of the rows are relevance vectors (%d of %d)", signs$vectors, signs$rows)
    }
    wrong <- if (facts$is_classifier) "probabilities are overconfident" else "intervals are too narrow"
    action <- "Check predictions of rows that the model has not seen"
    if (identical(settings$weight_prior, "ard")) action <- "Leave out weight_prior = \"ard\""
    found <- c(found, paste0(sign, ": the model interpolates the training rows, and its ", wrong, ". ", action))
  }
  found
}
