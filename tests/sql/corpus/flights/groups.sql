-- rollup of airport and month
SELECT origin, month, COUNT(*) AS n FROM departures GROUP BY ROLLUP (origin, month)

-- cube of airport and lateness
SELECT origin, arr_delay > 30 AS late, COUNT(*) AS n FROM departures WHERE arr_delay IS NOT NULL GROUP BY CUBE (origin, late)

-- grouping sets of planes' flights
SELECT origin, carrier, AVG(distance) AS miles FROM flights GROUP BY GROUPING SETS ((origin), (carrier), ())

-- top three destinations of a declared list
SELECT carrier FROM departures GROUP BY carrier ORDER BY COUNT(*) DESC LIMIT 3

-- the airport with most planes
SELECT origin FROM flights GROUP BY origin ORDER BY COUNT(DISTINCT tailnum) DESC LIMIT 1

-- the busiest hours
SELECT hour FROM departures WHERE origin = 'EWR' GROUP BY hour ORDER BY COUNT(*) DESC LIMIT 4

-- destinations that nobody declared
--! delta 1e-6
SELECT dest, COUNT(*) AS n, AVG(air_time) AS minutes FROM flights GROUP BY dest
-- oracle
SELECT dest, count(*) AS n, avg(air_time) AS minutes FROM flights GROUP BY dest HAVING count(DISTINCT tailnum) >= 2

-- destinations that nobody declared, by departure
--! delta 1e-6
SELECT dest, origin, COUNT(*) AS n, SUM(distance) AS miles FROM departures GROUP BY dest, origin
-- oracle
SELECT dest, origin, count(*) AS n, sum(distance) AS miles FROM departures GROUP BY dest, origin HAVING count(*) >= 2

-- found groups in order
--! delta 1e-6
SELECT dest, COUNT(*) AS n FROM departures GROUP BY dest HAVING COUNT(*) > 10000 ORDER BY n DESC LIMIT 5

-- expressions over answers and keys
SELECT LOWER(carrier) AS carrier_lower, ROUND(100 * SUM(arr_delay) / SUM(distance), 4) AS late_per_100, COUNT(*) - COUNT(arr_delay) AS lost FROM departures GROUP BY carrier

-- different carriers and planes of found destinations
--! delta 1e-6
SELECT dest, COUNT(DISTINCT carrier) AS carriers, COUNT(DISTINCT tailnum) AS planes, COUNT(*) AS n FROM flights GROUP BY dest
-- oracle
SELECT dest, count(DISTINCT carrier) AS carriers, count(DISTINCT tailnum) AS planes, count(*) AS n FROM flights GROUP BY dest HAVING count(DISTINCT tailnum) >= 2

-- medians of found destinations
--! delta 1e-6
SELECT dest, MEDIAN(air_time) AS minutes, MAX(distance) AS miles, COUNT(*) AS n FROM departures GROUP BY dest
-- oracle
SELECT dest, CASE WHEN count(air_time) > 0 THEN [quantile_disc(air_time, 0.5), -quantile_disc(-air_time, 0.5)] ELSE [0, 720] END AS minutes, max(distance) AS miles, count(*) AS n FROM departures GROUP BY dest HAVING count(*) >= 2

-- the commonest of found destinations
--! delta 1e-6
SELECT dest, origin, MODE(carrier) AS carrier, QUANTILE_CONT(arr_delay, 0.9) AS late FROM departures GROUP BY dest, origin HAVING COUNT(*) > 3000 ORDER BY dest, origin
