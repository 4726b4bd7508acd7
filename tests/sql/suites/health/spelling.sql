-- IFF of Snowflake
--! answered; dialect snowflake
SELECT SUM(IFF(visits > 5, 1, 0)) AS n FROM health
-- exact
SELECT SUM(CASE WHEN visits > 5 THEN 1 ELSE 0 END) AS n FROM health

-- IIF of T-SQL
--! answered; dialect tsql
SELECT SUM(IIF(visits > 5, 1, 0)) AS n FROM health
-- exact
SELECT SUM(CASE WHEN visits > 5 THEN 1 ELSE 0 END) AS n FROM health

-- TOP of T-SQL
--! answered; dialect tsql
SELECT TOP 2 site, COUNT(*) AS n FROM health GROUP BY site ORDER BY n DESC
-- exact
SELECT site, COUNT(*) AS n FROM health GROUP BY site ORDER BY n DESC LIMIT 2

-- NVL of Oracle
--! answered
SELECT AVG(NVL(income, 0)) AS a FROM health
-- exact
SELECT AVG(COALESCE(income, 0)) AS a FROM health

-- IFNULL
--! answered
SELECT AVG(IFNULL(income, 0)) AS a FROM health

-- IF
--! answered
SELECT SUM(IF(female = 1, visits, 0)) AS v FROM health

-- DECODE
--! answered; dialect snowflake
SELECT SUM(DECODE(health, 'poor', 1, 'fair', 1, 0)) AS n FROM health
-- exact
SELECT SUM(CASE WHEN health IN ('poor', 'fair') THEN 1 ELSE 0 END) AS n FROM health

-- is distinct from
--! answered
SELECT COUNT(*) AS n FROM health WHERE health IS DISTINCT FROM 'good'

-- pairs in a list
--! answered
SELECT COUNT(*) AS n FROM health WHERE (site, year) IN ((1, 1), (2, 3))

-- boolean equals integer
--! answered
SELECT COUNT(*) AS n FROM health WHERE (age > 30) = 1

-- number as text
--! answered
SELECT COUNT(*) AS n FROM health WHERE site = '3'

-- cast to VARCHAR with a length
--! answered
SELECT CAST(site AS VARCHAR(10)) AS site, COUNT(*) AS n FROM health GROUP BY 1

-- cast to DECIMAL
--! answered
SELECT SUM(CAST(spending AS DECIMAL(10, 2))) AS s FROM health

-- double colon
--! answered
SELECT AVG(age::DOUBLE) AS a FROM health

-- brackets around a join
--! answered
SELECT COUNT(*) AS n FROM (health JOIN plans USING (coinsurance))

-- schema before a table
--! answered
SELECT COUNT(*) AS n FROM main.health
-- exact
SELECT COUNT(*) AS n FROM health

-- alias like a column
--! answered
SELECT SUM(visits) AS visits, AVG(age) AS age FROM health

-- an alias that a condition could mean
--! answered
SELECT age // 10 AS age, COUNT(*) AS n FROM health WHERE age > 20 GROUP BY 1

-- VAR and STD
--! answered; dialect tsql
SELECT VAR(age) AS v, STDEV(age) AS s FROM health
-- exact
SELECT VAR_SAMP(age) AS v, STDDEV_SAMP(age) AS s FROM health

-- safe division of BigQuery
--! answered; dialect bigquery
SELECT SAFE_DIVIDE(SUM(spending), SUM(visits)) AS s FROM health
-- exact
SELECT SUM(spending) / SUM(visits) AS s FROM health

-- backquotes of BigQuery
--! answered; dialect bigquery
SELECT `site`, COUNT(*) AS n FROM `health` GROUP BY `site`
-- exact
SELECT site, COUNT(*) AS n FROM health GROUP BY site

-- PERCENTILE_DISC of PostgreSQL
--! answered; dialect postgres
SELECT PERCENTILE_DISC(0.5) WITHIN GROUP (ORDER BY age) AS a FROM health

-- MOD as a function
--! answered
SELECT MOD(site, 2) AS odd, COUNT(*) AS n FROM health GROUP BY 1

-- text functions
--! answered
SELECT UPPER(health) AS h, COUNT(*) AS n FROM health GROUP BY 1

-- length of a text that is bounded
--! answered
SELECT AVG(LEAST(LENGTH(health), 20)) AS l FROM health

-- length of text
--! refused HB515
SELECT AVG(LENGTH(health)) AS l FROM health

-- beginning of a text
--! answered
SELECT LEFT(health, 1) AS first, COUNT(*) AS n FROM health GROUP BY first

-- part of a text by FROM and FOR
--! answered
SELECT SUBSTRING(health FROM 1 FOR 2) AS s, COUNT(*) AS n FROM health GROUP BY 1

-- replaced text
--! answered
SELECT REPLACE(health, 'o', '0') AS h, COUNT(*) AS n FROM health GROUP BY 1

-- joined text
--! answered
SELECT health || '-' || CAST(female AS VARCHAR) AS h, COUNT(*) AS n FROM health GROUP BY 1

-- regular expression
--! answered
SELECT COUNT(*) AS n FROM health WHERE REGEXP_MATCHES(health, '^(good|fair)$')

-- ILIKE
--! answered
SELECT COUNT(*) AS n FROM health WHERE health ILIKE 'G%'

-- LIKE with ESCAPE
--! answered
SELECT COUNT(*) AS n FROM health WHERE health LIKE 'g!%' ESCAPE '!'

-- a simple CASE
--! answered
SELECT CASE female WHEN 1 THEN 'f' ELSE 'm' END AS sex, COUNT(*) AS n FROM health GROUP BY 1

-- WIDTH_BUCKET
--! answered
SELECT WIDTH_BUCKET(age, 0, 60, 6) AS bin, COUNT(*) AS n FROM health GROUP BY bin
-- exact
SELECT CASE WHEN age >= 60 THEN 7 ELSE FLOOR(age / 10) + 1 END AS bin, COUNT(*) AS n FROM health GROUP BY bin

-- FETCH FIRST
--! answered
SELECT site, COUNT(*) AS n FROM health GROUP BY site ORDER BY n DESC FETCH FIRST 2 ROWS ONLY
-- exact
SELECT site, COUNT(*) AS n FROM health GROUP BY site ORDER BY n DESC LIMIT 2

-- ZEROIFNULL of Snowflake
--! answered; dialect snowflake
SELECT AVG(ZEROIFNULL(income)) AS a FROM health
-- exact
SELECT AVG(COALESCE(income, 0)) AS a FROM health

-- numbers in scientific form
--! answered
SELECT COUNT(*) AS n FROM health WHERE income > 1e4

-- TRUE and FALSE
--! answered
SELECT COUNT(*) AS n FROM health WHERE (age > 30) IS TRUE AND TRUE

-- division by zero is missing
--! answered
SELECT COUNT(spending / visits) AS n FROM health
-- exact
SELECT COUNT(spending / NULLIF(visits, 0)) AS n FROM health

-- keywords as names
--! answered
SELECT AVG(temp) AS next, COUNT(*) AS schema FROM (SELECT person, age AS temp FROM health) AS format WHERE temp > 30

-- a pattern with classes
--! answered
SELECT COUNT(*) AS n FROM health WHERE REGEXP_MATCHES(health, '^[a-f].*[od]$')

-- a pattern of alternatives anywhere
--! answered
SELECT COUNT_IF(REGEXP_MATCHES(health, 'oo|ai')) AS n FROM health

-- a pattern that could be tried in many ways
--! answered; without spark HB574
SELECT COUNT(*) AS n FROM health WHERE REGEXP_MATCHES(health, 'o+d')

-- a pattern with a repeated group
--! refused HB508
SELECT COUNT(*) AS n FROM health WHERE REGEXP_MATCHES(health, '^(oo)+$')

-- a date in a format
--! answered
SELECT COUNT(*) AS n FROM health WHERE STRPTIME(CONCAT('2020-', CAST(visits AS VARCHAR), '-01'), '%Y-%m-%d') < TIMESTAMP '2020-04-01 00:00:00'
-- exact
SELECT COUNT(*) AS n FROM health WHERE visits BETWEEN 1 AND 3

-- a date in a format without separators
--! answered; dialect snowflake
SELECT COUNT(*) AS n FROM health WHERE TO_DATE('202001' || CAST(visits + 10 AS VARCHAR), 'YYYYMMDD') >= '2020-01-12'
-- exact
SELECT COUNT(*) AS n FROM health WHERE visits >= 2 AND visits + 10 <= 31

-- elements of a list
--! refused HB503
SELECT w, COUNT(*) AS n FROM health, UNNEST(health.health) AS u(w) GROUP BY w

-- elements of a list, in Spark's words
--! refused HB503; dialect spark
SELECT w, COUNT(*) AS n FROM health LATERAL VIEW EXPLODE(health) AS w GROUP BY w
