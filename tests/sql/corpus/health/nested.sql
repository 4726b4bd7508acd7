-- a part with a name
WITH poor AS (SELECT * FROM health WHERE health = 'poor') SELECT female, COUNT(*) AS n, AVG(age) AS age FROM poor GROUP BY female

-- parts of parts
WITH adults AS (SELECT person, year, visits, spending FROM health WHERE age >= 18), busy AS (SELECT person, year, spending FROM adults WHERE visits >= 5) SELECT year, COUNT(*) AS n, SUM(spending) AS s FROM busy GROUP BY year

-- a sub-query that computes
SELECT k, COUNT(*) AS n FROM (SELECT CASE WHEN income / 1000 > 10 THEN 'rich' ELSE 'poor' END AS k FROM health) AS t GROUP BY k

-- a union of two parts
SELECT src, COUNT(*) AS n, SUM(x) AS x FROM (SELECT 'visits' AS src, visits AS x FROM health UNION ALL SELECT 'stays', admissions FROM stays) AS u GROUP BY src

-- an average of people's averages
SELECT AVG(m) AS mean FROM (SELECT person, AVG(visits) AS m FROM health GROUP BY person) AS p

-- people by how many years they stayed
SELECT years, COUNT(*) AS people FROM (SELECT person, LEAST(COUNT(*), 5) AS years FROM health GROUP BY person) AS p GROUP BY years ORDER BY years

-- people's largest bills
SELECT AVG(most) AS mean, MEDIAN(most) AS middle FROM (SELECT person, MAX(spending) AS most FROM health GROUP BY person) AS p

-- a person's own sum, clamped
SELECT health, AVG(total) AS total FROM (SELECT person, health, LEAST(SUM(spending), 10000) AS total FROM health GROUP BY person, health) AS p GROUP BY health

-- people with a condition on themselves
SELECT COUNT(*) AS n FROM (SELECT person FROM health GROUP BY person HAVING SUM(admissions) >= 2) AS p

-- within a person, by year and plan
SELECT coinsurance, COUNT(*) AS n, AVG(v) AS v FROM (SELECT person, coinsurance, LEAST(SUM(visits), 100) AS v FROM health GROUP BY person, coinsurance) AS p GROUP BY coinsurance

-- distinct within a person
SELECT site, COUNT(*) AS n FROM (SELECT DISTINCT person, site, health FROM health) AS d GROUP BY site

-- a post-processed part
SELECT health, n * 100.0 / 20190 AS percent FROM (SELECT health, COUNT(*) AS n FROM health GROUP BY health) AS t WHERE n > 100 ORDER BY percent DESC

-- a part that is asked in a WITH and shown in part
WITH t AS (SELECT site, COUNT(*) AS n, AVG(visits) AS v FROM health GROUP BY site) SELECT site, ROUND(v, 3) AS v FROM t WHERE n >= 1000 ORDER BY v DESC

-- those who were ever in hospital
SELECT COUNT(DISTINCT person) AS people, AVG(visits) AS v FROM health WHERE person IN (SELECT person FROM stays)
