print.relvec <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  facts <- x$facts
  if (!is.null(x$call)) cat("Call:\n", paste(deparse(x$call), collapse = "\n"), "\n\n", sep = "")
  cat(fact_lines(facts, digits), sep = "\n")
  invisible(x)
}

summary.relvec <- function(object, ...) {
  facts <- object$facts
  out <- list(call = object$call, facts = facts, warnings = object$warnings)
  if (!is.null(object$y)) {
    out$error <- if (facts$is_classifier) mean(fitted(object) != object$y) else sqrt(mean(residuals(object)^2))
  }
  if (ncol(as.matrix(coef(object))) == 1) {
    weights <- coef(object)
    out$weights <- weights[order(-abs(weights))]
  }
  structure(out, class = "summary.relvec")
}

print.summary.relvec <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  print.relvec(x, digits)
  if (!is.null(x$error)) {
    what <- if (x$facts$is_classifier) "error rate of the training rows" else "root mean squared residual"
    cat(label(what), format(x$error, digits = digits), "\n", sep = "")
  }
  for (text in x$warnings) cat("\nwarning: ", text, "\n", sep = "")
  if (length(x$weights)) {
    shown <- utils::head(x$weights, 10)
    cat("\nLargest weights (", length(shown), " of ", length(x$weights), "), by training row:\n", sep = "")
    print(shown, digits = digits)
  }
  invisible(x)
}

label <- function(text) formatC(text, width = -34)

# What a model is, one line for each fact.
fact_lines <- function(facts, digits) {
  number <- function(value) format(value, digits = digits)
  all <- facts$kernel[[1]]
  single <- all[lengths(all) == 1]
  parameters <- c(if (length(all$gamma) > 1) "one gamma for each feature",
                  if (length(single)) paste(names(single), vapply(single, number, "")))
  kind <- if (facts$is_classifier) {
    paste0("classification, ", length(class_names(facts)), " classes")
  } else if (is.null(facts$likelihood)) {
    "regression"
  } else {
    paste("regression,", c(gaussian = "Gaussian noise", student_t = "Student-t noise", poisson = "counts")[[facts$likelihood]])
  }
  found <- c(
    model = paste0(c(rvm = "relevance vector machine", svm = "support vector machine")[[facts$machine]], ", ", kind),
    rows = paste0(facts$n_rows, ", ", length(facts$relevance), " of them in the model"),
    features = as.character(facts$n_features),
    kernel = paste(c(names(facts$kernel), parameters), collapse = ", "),
    `noise standard deviation` = if (!is.null(facts$noise_std)) number(facts$noise_std),
    `log evidence (nats)` = if (!is.null(facts$log_evidence)) number(facts$log_evidence),
    status = paste0(facts$status, ", ", count(facts$iterations, "iteration"))
  )
  paste0(label(names(found)), found)
}

coef.relvec <- function(object, ...) {
  facts <- object$facts
  weights <- rbind(facts$intercept, matrix(as.numeric(unlist(facts$weights)), ncol = length(facts$intercept)))
  rownames(weights) <- c("(Intercept)", facts$relevance + 1)
  if (ncol(weights) == 1) weights[, 1] else weights
}

fitted.relvec <- function(object, ...) predict(object, type = "response")

residuals.relvec <- function(object, ...) {
  if (object$facts$is_classifier) {
    stop("residuals are of regression, and the model has classes: see predict(type = \"prob\")", call. = FALSE)
  }
  training_rows(object)
  object$y - fitted(object)
}

nobs.relvec <- function(object, ...) object$facts$n_rows

plot.relvec <- function(x, level = 0.95, ...) {
  rows <- training_rows(x)
  facts <- x$facts
  # What the caller gives replaces the defaults.
  draw <- function(figure, ...) do.call(figure, utils::modifyList(list(...), given))
  given <- list(...)
  if (facts$is_classifier) {
    truth <- as.factor(x$y)
    probability <- predict(x, type = "prob")[cbind(seq_along(truth), as.integer(truth))]
    draw(boxplot, split(probability, truth), xlab = "class", ylab = "fitted probability of the class", ylim = c(0, 1))
    return(invisible(x))
  }
  if (facts$n_features > 1) {
    found <- predict(x, type = "interval", level = level)
    limits <- range(found, x$y)
    draw(plot, found[, "fit"], x$y, xlim = limits, ylim = limits, xlab = "fitted", ylab = "observed", pch = 20)
    wide <- found[, "upr"] > found[, "lwr"]
    arrows(found[wide, "lwr"], x$y[wide], found[wide, "upr"], x$y[wide], length = 0,
           col = adjustcolor("grey40", 0.4))
    abline(0, 1)
    return(invisible(x))
  }
  at <- seq(min(rows), max(rows), length.out = 400)
  found <- predict(new_rvm(x$json), matrix(at), type = "interval", level = level)
  feature <- if (is.null(colnames(rows))) "x" else colnames(rows)
  draw(plot, rows[, 1], x$y, xlab = feature, ylab = "y", pch = 20, ylim = range(found, x$y))
  polygon(c(at, rev(at)), c(found[, "lwr"], rev(found[, "upr"])), border = NA, col = adjustcolor("steelblue", 0.25))
  lines(at, found[, "fit"], col = "steelblue", lwd = 2)
  vectors <- facts$relevance + 1
  points(rows[vectors, 1], x$y[vectors], cex = 1.6)
  legend("topright", c("fitted", paste0(100 * level, " % interval"), "rows in the model"), bty = "n",
         lty = c(1, NA, NA), pch = c(NA, 15, 1), col = c("steelblue", adjustcolor("steelblue", 0.25), "black"))
  invisible(x)
}

read_rvm <- function(path) {
  if (!file.exists(path)) stop(path, ": no such file", call. = FALSE)
  text <- rawToChar(readBin(path, "raw", file.size(path)))
  Encoding(text) <- "UTF-8"
  new_rvm(text)
}

write_rvm <- function(model, path) {
  if (!inherits(model, "relvec")) stop("model is of class ", class(model)[1], ": expected a model of rvm()", call. = FALSE)
  # A file that is half written never has the name of the whole.
  part <- tempfile(".relvec", dirname(path))
  on.exit(unlink(part))
  writeBin(charToRaw(enc2utf8(model$json)), part)
  if (!file.rename(part, path)) stop(path, ": the file cannot be written", call. = FALSE)
  invisible(path)
}
