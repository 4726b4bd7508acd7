-- a filtered subquery
--! answered
SELECT COUNT(*) AS n, AVG(age) AS age FROM (SELECT person, age FROM health WHERE year = 1) AS first

-- a common table expression
--! answered
WITH adults AS (SELECT * FROM health WHERE age >= 18) SELECT site, COUNT(*) AS n FROM adults GROUP BY site

-- two expressions in a row
--! answered
WITH a AS (SELECT person, year, visits FROM health WHERE female = 1), b AS (SELECT person, visits FROM a WHERE year < 4) SELECT AVG(visits) AS v FROM b

-- an expression that is not used
--! answered
WITH a AS (SELECT * FROM health), b AS (SELECT * FROM health) SELECT COUNT(*) AS n FROM a

-- total of each person without bounds
--! answered
SELECT AVG(total) AS mean FROM (SELECT person, SUM(visits) AS total FROM health GROUP BY person) AS t

-- total of each person
--! answered
SELECT AVG(LEAST(total, 400)) AS mean FROM (SELECT person, SUM(visits) AS total FROM health GROUP BY person) AS t

-- average of each person
--! answered
SELECT AVG(m) AS mean FROM (SELECT person, AVG(visits) AS m FROM health GROUP BY person) AS t

-- years of each person
--! answered
SELECT years, COUNT(*) AS people FROM (SELECT person, COUNT(*) AS years FROM health GROUP BY person) AS t GROUP BY years

-- people by a total
--! answered
SELECT COUNT(*) AS people FROM (SELECT person, SUM(admissions) AS a FROM health GROUP BY person HAVING SUM(admissions) >= 2) AS t

-- largest of each person
--! answered
SELECT AVG(top) AS mean FROM (SELECT person, MAX(visits) AS top FROM health GROUP BY person) AS t

-- smallest of each person
--! answered
SELECT SUM(low) AS s FROM (SELECT person, MIN(visits) AS low FROM health GROUP BY person) AS t

-- people by class of their total
--! answered
SELECT CASE WHEN total = 0 THEN 'none' WHEN total < 10 THEN 'some' ELSE 'many' END AS class, COUNT(*) AS people FROM (SELECT person, SUM(visits) AS total FROM health GROUP BY person) AS t GROUP BY class

-- each person and site
--! answered
SELECT site, AVG(LEAST(total, 200000)) AS mean FROM (SELECT person, site, SUM(spending) AS total FROM health GROUP BY person, site) AS t GROUP BY site

-- distinct values of each person
--! answered
SELECT AVG(LEAST(kinds, 4)) AS mean FROM (SELECT person, COUNT(DISTINCT health) AS kinds FROM health GROUP BY person) AS t

-- flags of each person
--! answered
SELECT SUM(ever) AS people FROM (SELECT person, MAX(CASE WHEN health = 'poor' THEN 1 ELSE 0 END) AS ever FROM health GROUP BY person) AS t

-- joined with the same table by person
--! answered
SELECT COUNT(*) AS n, AVG(b.visits - a.visits) AS change FROM health AS a JOIN health AS b ON a.person = b.person AND b.year = a.year + 1

-- joined with a part by person
--! answered
SELECT COUNT(*) AS n FROM health AS h JOIN (SELECT person, SUM(visits) AS v FROM health GROUP BY person) AS t ON h.person = t.person WHERE t.v > 20

-- joined with a public table
--! answered
SELECT plan, COUNT(*) AS n, AVG(spending) AS s FROM health JOIN plans USING (coinsurance) GROUP BY plan ORDER BY plan

-- joined on a condition
--! answered
SELECT p.plan, SUM(h.spending * p.share) AS own FROM health AS h JOIN plans AS p ON h.coinsurance = p.coinsurance WHERE p.plan <> 'free' GROUP BY p.plan

-- left joined with a part of a public table
--! answered
SELECT COUNT(*) AS n, COUNT(share) AS shared FROM health AS h LEFT JOIN (SELECT coinsurance, share FROM plans WHERE share < 1) AS p ON h.coinsurance = p.coinsurance

-- natural join
--! answered
SELECT plan, COUNT(*) AS n FROM health NATURAL JOIN plans GROUP BY plan

-- comma join
--! answered
SELECT p.plan, COUNT(*) AS n FROM health h, plans p WHERE h.coinsurance = p.coinsurance GROUP BY p.plan

-- people in a subquery
--! answered
SELECT COUNT(*) AS n FROM health WHERE person IN (SELECT person FROM health WHERE admissions >= 3)

-- people not in a subquery
--! answered
SELECT COUNT(*) AS n FROM health WHERE person NOT IN (SELECT person FROM health WHERE health = 'poor')

-- values in a public subquery
--! answered
SELECT COUNT(*) AS n FROM health WHERE coinsurance IN (SELECT coinsurance FROM plans WHERE plan = 'shared')

-- values not in a public subquery
--! answered
SELECT COUNT(*) AS n FROM health WHERE coinsurance NOT IN (SELECT coinsurance FROM plans WHERE plan = 'own')

-- an existing admission
--! answered
SELECT COUNT(*) AS n FROM health AS h WHERE EXISTS (SELECT 1 FROM health AS o WHERE o.person = h.person AND o.admissions > 0)

-- no admission in another year
--! answered
SELECT year, COUNT(*) AS n FROM health AS h WHERE NOT EXISTS (SELECT 1 FROM health AS o WHERE o.person = h.person AND o.year <> h.year AND o.admissions > 0) GROUP BY year

-- a public constant in a condition
--! answered
SELECT COUNT(*) AS n FROM health WHERE coinsurance > (SELECT AVG(coinsurance) FROM plans)

-- one's own average in a condition
--! answered
SELECT COUNT(*) AS n FROM health AS h WHERE visits > (SELECT AVG(visits) FROM health AS o WHERE o.person = h.person)

-- everybody's average in a condition
--! answered
SELECT COUNT(*) AS n FROM health WHERE visits > (SELECT AVG(visits) FROM health)

-- union of parts
--! answered
SELECT COUNT(*) AS n FROM (SELECT person, age FROM health WHERE year = 1 UNION ALL SELECT person, age FROM health WHERE year = 5) AS u

-- a subquery in a subquery
--! answered
SELECT AVG(LEAST(v, 400)) AS v FROM (SELECT person, v FROM (SELECT person, SUM(visits) AS v FROM health GROUP BY person) AS t WHERE v > 0) AS s

-- distinct rows
--! answered
SELECT COUNT(*) AS n FROM (SELECT DISTINCT person, health FROM health) AS t

-- previous year
--! answered
SELECT AVG(visits - before) AS change FROM (SELECT person, visits, LAG(visits) OVER (PARTITION BY person ORDER BY year) AS before FROM health) AS t

-- first year
--! answered
SELECT health, COUNT(*) AS people FROM (SELECT person, health, ROW_NUMBER() OVER (PARTITION BY person ORDER BY year) AS i FROM health) AS t WHERE i = 1 GROUP BY health

-- running total
--! answered
SELECT COUNT(*) AS n FROM (SELECT person, SUM(visits) OVER (PARTITION BY person ORDER BY year ROWS UNBOUNDED PRECEDING) AS so_far FROM health) AS t WHERE so_far > 30

-- last value by another column
--! answered
SELECT last, COUNT(*) AS people FROM (SELECT person, ARG_MAX(health, year) AS last FROM health GROUP BY person) AS t GROUP BY last

-- qualify
--! answered
SELECT AVG(visits) AS v FROM (SELECT person, visits FROM health QUALIFY ROW_NUMBER() OVER (PARTITION BY person ORDER BY year DESC) = 1) AS t

-- a window over everybody
--! refused HB741
SELECT COUNT(*) AS n FROM (SELECT person, ROW_NUMBER() OVER (ORDER BY spending DESC) AS i FROM health) AS t WHERE i <= 10

-- limit in a subquery
--! refused HB517
SELECT AVG(age) AS age FROM (SELECT person, age FROM health LIMIT 100) AS t

-- joined on something else
--! refused HB513
SELECT COUNT(*) AS n FROM health AS a JOIN health AS b ON a.age = b.age

-- joined by nothing
--! refused HB513
SELECT COUNT(*) AS n FROM health AS a CROSS JOIN health AS b

-- recursion
--! refused HB503
WITH RECURSIVE r AS (SELECT person, 1 AS i FROM health UNION ALL SELECT person, i + 1 FROM r) SELECT COUNT(*) FROM r

-- semi join
--! answered
SELECT COUNT(*) AS n FROM health AS h SEMI JOIN (SELECT person FROM health WHERE health = 'poor') AS p ON h.person = p.person

-- anti join
--! answered
SELECT COUNT(*) AS n FROM health AS h ANTI JOIN (SELECT person FROM health WHERE health = 'poor') AS p ON h.person = p.person

-- intersection
--! answered
SELECT COUNT(*) AS n FROM (SELECT person FROM health WHERE health = 'poor' INTERSECT SELECT person FROM health WHERE health = 'good') AS t

-- difference of sets
--! answered
SELECT COUNT(*) AS n FROM (SELECT person FROM health WHERE health = 'poor' EXCEPT SELECT person FROM health WHERE health = 'good') AS t

-- union without duplicates
--! answered
SELECT COUNT(*) AS n FROM (SELECT person, site FROM health WHERE year = 1 UNION SELECT person, site FROM health WHERE year = 2) AS t
