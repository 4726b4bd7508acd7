-- quoted names
SELECT "health", COUNT(*) AS "how many, roughly" FROM "health" AS "h" WHERE "h"."age" > 3 GROUP BY "health"

-- names in capitals
SELECT HEALTH, COUNT(*) AS N FROM HEALTH GROUP BY HEALTH

-- parameters by place
--! parameters [18, "good"]
SELECT COUNT(*) AS n FROM health WHERE age >= ? AND health = ?

-- parameters by number
--! parameters [40, 0.5]
SELECT AVG(visits) AS v FROM health JOIN plans USING (coinsurance) WHERE age < $1 AND share <= $2

-- PostgreSQL: casts and integer division
--! dialect postgres
SELECT age / 10 AS decade, COUNT(*) AS n, AVG(spending::double precision) AS mean FROM health WHERE health::text LIKE 'g%' GROUP BY age / 10
-- oracle
SELECT age // 10 AS decade, count(*) AS n, avg(spending) AS mean FROM health WHERE health LIKE 'g%' GROUP BY 1

-- PostgreSQL: filter, percentile and truth
--! dialect postgres
SELECT female = 1 AS woman, COUNT(*) FILTER (WHERE visits > 0) AS seen, PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY age) AS age FROM health GROUP BY 1
-- oracle
SELECT female = 1 AS woman, count(*) FILTER (visits > 0) AS seen, median(age) AS age FROM health GROUP BY 1

-- PostgreSQL: parameters and ILIKE
--! dialect postgres; parameters [3]
SELECT "health", COUNT(*) AS n FROM "health" WHERE visits > $1 AND health ILIKE '%O%' GROUP BY "health" ORDER BY 1 NULLS FIRST
-- oracle
SELECT health, count(*) AS n FROM health WHERE visits > ? AND health ILIKE '%O%' GROUP BY health ORDER BY 1

-- comments and blanks
SELECT /* all of them */ COUNT(*) -- person-years
  AS n
FROM health
