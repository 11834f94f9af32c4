predict.relvec <- function(object, newdata, type = c("response", "se", "interval", "prob", "class"), level = 0.95,
                        na.action = na.pass, ...) {
  type <- match.arg(type)
  facts <- object$facts
  if (facts$is_classifier && type %in% c("se", "interval")) {
    stop("type = \"", type, "\" is of regression, and the model has classes: expected \"class\" or \"prob\"", call. = FALSE)
  }
  if (!facts$is_classifier && type %in% c("prob", "class")) {
    stop("type = \"", type, "\" is of classes, and the model is a regression: expected \"response\", \"se\" or ",
         "\"interval\"", call. = FALSE)
  }
  rows <- if (missing(newdata)) training_rows(object) else new_rows(object, newdata, na.action)
  complete <- complete.cases(rows)
  known <- answer(.Call(wrap__predict, object$json, rows[complete, , drop = FALSE], type, as.numeric(level)))
  found <- matrix(NA_real_, nrow(rows), ncol(known))
  found[complete, ] <- known
  names <- rownames(rows)
  if (type == "prob") return(structure(found, dimnames = list(names, class_names(facts))))
  if (type == "interval") return(structure(found, dimnames = list(names, c("fit", "lwr", "upr"))))
  found <- setNames(found[, 1], names)
  if (!facts$is_classifier) return(found)
  labels <- class_names(facts)
  if (isTRUE(facts$is_logical)) return(setNames(as.logical(labels[found + 1]), names))
  setNames(factor(labels[found + 1], labels), names)
}

# The names of the classes; of a file without names their numbers from 0, as in Python.
class_names <- function(facts) {
  if (length(facts$classes)) facts$classes else as.character(seq_len(max(2, length(facts$intercept))) - 1)
}

training_rows <- function(object) {
  if (is.null(object$x)) stop("newdata is missing: a model from a file holds no training rows", call. = FALSE)
  object$x
}

# The features of new rows, [N, D]; a row with a missing value has NA.
new_rows <- function(object, newdata, na.action) {
  facts <- object$facts
  if (!is.null(object$terms)) {
    own <- delete.response(object$terms)
    frame <- model.frame(own, newdata, na.action = na.action, xlev = object$xlevels)
    if (!is.null(classes <- attr(own, "dataClasses"))) .checkMFClasses(classes, frame)
    return(feature_matrix(own, frame, object$contrasts))
  }
  wanted <- if (is.null(facts$columns)) facts$features else facts$columns
  if (length(wanted) && !is.null(colnames(newdata))) {
    absent <- setdiff(wanted, colnames(newdata))
    if (length(absent)) {
      stop("newdata has no column ", absent[1], ": expected ", paste(wanted, collapse = ", "), call. = FALSE)
    }
    newdata <- newdata[, wanted, drop = FALSE]
  }
  if (!is.null(facts$columns)) {
    if (!is.data.frame(newdata)) {
      stop("newdata is of class ", class(newdata)[1], ": expected a data frame with the columns of the model file",
           call. = FALSE)
    }
    columns <- lapply(newdata, function(column) {
      if (is.factor(column)) as.character(column) else if (is.numeric(column)) as.double(column) else column
    })
    plain <- vapply(columns, function(column) is.character(column) || is.double(column) || is.logical(column), NA)
    if (!all(plain)) {
      stop("newdata has the column ", names(columns)[!plain][1], " of class ", class(columns[!plain][[1]])[1],
           ": expected numbers, texts, a factor or logical values", call. = FALSE)
    }
    return(answer(.Call(wrap__encode, object$json, unname(columns))))
  }
  if (is.numeric(newdata) && is.null(dim(newdata)) && facts$n_features > 1) newdata <- matrix(newdata, nrow = 1)
  rows <- numeric_matrix(newdata, "newdata")
  if (ncol(rows) != facts$n_features) {
    stop("newdata has ", count(ncol(rows), "column"), ": expected ", facts$n_features, ", the features of the model",
         call. = FALSE)
  }
  na.action(rows)
}
