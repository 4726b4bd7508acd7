-- how many person-years
SELECT COUNT(*) FROM health

-- how many people
SELECT COUNT(DISTINCT person) AS people FROM health

-- people by self-rated health
SELECT health, COUNT(DISTINCT person) AS people, COUNT(*) AS years FROM health GROUP BY health

-- spending by plan
SELECT coinsurance, SUM(spending) AS total, AVG(spending) AS mean, COUNT(spending) AS n FROM health GROUP BY coinsurance

-- visits of women and men
SELECT female = 1 AS woman, AVG(visits) AS visits FROM health GROUP BY woman ORDER BY woman

-- schooling that may be missing
SELECT COUNT(*) AS n, COUNT(education) AS known, AVG(education) AS years FROM health

-- a count of nothing
SELECT COUNT(*) FROM health WHERE age > 64 AND year = 5 AND health = 'poor' AND coinsurance = 50

-- young and old
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 40 THEN 'young' ELSE 'old' END AS stage, COUNT(*) AS n, AVG(visits) AS v FROM health GROUP BY stage

-- a histogram of ages
SELECT FLOOR(age / 5) * 5 AS from_age, COUNT(*) AS n FROM health GROUP BY from_age ORDER BY from_age

-- a histogram of incomes by width_bucket
SELECT width_bucket(income, 0, 30000, 12) AS bucket, COUNT(*) AS n FROM health GROUP BY bucket
-- oracle
SELECT 1 + floor(income / 2500) AS bucket, count(*) AS n FROM health GROUP BY bucket

-- a histogram of small counts
SELECT LEAST(admissions, 3) AS admissions, COUNT(*) AS n FROM health GROUP BY 1 ORDER BY 1

-- a product of keys
SELECT site, year, female, COUNT(*) AS n FROM health GROUP BY site, year, female

-- filtered aggregates
SELECT COUNT(*) FILTER (WHERE visits > 10) AS often, SUM(spending) FILTER (WHERE admissions > 0) AS in_hospital, AVG(age) FILTER (WHERE female = 1) AS age FROM health

-- spending that the declared bound cuts
SELECT health, SUM(spending) AS total FROM health WHERE spending > 4000 GROUP BY health

-- tighter bounds written in the query
SELECT AVG(GREATEST(0, LEAST(spending, 500))) AS mean FROM health

-- totals that cannot be negative and means inside their bounds
SELECT site, SUM(admissions) AS admissions, AVG(income) AS income FROM health GROUP BY site ORDER BY site DESC

-- truth counted as a number
SELECT AVG(CASE WHEN admissions > 0 THEN 1 ELSE 0 END) AS share, COUNT_IF(visits = 0) AS never FROM health

-- different values
SELECT year, COUNT(DISTINCT age) AS ages, COUNT(DISTINCT education) AS schooling FROM health GROUP BY year

-- conditions of every sort
SELECT COUNT(*) FROM health WHERE (age BETWEEN 20 AND 30 OR age IN (1, 2, 3)) AND health NOT IN ('poor') AND NOT (visits = 0 AND spending > 0) AND education IS NOT NULL

-- the row as the unit
SELECT health, COUNT(*) AS n, AVG(spending) AS mean FROM years GROUP BY health

-- the row as the unit, without groups
SELECT COUNT(*) AS n, SUM(visits) AS visits, MEDIAN(age) AS age FROM years
