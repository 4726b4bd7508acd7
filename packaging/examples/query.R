# Ask a hubbub server from R, with httr2: HUBBUB_URL and HUBBUB_TOKEN are in the environment.
#
#     answer <- hubbub_query("SELECT year, COUNT(*) AS n FROM health GROUP BY year", epsilon = "0.1")
#     plot(answer$year, answer$n, ylim = range(answer$n_low, answer$n_high))
#     arrows(answer$year, answer$n_low, answer$year, answer$n_high, code = 3, angle = 90, length = 0.05)

library(httr2)

hubbub_call <- function(path, body, key = NULL) {
  request(Sys.getenv("HUBBUB_URL")) |>
    req_url_path_append("api", "v1", path) |>
    req_auth_bearer_token(Sys.getenv("HUBBUB_TOKEN")) |>
    req_headers(`Idempotency-Key` = key) |>
    req_options(followlocation = FALSE) |> # a redirect could take the token elsewhere
    req_body_json(body, auto_unbox = TRUE) |>
    req_retry(max_tries = 4, is_transient = \(response) resp_status(response) %in% c(429, 502, 503, 504)) |>
    req_error(body = \(response) with(resp_body_json(response), paste(code, detail, remedy))) |>
    req_perform() |>
    resp_body_json(simplifyVector = FALSE)
}

# The cost and the margins of error of a query. Free. Write epsilon as a text: "0.1" is exact.
hubbub_estimate <- function(sql, epsilon) {
  hubbub_call("estimate", list(sql = sql, epsilon = epsilon))
}

# The answer as a data frame: each noisy column is followed by the ends of its 95% interval. The receipt is an attribute.
# One key names the request and its retries, so that they are charged once.
hubbub_query <- function(sql, epsilon, key = paste(sample(c(0:9, letters), 32, TRUE), collapse = "")) {
  release <- hubbub_call("query", list(sql = sql, epsilon = epsilon), key)
  vector <- \(values) unlist(lapply(values, \(value) if (is.null(value)) NA else value))
  columns <- list()
  for (column in release$answer$columns) {
    columns[[column$name]] <- vector(column$values)
    if (!is.null(column$low)) {
      columns[[paste0(column$name, "_low")]] <- vector(column$low)
      columns[[paste0(column$name, "_high")]] <- vector(column$high)
    }
  }
  structure(as.data.frame(columns, check.names = FALSE), receipt = release$receipt, left = release$left)
}
