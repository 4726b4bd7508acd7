-- hours of day from hhmm
--! answered
SELECT dep_time // 100 AS h, COUNT(*) AS n FROM flights WHERE dep_time IS NOT NULL GROUP BY h HAVING COUNT(DISTINCT tailnum) > 20

-- destinations by time zone
--! answered
SELECT p.tzone, COUNT(*) AS n FROM flights AS f JOIN airports AS p ON f.dest = p.faa GROUP BY p.tzone HAVING COUNT(DISTINCT tailnum) > 30

-- planes changing origin
--! answered
SELECT COUNT(DISTINCT tailnum) AS n FROM (SELECT tailnum, origin, LAG(origin) OVER (PARTITION BY tailnum ORDER BY time_hour, flight) AS o FROM flights) AS t WHERE o <> origin

-- planes by most frequent month
--! answered
SELECT month, COUNT(*) AS n FROM (SELECT tailnum, month, ROW_NUMBER() OVER (PARTITION BY tailnum ORDER BY k DESC, month) AS i FROM (SELECT tailnum, month, COUNT(*) AS k FROM flights GROUP BY tailnum, month) AS a) AS b WHERE i = 1 GROUP BY month

-- ewr share by month
--! answered
SELECT month, AVG((origin = 'EWR')::INT) AS share FROM flights GROUP BY month ORDER BY month

-- routes as text
--! answered
SELECT origin || '-' || dest AS route, COUNT(*) AS n FROM flights GROUP BY route HAVING COUNT(DISTINCT tailnum) > 60

-- bigquery extract dayofweek
--! answered; dialect bigquery
SELECT EXTRACT(DAYOFWEEK FROM time_hour) AS d, COUNT(*) AS n FROM flights GROUP BY d
-- exact
SELECT dayofweek(time_hour) + 1 AS d, COUNT(*) AS n FROM flights GROUP BY d

-- spark date_format
--! answered; dialect spark
SELECT date_format(time_hour, 'yyyy-MM') AS m, count(*) AS n FROM flights GROUP BY 1
-- exact
SELECT strftime(time_hour, '%Y-%m') AS m, count(*) AS n FROM flights GROUP BY 1

-- snowflake dayname month
--! answered; dialect snowflake
SELECT MONTHNAME(time_hour) AS m, COUNT(*) AS n FROM flights GROUP BY m
-- exact
SELECT strftime(time_hour, '%b') AS m, COUNT(*) AS n FROM flights GROUP BY m

-- months above yearly mean after release
--! answered
WITH m AS (SELECT month, AVG(dep_delay) AS d FROM flights GROUP BY month) SELECT COUNT(*) AS k FROM m WHERE d > (SELECT AVG(d) FROM m)

-- share of each carrier per origin
--! answered; noisy share; near 0.02
SELECT origin, carrier, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER (PARTITION BY origin) AS share FROM flights GROUP BY origin, carrier

-- sampled rows
--! refused HB503
SELECT COUNT(*) FROM flights TABLESAMPLE 10%

-- limit inside
--! refused HB517
SELECT AVG(dep_delay) FROM (SELECT * FROM flights ORDER BY dep_delay DESC LIMIT 100) AS t
