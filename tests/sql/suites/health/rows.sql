-- number of rows is public
--! answered
SELECT COUNT(*) AS n FROM years

-- rows by group
--! answered
SELECT site, COUNT(*) AS n FROM years GROUP BY site

-- average by group
--! answered
SELECT health, AVG(visits) AS v FROM years GROUP BY health

-- average of all
--! answered
SELECT AVG(age) AS a, SUM(visits) AS v FROM years

-- median of all
--! answered
SELECT MEDIAN(age) AS a FROM years

-- deviation
--! answered
SELECT STDDEV(age) AS s FROM years

-- correlation
--! answered
SELECT CORR(age, visits) AS r FROM years

-- distinct values
--! answered
SELECT COUNT(DISTINCT age) AS n FROM years

-- joined with a public table
--! answered
SELECT plan, COUNT(*) AS n FROM years JOIN plans USING (coinsurance) GROUP BY plan

-- rollup of rows
--! answered
SELECT site, year, COUNT(*) AS n FROM years GROUP BY ROLLUP (site, year)

-- values in a public subquery
--! answered
SELECT COUNT(*) AS n FROM years WHERE coinsurance IN (SELECT coinsurance FROM plans WHERE share > 0.3)

-- joined with itself
--! refused HB513
SELECT COUNT(*) AS n FROM years AS a JOIN years AS b ON a.year = b.year

-- joined with a table of persons
--! refused HB513
SELECT COUNT(*) AS n FROM years AS a JOIN health AS b ON a.year = b.year

-- windows over rows
--! refused HB741
SELECT COUNT(*) AS n FROM (SELECT LAG(age) OVER (PARTITION BY site ORDER BY year) AS a FROM years) AS t WHERE a > 3

-- public table alone
--! answered
SELECT plan, COUNT(*) AS n, AVG(share) AS share FROM plans GROUP BY plan ORDER BY plan

-- rows of a public table
--! answered
SELECT * FROM plans ORDER BY coinsurance

-- windows over a public table
--! answered
SELECT coinsurance, SUM(share) OVER (ORDER BY coinsurance) AS s FROM plans ORDER BY coinsurance

-- public tables combined
--! answered
SELECT a.plan, b.share FROM plans AS a JOIN plans AS b ON a.coinsurance < b.coinsurance ORDER BY a.coinsurance, b.coinsurance LIMIT 5

-- public values in a list
--! answered
SELECT coinsurance FROM plans WHERE plan IN (SELECT plan FROM plans GROUP BY plan HAVING COUNT(*) > 1) ORDER BY 1

-- union of public rows
--! answered
SELECT plan FROM plans WHERE share > 0.5 UNION SELECT 'none' ORDER BY 1
