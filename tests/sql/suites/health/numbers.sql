-- sum
--! answered
SELECT SUM(visits) AS visits FROM health

-- average
--! answered
SELECT AVG(age) AS age FROM health

-- average of money
--! answered
SELECT AVG(spending) AS spending, SUM(spending) AS total FROM health

-- several at once
--! answered
SELECT COUNT(*) AS n, SUM(visits) AS v, AVG(visits) AS m, AVG(income) AS income FROM health

-- by group
--! answered
SELECT coinsurance, AVG(visits) AS visits, AVG(spending) AS spending FROM health GROUP BY coinsurance ORDER BY coinsurance

-- by two groups
--! answered
SELECT year, female, SUM(spending) AS spending FROM health GROUP BY year, female

-- variance and deviation
--! answered
SELECT VAR_SAMP(age) AS v, VAR_POP(age) AS p, STDDEV_SAMP(age) AS s, STDDEV_POP(age) AS d FROM health

-- deviation by group
--! answered
SELECT female, STDDEV(income) AS s, VARIANCE(visits) AS v FROM health GROUP BY female

-- covariance and correlation
--! answered
SELECT COVAR_POP(age, visits) AS c, COVAR_SAMP(age, visits) AS s, CORR(age, income) AS r FROM health

-- regression
--! answered
SELECT REGR_SLOPE(visits, age) AS slope, REGR_INTERCEPT(visits, age) AS start, REGR_R2(visits, age) AS r2 FROM health

-- median
--! answered
SELECT MEDIAN(age) AS age FROM health

-- quartiles
--! answered
SELECT QUANTILE_CONT(income, 0.25) AS low, QUANTILE_CONT(income, 0.5) AS mid, QUANTILE_CONT(income, 0.75) AS high FROM health

-- percentile within group
--! answered
SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY age) AS p90 FROM health

-- median by group
--! answered
SELECT health, MEDIAN(age) AS age FROM health GROUP BY health

-- smallest and largest
--! answered; loose 0.6
SELECT MIN(age) AS youngest, MAX(age) AS oldest FROM health

-- most frequent value
--! answered; noisy common
SELECT MODE(education) AS common FROM health

-- product of columns
--! answered
SELECT SUM(visits * admissions) AS s FROM health

-- difference of columns
--! answered
SELECT AVG(visits - admissions) AS d FROM health

-- rounded in the sum
--! answered
SELECT SUM(ROUND(spending / 100)) AS hundreds FROM health

-- absolute value
--! answered
SELECT AVG(ABS(age - 40)) AS away FROM health

-- logarithm
--! answered
SELECT AVG(LN(income + 1)) AS log_income FROM health

-- root
--! answered
SELECT AVG(SQRT(visits)) AS root FROM health

-- power
--! answered
SELECT SUM(POWER(visits, 2)) AS squares FROM health

-- least and greatest
--! answered
SELECT SUM(LEAST(visits, 10)) AS capped, AVG(GREATEST(age, 18)) AS grown FROM health

-- default for what is missing
--! answered
SELECT AVG(COALESCE(income, 0)) AS income FROM health

-- zero as missing
--! answered
SELECT AVG(NULLIF(visits, 0)) AS visits, COUNT(NULLIF(visits, 0)) AS n FROM health

-- conditional average
--! answered
SELECT AVG(CASE WHEN female = 1 THEN visits END) AS women, AVG(visits) FILTER (WHERE female = 0) AS men FROM health

-- ratio of sums
--! answered
SELECT SUM(spending) / SUM(visits) AS per_visit FROM health

-- ratio by group
--! answered
SELECT site, 1.0 * SUM(admissions) / COUNT(*) AS rate FROM health GROUP BY site

-- weighted average
--! answered
SELECT SUM(income * visits) / SUM(visits) AS weighted FROM health WHERE visits > 0

-- share by average
--! answered
SELECT AVG(CASE WHEN health = 'poor' THEN 1 ELSE 0 END) AS poor FROM health

-- share by a comparison as a number
--! answered
SELECT AVG(CAST(age >= 60 AS INTEGER)) AS old FROM health

-- difference of groups
--! answered
SELECT AVG(CASE WHEN female = 1 THEN visits END) - AVG(CASE WHEN female = 0 THEN visits END) AS gap FROM health

-- expression over several answers
--! answered
SELECT year, ROUND(SUM(spending) / COUNT(DISTINCT person), 2) AS per_person FROM health GROUP BY year

-- having on an average
--! answered
SELECT site, AVG(spending) AS s FROM health GROUP BY site HAVING AVG(spending) > 150 ORDER BY site

-- order by an average
--! answered
SELECT coinsurance, AVG(visits) AS v FROM health GROUP BY coinsurance ORDER BY AVG(visits) DESC

-- casts
--! answered
SELECT SUM(CAST(spending AS INTEGER)) AS whole, AVG(CAST(age AS DOUBLE)) AS age FROM health

-- bounds in the query
--! answered
SELECT SUM(LEAST(GREATEST(spending, 0), 500)) AS capped FROM health

-- condition as a bound
--! answered
SELECT AVG(spending) AS s FROM health WHERE spending BETWEEN 1 AND 1000

-- integer division in an aggregate
--! answered
SELECT SUM(visits // 2) AS halves FROM health

-- modulo in an aggregate
--! answered
SELECT SUM(visits % 5) AS rest FROM health

-- sum of booleans
--! answered
SELECT SUM(CAST(visits > 5 AS INT)) AS many FROM health

-- histogram of income
--! answered
SELECT FLOOR(income / 5000) AS bin, COUNT(*) AS n FROM health GROUP BY bin ORDER BY bin

-- sum of distinct values
--! answered
SELECT SUM(DISTINCT education) AS s FROM health

-- average of distinct values
--! answered
SELECT AVG(DISTINCT age) AS a FROM health

-- approximate distinct count
--! answered
SELECT APPROX_COUNT_DISTINCT(age) AS ages FROM health
-- exact
SELECT COUNT(DISTINCT age) AS ages FROM health

-- approximate median
--! answered
SELECT APPROX_QUANTILE(age, 0.5) AS age FROM health
-- exact
SELECT QUANTILE_CONT(age, 0.5) AS age FROM health

-- logical or of a group
--! answered
SELECT site, COUNT(*) FILTER (WHERE visits > 70) > 0 AS any_high FROM health GROUP BY site

-- any value
--! refused HB512
SELECT site, ANY_VALUE(age) AS age FROM health GROUP BY site

-- list of values
--! refused HB503
SELECT LIST(age) AS ages FROM health

-- text joined
--! refused HB504
SELECT STRING_AGG(health, ',') AS words FROM health

-- largest by another column
--! refused HB512
SELECT ARG_MAX(age, income) AS age FROM health

-- a sum without bounds
--! refused HB515
SELECT SUM(income / visits) AS s FROM health

-- windows over rows
--! refused HB510
SELECT AVG(visits) OVER (PARTITION BY site) AS v FROM health

-- grouped sum with a total
--! answered
SELECT female, SUM(visits) AS v, AVG(age) AS a FROM health GROUP BY ROLLUP (female)

-- tiny and huge bounds
--! answered
SELECT SUM(GREATEST(-1000000, LEAST(spending * 1000, 40000000))) AS s FROM health

-- decimal arithmetic
--! answered
SELECT SUM(spending * 1.19) AS gross FROM health

-- trigonometry
--! answered
SELECT AVG(SIN(age)) AS s, AVG(COS(age)) AS c FROM health

-- exponentials
--! answered
SELECT AVG(EXP(visits / 80.0)) AS e FROM health

-- signs
--! answered
SELECT SUM(SIGN(visits - 5)) AS s FROM health
