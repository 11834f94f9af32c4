new_file <- function(ending) tempfile(fileext = ending)

# 60 noisy values of a smooth function of two features.
table_of_two <- function() {
  x <- cbind(u = sin(1:60), v = cos((1:60)^2))
  list(x = x, y = sin(2 * x[, 1]) + 0.5 * x[, 2] + 0.1 * sin(1e3 * (1:60)^2))
}
