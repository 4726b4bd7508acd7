-- at most twenty flights of a plane
--! rows 20
SELECT COUNT(*) AS n FROM flights
-- oracle
SELECT sum(least(n, 20)) AS n FROM (SELECT tailnum, count(*) AS n FROM flights GROUP BY tailnum)

-- at most ten flights of a plane from each airport
--! rows 10
SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin
-- oracle
SELECT origin, sum(least(n, 10)) AS n FROM (SELECT tailnum, origin, count(*) AS n FROM flights GROUP BY tailnum, origin) GROUP BY origin

-- two months of each plane
--! groups 2; rows 600
SELECT month, COUNT(*) AS n, COUNT(DISTINCT tailnum) AS planes FROM flights GROUP BY month
-- oracle
SELECT month, sum(n) AS n, count(*) AS planes FROM (SELECT month, n, row_number() OVER (PARTITION BY tailnum ORDER BY hash($salt, tailnum, CAST(month - 1 AS BIGINT)), month) AS place FROM (SELECT tailnum, month, count(*) AS n FROM flights GROUP BY tailnum, month)) WHERE place <= 2 GROUP BY month

-- different destinations, at most three of a plane and airport
--! rows 3
SELECT origin, COUNT(DISTINCT dest) AS places FROM flights GROUP BY origin
-- oracle
SELECT origin, count(DISTINCT dest) AS places FROM (SELECT origin, dest, row_number() OVER (PARTITION BY tailnum, origin ORDER BY hash($salt, tailnum, c, dest), dest) AS place FROM (SELECT DISTINCT tailnum, origin, dest, CAST(list_position(['EWR', 'JFK', 'LGA'], origin) - 1 AS BIGINT) AS c FROM flights)) WHERE place <= 3 GROUP BY origin
