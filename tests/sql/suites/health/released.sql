-- outer selection
--! answered
SELECT * FROM (SELECT site, COUNT(*) AS n FROM health GROUP BY site) AS t WHERE n > 3000 ORDER BY n

-- outer expression
--! answered
SELECT site, n / 100.0 AS hundreds FROM (SELECT site, COUNT(*) AS n FROM health GROUP BY site) AS t

-- share of a total
--! answered
SELECT health, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM health GROUP BY health

-- rank of groups
--! answered; noisy place
SELECT site, COUNT(*) AS n, RANK() OVER (ORDER BY COUNT(*) DESC) AS place FROM health GROUP BY site

-- running count
--! answered; noisy so_far
SELECT year, SUM(COUNT(*)) OVER (ORDER BY year) AS so_far FROM health GROUP BY year

-- change from year to year
--! answered; noisy change
SELECT year, COUNT(*) - LAG(COUNT(*)) OVER (ORDER BY year) AS change FROM health GROUP BY year

-- average of counts
--! answered; noisy mean
SELECT AVG(n) AS mean FROM (SELECT site, COUNT(*) AS n FROM health GROUP BY site) AS t

-- largest of averages
--! answered; noisy top
SELECT MAX(v) AS top FROM (SELECT coinsurance, AVG(visits) AS v FROM health GROUP BY coinsurance) AS t

-- counts in classes
--! answered; noisy groups
SELECT n > 3000 AS large, COUNT(*) AS groups FROM (SELECT site, COUNT(*) AS n FROM health GROUP BY site) AS t GROUP BY large

-- two answers joined
--! answered; noisy n v; near 0.001
SELECT a.site, a.n, b.v FROM (SELECT site, COUNT(*) AS n FROM health GROUP BY site) AS a JOIN (SELECT site, AVG(visits) AS v FROM health GROUP BY site) AS b ON a.site = b.site

-- offset
--! answered
SELECT site, COUNT(*) AS n FROM health GROUP BY site ORDER BY site LIMIT 2 OFFSET 2

-- distinct answers
--! answered
SELECT DISTINCT COUNT(*) > 3000 AS large FROM health GROUP BY site

-- union of answers
--! answered
SELECT 'women' AS who, COUNT(*) AS n FROM health WHERE female = 1 UNION ALL SELECT 'men', COUNT(*) FROM health WHERE female = 0

-- a total beside groups
--! answered
SELECT site, COUNT(*) AS n, (SELECT COUNT(*) FROM health) AS everybody FROM health GROUP BY site

-- a case over answers
--! answered; noisy word
SELECT site, CASE WHEN COUNT(*) > 3000 THEN 'large' ELSE 'small' END AS word FROM health GROUP BY site

-- rounded answers
--! answered
SELECT site, ROUND(AVG(spending), -1) AS s, CAST(AVG(age) AS INTEGER) AS a FROM health GROUP BY site

-- keys alone
--! refused HB510
SELECT health FROM health GROUP BY health

-- distinct keys
--! refused HB510
SELECT DISTINCT site FROM health

-- grouping bit
--! answered
SELECT female, GROUPING(female) AS g, COUNT(*) AS n FROM health GROUP BY ROLLUP (female)

-- a row in each order
--! answered
SELECT site, COUNT(*) AS n FROM health GROUP BY site ORDER BY 2 DESC, 1 LIMIT 4

-- nulls first
--! answered
SELECT female, COUNT(*) AS n FROM health GROUP BY ROLLUP (female) ORDER BY female NULLS FIRST

-- quarter of the largest
--! answered; noisy part
SELECT site, NTILE(2) OVER (ORDER BY COUNT(*)) AS part FROM health GROUP BY site
