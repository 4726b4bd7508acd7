-- nested subqueries three deep
--! answered
SELECT AVG(s) AS a FROM (SELECT person, SUM(spending) AS s FROM (SELECT * FROM (SELECT * FROM health WHERE year <= 3) AS a WHERE age > 10) AS b GROUP BY person) AS c

-- ntile of persons by spending is over everybody
--! refused HB741
SELECT q, COUNT(*) AS n FROM (SELECT person, NTILE(4) OVER (ORDER BY spending) AS q FROM health) AS t GROUP BY q

-- bigquery approx quantiles with offset
--! answered; dialect bigquery; loose 0.3
SELECT APPROX_QUANTILES(age, 4)[OFFSET(2)] AS m FROM health
-- exact
SELECT quantile_disc(age, 0.5) AS m FROM health

-- bigquery safe_cast
--! answered; dialect bigquery; without spark HB574
SELECT SAFE_CAST(health AS INT64) IS NULL AS bad, COUNT(*) AS n FROM health GROUP BY bad
-- exact
SELECT TRY_CAST(health AS BIGINT) IS NULL AS bad, COUNT(*) AS n FROM health GROUP BY 1

-- bigquery countif and logical_or per person
--! answered; dialect bigquery
SELECT COUNTIF(sick) AS n FROM (SELECT person, LOGICAL_OR(admissions > 0) AS sick FROM health GROUP BY person)
-- exact
SELECT COUNT(*) FILTER (WHERE sick) FROM (SELECT person, BOOL_OR(admissions > 0) AS sick FROM health GROUP BY person) AS t

-- spark percentile
--! answered; dialect spark; loose 0.3
SELECT percentile(age, 0.9) AS p FROM health
-- exact
SELECT quantile_cont(age, 0.9) AS p FROM health

-- rank within person is one
--! answered
SELECT year, COUNT(*) AS n FROM (SELECT person, year, RANK() OVER (PARTITION BY person ORDER BY spending DESC) AS r FROM health) AS t WHERE r = 1 GROUP BY year

-- named window
--! answered
SELECT AVG(d) AS a FROM (SELECT person, visits - LAG(visits) OVER w AS d FROM health WINDOW w AS (PARTITION BY person ORDER BY year)) AS t WHERE d BETWEEN -80 AND 80

-- lpad as key
--! answered
SELECT LPAD(CAST(site AS VARCHAR), 3, '0') AS code, COUNT(*) AS n FROM health GROUP BY code

-- concat of two columns as key
--! answered
SELECT CONCAT(health, '-', female) AS k, COUNT(*) AS n FROM health WHERE health IS NOT NULL GROUP BY k

-- concat_ws
--! answered
SELECT CONCAT_WS('/', year, site) AS k, COUNT(*) AS n FROM health GROUP BY k

-- variance by hand
--! answered
SELECT SUM(age * age) / COUNT(age) - POWER(SUM(age) / COUNT(age), 2) AS v FROM health

-- gini after release
--! answered; noisy cum; near 0.01
SELECT site, SUM(n) OVER (ORDER BY site) / SUM(n) OVER () AS cum FROM (SELECT site, COUNT(*) AS n FROM health GROUP BY site) AS t ORDER BY site

-- everybody's rows with HAVING in IN
--! answered
SELECT COUNT(*) AS n FROM health WHERE site IN (SELECT site FROM health GROUP BY site HAVING COUNT(*) > 3200)

-- join with grouped everybody's rows
--! answered; near 0.01
SELECT COUNT(*) AS n FROM health AS h JOIN (SELECT site, AVG(spending) AS a FROM health GROUP BY site) AS s ON h.site = s.site WHERE h.spending > s.a

-- above mean by window over site
--! refused HB741
SELECT COUNT(*) AS n FROM (SELECT spending, AVG(spending) OVER (PARTITION BY site) AS a FROM health) AS t WHERE spending > a

-- chi square style expected count
--! answered; noisy expected; near 0.01
WITH c AS (SELECT site, female, COUNT(*) AS n FROM health GROUP BY site, female) SELECT site, female, n, SUM(n) OVER (PARTITION BY site) * SUM(n) OVER (PARTITION BY female) / SUM(n) OVER () AS expected FROM c

-- values list joined
--! answered
SELECT v.label, COUNT(*) AS n FROM health AS h JOIN (VALUES (0, 'man'), (1, 'woman')) AS v(code, label) ON h.female = v.code GROUP BY v.label

-- age bands from values
--! answered
WITH bands(low, high, name) AS (VALUES (0, 17, 'child'), (18, 64, 'adult')) SELECT name, COUNT(*) AS n FROM health JOIN bands ON age BETWEEN low AND high GROUP BY name

-- regr count and avgx
--! answered
SELECT REGR_COUNT(visits, age) AS n, REGR_AVGX(visits, age) AS ax, REGR_AVGY(visits, age) AS ay FROM health

-- bool and of group at top
--! refused HB512
SELECT BOOL_AND(age < 70) AS b FROM health

-- median of totals per person
--! answered; loose 0.5
SELECT MEDIAN(s) AS m FROM (SELECT person, SUM(visits) AS s FROM health GROUP BY person) AS t

-- values with repeats
--! answered
SELECT v.label, COUNT(*) AS n, SUM(w) AS s FROM health AS h JOIN (VALUES (0, 'x', 1.5), (1, 'x', 2.0), (1, 'y', 3.0)) AS v(code, label, w) ON h.female = v.code GROUP BY v.label

-- values in IN
--! answered
SELECT COUNT(*) AS n FROM health WHERE site IN (SELECT c FROM (VALUES (1), (3)) AS t(c))

-- values after release
--! answered
SELECT t.label, r.n FROM (SELECT female, COUNT(*) AS n FROM health GROUP BY female) AS r JOIN (VALUES (0, 'man'), (1, 'woman')) AS t(code, label) ON r.female = t.code

-- values left join keeps groups
--! answered
SELECT v.s, COUNT(h.person) AS n FROM (VALUES (1), (2), (9)) AS v(s) LEFT JOIN health AS h ON h.site = v.s GROUP BY v.s

-- and inside the release
--! answered
SELECT v.label, COUNT(*) AS n FROM health AS h JOIN (VALUES (1, 'man'), (0, 'woman')) AS v(code, label) ON h.female = v.code GROUP BY v.label

-- values in EXISTS
--! answered
SELECT COUNT(*) AS n FROM health AS h WHERE EXISTS (SELECT 1 FROM (VALUES (1, 1), (2, 2)) AS v(y, s) WHERE v.y = h.year AND v.s = h.site)
