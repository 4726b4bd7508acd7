# R's DBI with RPostgreSQL: run with `Rscript client.R`; prints a line for each step.

suppressMessages(library(DBI))

statement <- function(name) Sys.getenv(paste0("HUBBUB_", name))
text <- function(rows) {
  cells <- lapply(rows, function(column) trimws(format(column, trim = TRUE, drop0trailing = TRUE)))
  paste(do.call(paste, c(unname(cells), sep = "|")), collapse = ";")
}
step <- function(name, run) {
  line <- tryCatch(run(), error = function(e) paste("error:", conditionMessage(e)))
  cat(name, "\t", gsub("\n", " ", line), "\n", sep = "")
}

driver <- RPostgreSQL::PostgreSQL()
connection <- dbConnect(
  driver, host = Sys.getenv("PGHOST"), port = as.integer(Sys.getenv("PGPORT")), dbname = "hubbub",
  user = Sys.getenv("PGUSER"), password = Sys.getenv("PGPASSWORD")
)
ask <- function(sql) {
  rows <- suppressWarnings(dbGetQuery(connection, sql))
  if (is.null(rows)) stop(dbGetException(connection)$errorMsg)
  text(rows)
}
cat("version\t", as.character(packageVersion("RPostgreSQL")), "\n", sep = "")
invisible(dbExecute(connection, statement("PRICE")))
step("sign in", function() ask(statement("ONE")))
step("tables", function() paste(sort(dbListTables(connection)), collapse = ";"))
step("columns", function() paste(dbListFields(connection, "visits"), collapse = ";"))
step("explain", function() ask(statement("EXPLAIN")))
step("priced", function() ask(statement("COUNTS")))
step("again", function() ask(statement("COUNTS")))
step("refused", function() ask(statement("REFUSED")))
step("after", function() ask(statement("ONE")))
step("types", function() ask(statement("TYPES")))
step("prepared", function() {
  text(dbGetQuery(connection, paste0(statement("PREPARED"), "$1"), as.integer(statement("LIMIT"))))
})
invisible(dbDisconnect(connection))
