-- by quarter of the year
SELECT QUARTER(time_hour) AS q, COUNT(*) AS n FROM departures GROUP BY q ORDER BY q

-- by month, cut
SELECT DATE_TRUNC('month', time_hour) AS m, COUNT(*) AS n FROM departures GROUP BY m ORDER BY m

-- by week, cut
SELECT DATE_TRUNC('week', time_hour) AS w, AVG(dep_delay) AS late FROM departures GROUP BY w

-- by day of the week
SELECT DATE_PART('dow', time_hour) AS dow, COUNT(*) AS n, AVG(arr_delay) AS late FROM departures GROUP BY dow

-- by hour of the clock and half of the year
SELECT EXTRACT(hour FROM time_hour) AS h, MONTH(time_hour) > 6 AS second_half, COUNT(*) AS n FROM departures GROUP BY h, second_half

-- between two moments
SELECT carrier, COUNT(*) AS n FROM flights WHERE time_hour >= TIMESTAMP '2013-07-01 00:00:00' AND time_hour < TIMESTAMP '2013-07-01 00:00:00' + INTERVAL 7 DAY GROUP BY carrier

-- a day
SELECT COUNT(*) AS n FROM departures WHERE CAST(time_hour AS DATE) = DATE '2013-12-25'

-- days since the year began
SELECT date_diff('day', TIMESTAMP '2013-01-01 00:00:00', time_hour) // 30 AS thirty, COUNT(*) AS n FROM departures GROUP BY thirty

-- moments as parameters
--! parameters ["2013-03-01", "2013-04-01"]
SELECT origin, COUNT(*) AS n FROM departures WHERE time_hour >= CAST($1 AS TIMESTAMP) AND time_hour < CAST($2 AS TIMESTAMP) GROUP BY origin

-- PostgreSQL: intervals and cut dates
--! dialect postgres
SELECT date_trunc('quarter', time_hour) AS q, COUNT(*) AS n FROM departures WHERE time_hour < timestamp '2013-01-31 00:00:00' + interval '2 months' GROUP BY 1 ORDER BY 1
-- oracle
SELECT date_trunc('quarter', time_hour) AS q, count(*) AS n FROM departures WHERE time_hour < timestamp '2013-03-31 00:00:00' GROUP BY 1 ORDER BY 1
