-- flights of known planes
SELECT COUNT(*) AS n, COUNT(DISTINCT tailnum) AS planes FROM flights

-- delays by airport
SELECT origin, AVG(dep_delay) AS mean, COUNT(dep_delay) AS flown, COUNT(*) AS planned FROM flights GROUP BY origin

-- delays by carrier and airport
SELECT carrier, origin, COUNT(*) AS n, AVG(arr_delay) AS late FROM flights GROUP BY carrier, origin

-- flights by month, every departure a unit
SELECT month, COUNT(*) AS n, SUM(distance) AS miles FROM departures GROUP BY month ORDER BY month

-- speed over the ground
SELECT carrier, AVG(LEAST(GREATEST(distance / air_time * 60, 0), 800)) AS mph FROM departures WHERE air_time > 0 GROUP BY carrier

-- cancelled flights
SELECT month, COUNT(*) FILTER (WHERE dep_delay IS NULL) AS cancelled, COUNT(*) AS n FROM departures GROUP BY month

-- late in bins of a quarter of an hour
SELECT FLOOR(dep_delay / 15) * 15 AS minutes, COUNT(*) AS n FROM departures GROUP BY minutes ORDER BY minutes

-- hours of the day
SELECT hour, COUNT(*) AS n, MEDIAN(dep_delay) AS late FROM departures GROUP BY hour
-- oracle
SELECT hour, count(*) AS n, CASE WHEN count(dep_delay) > 0 THEN [quantile_disc(dep_delay, 0.5), median(dep_delay)] ELSE [-60, 300] END AS late FROM departures GROUP BY hour

-- a product of 576 cells
SELECT carrier, origin, month, COUNT(*) AS n FROM departures GROUP BY carrier, origin, month

-- different days and destinations
SELECT origin, COUNT(DISTINCT dest) AS places, COUNT(DISTINCT day) AS days FROM flights GROUP BY origin

-- delays that the bound cuts
SELECT COUNT(*) AS n, SUM(dep_delay) AS total FROM departures WHERE dep_delay >= 300

-- text of several sorts
SELECT SUBSTR(carrier, 1, 1) AS letter, LENGTH(origin) AS len, COUNT(*) AS n FROM departures WHERE dest LIKE 'A%' OR starts_with(dest, 'S') GROUP BY letter, len

-- coalesce and nullif
SELECT COALESCE(NULLIF(origin, 'JFK'), 'Kennedy') AS airport, SUM(COALESCE(arr_delay, 0)) AS late FROM departures GROUP BY airport
