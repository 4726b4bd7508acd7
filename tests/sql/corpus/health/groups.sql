-- rollup
SELECT site, female, COUNT(*) AS n FROM health GROUP BY ROLLUP (site, female)

-- cube
SELECT health, female, AVG(visits) AS v FROM health GROUP BY CUBE (health, female)

-- grouping sets
SELECT site, year, COUNT(*) AS n, SUM(visits) AS v FROM health GROUP BY GROUPING SETS ((site), (year), ())

-- a rollup of expressions
SELECT age >= 18 AS adult, health, COUNT(DISTINCT person) AS people FROM health GROUP BY ROLLUP (adult, health)

-- a rollup where each row is a unit
SELECT site, year, COUNT(*) AS n, MEDIAN(age) AS age FROM years GROUP BY ROLLUP (site, year)

-- having, order and limit
SELECT site, COUNT(*) AS n FROM health GROUP BY site HAVING COUNT(*) > 3000 ORDER BY n DESC LIMIT 3

-- order by what is not shown
SELECT health FROM health GROUP BY health HAVING COUNT(*) > 10 ORDER BY AVG(visits)

-- expressions over answers
SELECT coinsurance, SUM(spending) / COUNT(*) AS mean, 100 * COUNT(*) / 20190 AS percent, CASE WHEN AVG(visits) > 3 THEN 'many' ELSE 'few' END AS visits FROM health GROUP BY coinsurance

-- expressions over keys and answers
SELECT year + 1973 AS calendar, UPPER(health) AS loud, COUNT(*) AS n FROM health GROUP BY year, health

-- the most frequent
SELECT health FROM health GROUP BY health ORDER BY COUNT(*) DESC LIMIT 1

-- the two commonest ages
SELECT age FROM health GROUP BY age ORDER BY COUNT(*) DESC LIMIT 2

-- the two sites with most people
SELECT site FROM health GROUP BY site ORDER BY COUNT(DISTINCT person) DESC LIMIT 2

-- numbers written out
SELECT education, COUNT(*) AS n, AVG(income) AS income FROM (SELECT person, income, CAST(education AS VARCHAR) AS education FROM health) AS t GROUP BY education

-- grouped by place and by all
SELECT female, health, COUNT(*) AS n FROM health GROUP BY 1, 2 ORDER BY 1, 2
