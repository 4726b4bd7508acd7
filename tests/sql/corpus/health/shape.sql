-- variances, population and sample
SELECT VAR_POP(age) AS vp, VAR_SAMP(age) AS vs, STDDEV_POP(income) AS sp, STDDEV_SAMP(income) AS ss FROM health

-- spreads by group
SELECT coinsurance, STDDEV(visits) AS spread, VARIANCE(spending) AS variance FROM health GROUP BY coinsurance

-- covariances
SELECT COVAR_POP(spending, age) AS p, COVAR_SAMP(spending, age) AS s FROM health

-- correlation of schooling and income
SELECT female, CORR(education, income) AS r FROM health GROUP BY female

-- a line of visits on age
SELECT REGR_SLOPE(visits, age) AS slope, REGR_INTERCEPT(visits, age) AS at_zero, REGR_R2(visits, age) AS r2 FROM health

-- a line in each plan
SELECT coinsurance, REGR_SLOPE(visits, age) AS slope FROM years GROUP BY coinsurance

-- a median
SELECT MEDIAN(income) AS income FROM health

-- medians by group
SELECT health, MEDIAN(age) AS age FROM health GROUP BY health

-- several quantiles at once
SELECT QUANTILE_CONT(income, [0.1, 0.5, 0.9]) FROM health
-- oracle
SELECT quantile_disc(income, 0.1), quantile_disc(income, 0.5), quantile_disc(income, 0.9) FROM health

-- percentile in the standard's words
SELECT site, PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY visits) AS upper FROM health GROUP BY site

-- percentile of what is there
SELECT PERCENTILE_DISC(0.25) WITHIN GROUP (ORDER BY age) AS lower FROM health

-- quantiles of a part
SELECT MEDIAN(visits) FILTER (WHERE health = 'poor') AS poor, MEDIAN(visits) FILTER (WHERE health = 'excellent') AS excellent FROM health

-- extremes
SELECT MIN(age) AS youngest, MAX(age) AS oldest, MAX(visits) AS most FROM health

-- extremes by group
SELECT female, MIN(income) AS least, MAX(income) AS most FROM health GROUP BY female

-- the commonest
SELECT site, MODE(health) AS health, MODE(coinsurance) AS plan FROM health GROUP BY site

-- the commonest number
SELECT MODE(visits) AS visits, MODE(age) FILTER (WHERE age >= 18) AS age FROM health

-- everything beside everything
SELECT COUNT(*) AS n, COUNT(DISTINCT person) AS people, SUM(spending) AS s, AVG(spending) AS a, MEDIAN(spending) AS m, CORR(spending, visits) AS r FROM health WHERE year = 1

-- Gaussian noise where it is asked for
--! delta 1e-6; noise gaussian
SELECT site, year, COUNT(*) AS n, AVG(visits) AS v FROM health GROUP BY site, year

-- Gaussian noise where it is better
--! delta 1e-6
SELECT age, COUNT(*) AS n FROM health GROUP BY age
