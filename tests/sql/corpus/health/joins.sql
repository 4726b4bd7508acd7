-- with a public table
SELECT p.plan, COUNT(*) AS n, AVG(h.visits) AS v FROM health AS h JOIN plans AS p ON h.coinsurance = p.coinsurance GROUP BY p.plan

-- with a public table by its shared column
SELECT plan, SUM(spending) AS s FROM health JOIN plans USING (coinsurance) GROUP BY plan ORDER BY plan

-- what patients paid themselves
SELECT SUM(spending * share) AS own FROM health JOIN plans USING (coinsurance)

-- a left join with a part of a public table
SELECT COUNT(*) AS n, COUNT(share) AS shared FROM health AS h LEFT JOIN (SELECT coinsurance, share FROM plans WHERE share < 1) AS p ON h.coinsurance = p.coinsurance

-- private tables on the person and year
SELECT h.health, COUNT(*) AS n, AVG(s.bill) AS bill FROM health AS h JOIN stays AS s ON h.person = s.person AND h.year = s.year GROUP BY h.health

-- private tables with a further condition
SELECT COUNT(*) AS later FROM health AS h JOIN stays AS s ON h.person = s.person AND h.year > s.year
-- oracle
SELECT sum(least(n, 25)) AS later FROM (SELECT h.person, count(*) AS n FROM health AS h JOIN stays AS s ON h.person = s.person AND h.year > s.year GROUP BY h.person)

-- a private left join
SELECT year, COUNT(*) AS n, COUNT(s.admissions) AS stays FROM health AS h LEFT JOIN stays AS s USING (person, year) GROUP BY year

-- a table with itself, a year apart
SELECT COUNT(*) AS n, AVG(b.visits - a.visits) AS change FROM health AS a JOIN health AS b ON a.person = b.person AND b.year = a.year + 1

-- a part for each person, joined back
SELECT h.health, COUNT(*) AS n FROM health AS h JOIN (SELECT person, SUM(admissions) AS a FROM stays GROUP BY person) AS s ON h.person = s.person WHERE s.a >= 2 GROUP BY h.health

-- rows as units with a public table
SELECT plan, COUNT(*) AS n, AVG(age) AS age FROM years JOIN plans USING (coinsurance) GROUP BY plan
