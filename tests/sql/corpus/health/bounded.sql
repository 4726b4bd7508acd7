-- rows of one person are bounded
--! rows 2
SELECT COUNT(*) AS n FROM health
-- oracle
SELECT sum(least(n, 2)) AS n FROM (SELECT person, count(*) AS n FROM health GROUP BY person)

-- rows of one person and group are bounded
--! rows 1
SELECT health, COUNT(*) AS n, COUNT(DISTINCT person) AS people FROM health GROUP BY health
-- oracle
SELECT health, count(DISTINCT person) AS n, count(DISTINCT person) AS people FROM health GROUP BY health

-- what is the same in all rows of a person does not depend on which are kept
--! rows 2
SELECT female, SUM(site) AS s, AVG(site) AS a FROM health GROUP BY female
-- oracle
SELECT female, sum(site) AS s, avg(site) AS a FROM (SELECT person, female, site, row_number() OVER (PARTITION BY person) AS i FROM health) WHERE i <= 2 GROUP BY female

-- groups of one person are bounded
--! groups 2
SELECT year, COUNT(*) AS n FROM health GROUP BY year
-- oracle
SELECT year, count(*) AS n FROM (SELECT year, row_number() OVER (PARTITION BY person ORDER BY hash($salt, person, CAST(year - 1 AS BIGINT)), year) AS place FROM (SELECT DISTINCT person, year FROM health)) WHERE place <= 2 GROUP BY year

-- one group, one row: one year of each person
--! groups 1; rows 1
SELECT year, COUNT(*) AS n, SUM(visits) AS v FROM health GROUP BY year
-- oracle
SELECT year, count(*) AS n, sum(visits) AS v FROM (SELECT year, visits, row_number() OVER (PARTITION BY person ORDER BY hash($salt, person, CAST(year - 1 AS BIGINT)), year) AS place FROM health) WHERE place <= 1 GROUP BY year

-- groups of one person in each grouping set
--! groups 1
SELECT year, COUNT(DISTINCT person) AS n FROM health GROUP BY ROLLUP (year)
-- oracle
SELECT year, n FROM (SELECT year, count(*) AS n FROM (SELECT year, row_number() OVER (PARTITION BY person ORDER BY hash($salt, person, CAST(year - 1 AS BIGINT)), year) AS place FROM (SELECT DISTINCT person, year FROM health)) WHERE place <= 1 GROUP BY year) UNION ALL SELECT NULL, count(DISTINCT person) FROM health
