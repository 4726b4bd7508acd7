-- tumult count distinct of two columns
--! answered
SELECT COUNT(DISTINCT (site, year)) AS n FROM health

-- bigquery pivot with sums
--! answered; dialect bigquery
SELECT * FROM (SELECT site, year, visits FROM health) PIVOT (SUM(visits) FOR year IN (1, 2, 3)) ORDER BY site
-- exact
SELECT site, SUM(visits) FILTER (year = 1) AS "_1", SUM(visits) FILTER (year = 2) AS "_2", SUM(visits) FILTER (year = 3) AS "_3" FROM health GROUP BY site ORDER BY site

-- snowflake pivot of counts
--! answered; dialect snowflake
SELECT * FROM (SELECT person, site, health FROM health) PIVOT (COUNT(person) FOR health IN ('good', 'fair')) AS p (site, good, fair) ORDER BY site
-- exact
SELECT site, COUNT(person) FILTER (health = 'good') AS good, COUNT(person) FILTER (health = 'fair') AS fair FROM health GROUP BY site ORDER BY site

-- duckdb pivot statement
--! answered
PIVOT (SELECT site, year, spending FROM health) ON year IN (1, 2) USING SUM(spending) GROUP BY site

-- bigquery unpivot is a union
--! answered; dialect bigquery
SELECT what, SUM(amount) AS s FROM (SELECT person, visits, admissions FROM health) UNPIVOT (amount FOR what IN (visits, admissions)) GROUP BY what
-- exact
SELECT what, SUM(amount) AS s FROM (SELECT person, 'visits' AS what, visits AS amount FROM health UNION ALL SELECT person, 'admissions', admissions FROM health) GROUP BY what

-- last value without a frame
--! answered
SELECT COUNT(*) AS n FROM (SELECT DISTINCT person, LAST_VALUE(health) OVER (PARTITION BY person ORDER BY year) AS l FROM health) AS t WHERE l = 'good'

-- last value with the whole frame
--! answered
SELECT l, COUNT(*) AS n FROM (SELECT DISTINCT person, LAST_VALUE(site) OVER (PARTITION BY person ORDER BY year ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM health) AS t GROUP BY l

-- last value ignoring nulls
--! answered
SELECT l, COUNT(*) AS n FROM (SELECT person, year, LAST_VALUE(health IGNORE NULLS) OVER (PARTITION BY person ORDER BY year ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS l FROM health) AS t WHERE year = 3 AND l IS NOT NULL GROUP BY l

-- first known health
--! answered; dialect snowflake
SELECT f, COUNT(*) AS n FROM (SELECT person, year, FIRST_VALUE(health) IGNORE NULLS OVER (PARTITION BY person ORDER BY year) AS f FROM health) AS t WHERE year = 5 AND f IS NOT NULL GROUP BY f
-- exact
SELECT f, COUNT(*) AS n FROM (SELECT person, year, FIRST_VALUE(health IGNORE NULLS) OVER (PARTITION BY person ORDER BY year ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS f FROM health) AS t WHERE year = 5 AND f IS NOT NULL GROUP BY f

-- lag ignore nulls
--! answered
SELECT COUNT(*) AS n FROM (SELECT person, health, LAG(health IGNORE NULLS) OVER (PARTITION BY person ORDER BY year) AS p FROM health) AS t WHERE health = 'fair' AND p = 'good'

-- intersect all within a unit
--! answered
SELECT COUNT(*) AS n FROM (SELECT person, site FROM health WHERE year <= 3 INTERSECT ALL SELECT person, site FROM health WHERE year > 3) AS t

-- except all within a unit
--! answered
SELECT COUNT(*) AS n FROM (SELECT person, site FROM health EXCEPT ALL SELECT person, site FROM health WHERE year > 3) AS t

-- correlated lateral latest row
--! answered
SELECT l.health, COUNT(*) AS n FROM (SELECT DISTINCT person FROM health) AS p CROSS JOIN LATERAL (SELECT health FROM health AS h WHERE h.person = p.person ORDER BY year DESC LIMIT 1) AS l WHERE l.health IS NOT NULL GROUP BY l.health

-- lateral computed column
--! answered
SELECT t.perhead, COUNT(*) AS n FROM health AS h CROSS JOIN LATERAL (SELECT CASE WHEN h.visits > 3 THEN 'many' ELSE 'few' END AS perhead) AS t GROUP BY t.perhead

-- every
--! answered; dialect postgres
SELECT COUNT(*) AS n FROM (SELECT person, EVERY(visits > 0) AS ok FROM health GROUP BY person) AS t WHERE ok
-- exact
SELECT COUNT(*) AS n FROM (SELECT person, BOOL_AND(visits > 0) AS ok FROM health GROUP BY person) AS t WHERE ok

-- ratio to report
--! answered; dialect snowflake
SELECT COUNT(*) AS n FROM (SELECT person, RATIO_TO_REPORT(spending) OVER (PARTITION BY person) AS r FROM health) AS t WHERE r > 0.5
-- exact
SELECT COUNT(*) AS n FROM (SELECT person, spending / NULLIF(SUM(spending) OVER (PARTITION BY person), 0) AS r FROM health) AS t WHERE r > 0.5

-- any value of a constant column per person
--! answered
SELECT f, COUNT(*) AS n FROM (SELECT person, ANY_VALUE(female) AS f FROM health GROUP BY person) AS t GROUP BY f

-- tumult groupby keyset
--! answered
SELECT s.site, COUNT(h.person) AS n FROM (VALUES (1), (2), (3)) AS s(site) LEFT JOIN health AS h ON h.site = s.site GROUP BY s.site

-- opendp clamp and mean
--! answered
SELECT AVG(CASE WHEN income > 20000 THEN 20000 WHEN income < 0 THEN 0 ELSE income END) AS m FROM health

-- cumulative share by the person's own total
--! answered
SELECT COUNT(*) AS n FROM (SELECT person, spending, SUM(spending) OVER (PARTITION BY person) AS total FROM health) AS t WHERE spending > 0.5 * total

-- nth year for a person
--! answered
SELECT COUNT(*) AS n FROM (SELECT person, NTH_VALUE(visits, 2) OVER (PARTITION BY person ORDER BY year ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS v, year FROM health) AS t WHERE v > 5 AND year = 1

-- filter clause on two aggregates and a ratio
--! answered; loose 0.3
SELECT site, SUM(spending) FILTER (WHERE female = 1) / SUM(spending) FILTER (WHERE female = 0) AS r FROM health GROUP BY site

-- geometric mean
--! answered
SELECT EXP(AVG(LN(GREATEST(spending, 1)))) AS g FROM health

-- regexp replace of a category
--! answered
SELECT REGEXP_REPLACE(health, '[aeiou]', '', 'g') AS h, COUNT(*) AS n FROM health WHERE health IS NOT NULL GROUP BY h

-- regexp extract of a category
--! answered
SELECT REGEXP_EXTRACT(health, '^[a-f]+') AS h, COUNT(*) AS n FROM health WHERE health IS NOT NULL GROUP BY h
