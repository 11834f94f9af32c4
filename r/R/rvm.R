rvm <- function(x, ...) UseMethod("rvm")

rvm.formula <- function(formula, data = NULL, weights = NULL, subset = NULL, na.action = na.omit, ...) {
  call <- match.call()
  frame <- call[c(1, match(c("formula", "data", "weights", "subset", "na.action"), names(call), 0))]
  frame$na.action <- na.action
  frame$drop.unused.levels <- TRUE
  frame[[1]] <- quote(stats::model.frame)
  frame <- eval(frame, parent.frame())
  if (!is.null(model.offset(frame))) {
    stop("the formula has an offset: expected none, since a kernel machine has no linear predictor", call. = FALSE)
  }
  own <- attr(frame, "terms")
  features <- feature_matrix(own, frame)
  y <- model.response(frame)
  if (is.null(y)) stop("the formula has no response: expected response ~ features", call. = FALSE)
  model <- fit_rvm(features, y, model.weights(frame), target = deparse1(own[[2]]), ...)
  model$call <- call
  model$terms <- own
  model$xlevels <- .getXlevels(own, frame)
  model$contrasts <- attr(features, "contrasts")
  model$na.action <- attr(frame, "na.action")
  model
}

rvm.default <- function(x, y, weights = NULL, ...) {
  if (missing(y)) stop("y is missing: expected rvm(x, y) or rvm(formula, data)", call. = FALSE)
  model <- fit_rvm(numeric_matrix(x, "x"), y, weights, target = "y", ...)
  model$call <- match.call()
  model
}

# The columns that a formula makes of a model frame, [N, D], without the intercept: the model has one of its own.
feature_matrix <- function(terms, frame, contrasts = NULL) {
  attr(terms, "intercept") <- 1L
  if (is.empty.model(terms) || length(attr(terms, "term.labels")) == 0) {
    stop("the formula has no features: expected response ~ features", call. = FALSE)
  }
  all <- model.matrix(terms, frame, contrasts.arg = contrasts)
  structure(all[, -1, drop = FALSE], contrasts = attr(all, "contrasts"))
}

# Rows as a matrix of doubles; `what` is their name in messages.
numeric_matrix <- function(x, what) {
  if (is.data.frame(x)) {
    other <- names(x)[!vapply(x, function(column) is.numeric(column) || is.logical(column), NA)]
    if (length(other)) {
      stop(what, " has the column ", other[1], ", which is no number: expected numbers, or a formula, which codes factors",
           call. = FALSE)
    }
    x <- as.matrix(x)
  }
  if (is.numeric(x) && is.null(dim(x))) x <- matrix(x, ncol = 1)
  if (!is.matrix(x) || !(is.numeric(x) || is.logical(x))) {
    stop(what, " is of class ", class(x)[1], ": expected a matrix or a data frame of numbers", call. = FALSE)
  }
  storage.mode(x) <- "double"
  x
}

# Stops at the first value that is not finite.
check_finite <- function(x, what) {
  bad <- which(!is.finite(x), arr.ind = is.matrix(x))
  if (length(bad)) {
    place <- if (is.matrix(x)) paste(bad[1, ], collapse = ", ") else bad[1]
    stop(what, "[", place, "] = ", x[bad[1, drop = FALSE]], ": expected a finite number", call. = FALSE)
  }
}

fit_rvm <- function(x, y, weights, target, kernel = "rbfdot", kpar = "automatic", type = NULL, ...) {
  if (NROW(y) != nrow(x)) {
    stop("y has ", count(NROW(y), "value"), ": expected ", nrow(x), ", one for each row of x", call. = FALSE)
  }
  if (NCOL(y) != 1) stop("y has ", NCOL(y), " columns: expected one target; fit a model to each", call. = FALSE)
  check_finite(x, "x")
  if (is.matrix(y)) y <- y[, 1]
  classify <- !is.numeric(y)
  if (!is.null(type) && !identical(type, if (classify) "classification" else "regression")) {
    stop("type = ", deparse1(type), ", but y is of class ", class(y)[1], ": expected numbers for \"regression\" and a ",
         "factor for \"classification\"", call. = FALSE)
  }
  logical <- is.logical(y)
  if (classify) {
    if (anyNA(y)) stop("y[", which(is.na(y))[1], "] is missing: expected a class", call. = FALSE)
    y <- droplevels(if (logical) factor(y, c(FALSE, TRUE)) else as.factor(y))
    if (nlevels(y) < 2) stop("y has ", count(nlevels(y), "level"), ": expected at least 2 classes", call. = FALSE)
    numbers <- as.integer(y) - 1
  } else {
    check_finite(y, "y")
    numbers <- as.numeric(y)
  }
  if (!is.null(weights) && length(weights) != nrow(x)) {
    stop("weights has ", count(length(weights), "value"), ": expected ", nrow(x), ", one for each row", call. = FALSE)
  }
  settings <- list(...)
  if (length(settings) && (is.null(names(settings)) || !all(nzchar(names(settings))))) {
    stop("found an argument without a name after the data: expected settings by their names", call. = FALSE)
  }
  settings <- settings[!vapply(settings, is.null, NA)]
  for (name in intersect(c("likelihood", "inference"), names(settings))) settings[[name]] <- member(settings[[name]])
  if (is.null(settings$likelihood) && classify) settings$likelihood <- member("bernoulli")
  settings$kernel <- kernel_setting(kernel, kpar, ncol(x))
  json <- toJSON(settings, auto_unbox = TRUE, digits = I(17), null = "null")
  features <- if (is.null(colnames(x))) character() else colnames(x)
  found <- answer(.Call(wrap__fit, json, x, numbers, if (!is.null(weights)) as.numeric(weights), features, target,
                        if (classify) levels(y) else character(), logical))
  model <- new_rvm(found[1])
  model$report <- fromJSON(found[2])
  model$x <- unname(x)
  dimnames(model$x) <- list(NULL, colnames(x))
  model$y <- if (logical) as.logical(as.character(y)) else y
  model$weights <- weights
  model$warnings <- fit_warnings(model$report, model$facts, settings)
  for (text in model$warnings) warning("rvm: ", text, call. = FALSE)
  model
}

# A model from the text of its file.
new_rvm <- function(json) {
  facts <- fromJSON(answer(.Call(wrap__describe, json)))
  # Empty lists of JSON have no type.
  facts$relevance <- as.integer(facts$relevance)
  for (name in c("features", "classes")) facts[[name]] <- as.character(facts[[name]])
  structure(list(json = json, facts = facts), class = "relvec")
}
