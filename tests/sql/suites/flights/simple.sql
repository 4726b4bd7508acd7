-- flights
--! answered
SELECT COUNT(*) AS n FROM flights

-- planes in flights
--! answered
SELECT COUNT(DISTINCT tailnum) AS planes FROM flights

-- planes
--! answered
SELECT COUNT(*) AS n FROM planes

-- flights by origin
--! answered
SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin ORDER BY n DESC

-- flights by month
--! answered
SELECT month, COUNT(*) AS n FROM flights GROUP BY month ORDER BY month

-- flights by carrier and origin
--! answered
SELECT carrier, origin, COUNT(*) AS n FROM flights GROUP BY carrier, origin

-- flights by destination
--! answered; delta 1e-6
SELECT dest, COUNT(*) AS n FROM flights WHERE dest IN ('ORD', 'ATL', 'LAX', 'BOS', 'MCO') GROUP BY dest

-- flights to one destination
--! answered
SELECT COUNT(*) AS n FROM flights WHERE dest = 'ORD'

-- cancelled flights
--! answered
SELECT COUNT(*) AS n FROM flights WHERE dep_time IS NULL

-- share of cancelled flights
--! answered
SELECT origin, 1 - COUNT(dep_time) * 1.0 / COUNT(*) AS cancelled FROM flights GROUP BY origin

-- delays
--! answered
SELECT AVG(dep_delay) AS dep, AVG(arr_delay) AS arr FROM flights

-- delays by carrier
--! answered; loose 0.2
SELECT carrier, COUNT(dep_delay) AS n, AVG(dep_delay) AS dep FROM flights WHERE carrier IN ('UA', 'B6', 'EV', 'DL') GROUP BY carrier ORDER BY dep DESC

-- delays by hour
--! answered; loose 0.3
SELECT hour, AVG(dep_delay) AS dep FROM flights WHERE hour BETWEEN 6 AND 20 GROUP BY hour ORDER BY hour

-- late flights
--! answered
SELECT COUNT(*) FILTER (WHERE arr_delay > 30) * 100.0 / COUNT(arr_delay) AS percent FROM flights

-- on time by month
--! answered
SELECT month, AVG(CASE WHEN arr_delay <= 15 THEN 1.0 ELSE 0 END) AS on_time FROM flights WHERE arr_delay IS NOT NULL GROUP BY month

-- time made up in the air
--! answered
SELECT AVG(dep_delay - arr_delay) AS gain FROM flights

-- speed
--! answered
SELECT AVG(LEAST(distance / (air_time / 60.0), 700)) AS speed FROM flights WHERE air_time > 20

-- distance
--! answered
SELECT SUM(distance) AS miles, AVG(distance) AS mean, STDDEV(distance) AS sd FROM flights

-- median of distance
--! answered
SELECT origin, MEDIAN(distance) AS m FROM flights GROUP BY origin

-- percentiles of delay
--! answered; loose 1
SELECT QUANTILE_CONT(dep_delay, 0.25) AS q1, QUANTILE_CONT(dep_delay, 0.5) AS q2, QUANTILE_CONT(dep_delay, 0.75) AS q3 FROM flights

-- correlation of delays
--! answered
SELECT CORR(dep_delay, arr_delay) AS r FROM flights

-- trend of delay in the day
--! answered; loose 0.2
SELECT REGR_SLOPE(dep_delay, hour) AS slope FROM flights

-- bins of distance
--! answered
SELECT distance // 500 * 500 AS bin, COUNT(*) AS n FROM flights GROUP BY bin ORDER BY bin

-- minutes of the day
--! answered
SELECT AVG(sched_dep_time // 100 * 60 + sched_dep_time % 100) AS minute FROM flights

-- day of the week
--! answered
SELECT ISODOW(time_hour) AS d, COUNT(*) AS n FROM flights GROUP BY d ORDER BY d

-- months by truncation
--! answered
SELECT DATE_TRUNC('month', time_hour) AS m, COUNT(*) AS n FROM flights GROUP BY 1

-- morning and evening
--! answered
SELECT CASE WHEN EXTRACT(HOUR FROM time_hour) < 12 THEN 'am' ELSE 'pm' END AS half, COUNT(*) AS n FROM flights GROUP BY half

-- a span of time
--! answered
SELECT COUNT(*) AS n FROM flights WHERE time_hour >= TIMESTAMP '2013-06-01 00:00:00' AND time_hour < TIMESTAMP '2013-06-01 00:00:00' + INTERVAL 1 MONTH

-- season
--! answered
SELECT CASE WHEN month IN (12, 1, 2) THEN 'winter' WHEN month IN (3, 4, 5) THEN 'spring' WHEN month IN (6, 7, 8) THEN 'summer' ELSE 'fall' END AS season, COUNT(*) AS n, AVG(dep_delay) AS delay FROM flights GROUP BY season

-- routes
--! answered; delta 1e-6
SELECT origin || '-' || dest AS route, COUNT(*) AS n FROM flights WHERE dest IN ('LAX', 'SFO') GROUP BY route

-- busiest carrier
--! answered
SELECT carrier FROM flights GROUP BY carrier ORDER BY COUNT(*) DESC LIMIT 1

-- rollup of origin and month
--! answered
SELECT origin, month, COUNT(*) AS n FROM flights GROUP BY ROLLUP (origin, month)

-- having many flights
--! answered
SELECT carrier, COUNT(*) AS n FROM flights GROUP BY carrier HAVING COUNT(*) >= 1000 ORDER BY n

-- tail number in a condition
--! refused HB516
SELECT COUNT(*) AS n FROM flights WHERE tailnum LIKE 'N1%'

-- beginning of tail numbers
--! refused HB516
SELECT SUBSTR(tailnum, 1, 2) AS s, COUNT(*) AS n FROM flights GROUP BY s

-- longest delay
--! answered; unchecked top
SELECT MAX(dep_delay) AS top FROM flights

-- most frequent destination
--! refused HB515
SELECT MODE(dest) AS d FROM flights

-- number of destinations
--! answered; loose 0.2
SELECT COUNT(DISTINCT dest) AS n FROM flights

-- destinations by origin
--! answered; loose 0.2
SELECT origin, COUNT(DISTINCT dest) AS n FROM flights GROUP BY origin

-- seats
--! answered
SELECT engines, COUNT(*) AS n, AVG(seats) AS seats FROM planes GROUP BY engines

-- planes by maker
--! answered; delta 1e-6
SELECT manufacturer, COUNT(*) AS n FROM planes WHERE manufacturer IN ('BOEING', 'AIRBUS', 'EMBRAER') GROUP BY manufacturer

-- age of planes
--! answered
SELECT AVG(2013 - year) AS age FROM planes WHERE year > 0

-- kinds of engines
--! answered
SELECT engine, type, COUNT(*) AS n FROM planes GROUP BY engine, type

-- text in lower case
--! answered
SELECT LOWER(type) AS t, COUNT(*) AS n FROM planes GROUP BY 1
