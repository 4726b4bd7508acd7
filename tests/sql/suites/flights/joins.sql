-- name of the carrier
--! answered
SELECT a.name, COUNT(*) AS n FROM flights f JOIN airlines a ON f.carrier = a.carrier GROUP BY a.name ORDER BY n DESC

-- name of the carrier by USING
--! answered
SELECT name, COUNT(*) AS n, SUM(distance) AS miles FROM flights JOIN airlines USING (carrier) WHERE name LIKE '%Air Lines%' GROUP BY name

-- carriers that flew at all
--! answered
SELECT a.name, COUNT(f.month) AS n FROM airlines a LEFT JOIN flights f ON f.carrier = a.carrier GROUP BY a.name

-- carriers by natural join
--! answered
SELECT name, COUNT(*) AS n FROM flights NATURAL JOIN airlines GROUP BY name

-- destination's time zone
--! answered
SELECT p.tzone, COUNT(*) AS n FROM flights f JOIN airports p ON f.dest = p.faa WHERE p.tzone IS NOT NULL GROUP BY p.tzone

-- flights to unknown airports
--! answered
SELECT COUNT(*) AS n FROM flights f LEFT JOIN airports p ON f.dest = p.faa WHERE p.name IS NULL

-- flights to high airports
--! answered
SELECT COUNT(*) AS n FROM flights f, airports p WHERE f.dest = p.faa AND p.alt > 3000

-- both airports
--! answered
SELECT o.name, COUNT(*) AS n FROM flights f JOIN airports o ON f.origin = o.faa JOIN airports d ON f.dest = d.faa WHERE d.lat > o.lat GROUP BY o.name

-- north or south
--! answered
SELECT CASE WHEN d.lat > 40 THEN 'north' ELSE 'south' END AS side, AVG(f.distance) AS miles FROM flights f JOIN airports d ON f.dest = d.faa GROUP BY 1

-- airports in a list
--! answered
SELECT COUNT(*) AS n FROM flights WHERE dest IN (SELECT faa FROM airports WHERE tz = -8)

-- airports not in a list
--! answered
SELECT COUNT(*) AS n FROM flights WHERE dest NOT IN (SELECT faa FROM airports)

-- an airport that exists
--! answered
SELECT origin, COUNT(*) AS n FROM flights f WHERE EXISTS (SELECT 1 FROM airports p WHERE p.faa = f.dest AND p.alt < 20) GROUP BY origin

-- weather at departure
--! answered
SELECT w.precip > 0 AS wet, COUNT(*) AS n, AVG(f.dep_delay) AS delay FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour GROUP BY wet

-- weather by USING
--! answered
SELECT COUNT(*) AS n FROM flights JOIN weather USING (origin, time_hour) WHERE visib < 3

-- wind and delay
--! answered; loose 0.2
SELECT w.wind_speed > 15 AS windy, AVG(f.dep_delay) AS delay FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour GROUP BY windy

-- hours without weather
--! answered
SELECT COUNT(*) AS n FROM flights f LEFT JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour WHERE w.temp IS NULL

-- average temperature by month, public
--! answered
SELECT month, AVG(temp) AS t FROM weather GROUP BY month ORDER BY month

-- coldest hours, public
--! answered
SELECT origin, time_hour, temp FROM weather WHERE temp IS NOT NULL ORDER BY temp, origin, time_hour LIMIT 5

-- hot days in a public subquery
--! answered
SELECT COUNT(*) AS n FROM flights f JOIN (SELECT origin, month, AVG(temp) AS t FROM weather GROUP BY origin, month) w ON f.origin = w.origin AND f.month = w.month WHERE w.t > 65

-- above the average temperature
--! answered
SELECT COUNT(*) AS n FROM flights f JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour WHERE w.temp > (SELECT AVG(temp) FROM weather)

-- flights of old planes
--! answered
SELECT COUNT(*) AS n FROM flights f JOIN planes p ON f.tailnum = p.tailnum WHERE p.year < 1990

-- flights by kind of engine
--! answered
SELECT p.engine, COUNT(*) AS n, AVG(f.distance) AS miles FROM flights f JOIN planes p USING (tailnum) WHERE p.engine IN ('Turbo-fan', 'Turbo-jet') GROUP BY p.engine

-- flights whose plane is not known
--! answered
SELECT COUNT(*) AS n FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum WHERE p.seats IS NULL

-- flights whose plane is not known by its key
--! answered
SELECT COUNT(*) AS n FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum WHERE p.tailnum IS NULL

-- flights whose plane is not known by ANTI JOIN
--! answered
SELECT COUNT(*) AS n FROM flights f ANTI JOIN planes p ON f.tailnum = p.tailnum

-- seats offered
--! answered
SELECT f.origin, SUM(p.seats) AS seats FROM flights f JOIN planes p ON f.tailnum = p.tailnum GROUP BY f.origin

-- planes that flew
--! answered
SELECT COUNT(*) AS n FROM planes WHERE tailnum IN (SELECT tailnum FROM flights WHERE origin = 'JFK')

-- planes that flew from all three airports
--! answered
SELECT COUNT(*) AS n FROM (SELECT tailnum FROM flights GROUP BY tailnum HAVING COUNT(DISTINCT origin) = 3) AS t

-- planes that flew from two airports
--! answered
SELECT COUNT(*) AS n FROM planes p WHERE EXISTS (SELECT 1 FROM flights f WHERE f.tailnum = p.tailnum AND f.origin = 'EWR') AND EXISTS (SELECT 1 FROM flights f WHERE f.tailnum = p.tailnum AND f.origin = 'LGA')

-- flights of a plane
--! answered
SELECT AVG(LEAST(n, 60)) AS mean FROM (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum) AS t

-- worst delay of each plane
--! answered
SELECT AVG(top) AS mean FROM (SELECT tailnum, MAX(dep_delay) AS top FROM flights GROUP BY tailnum) AS t

-- planes by number of flights
--! answered
SELECT LEAST(n, 10) AS n, COUNT(*) AS planes FROM (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum) AS t GROUP BY 1

-- previous flight was late
--! answered; loose 0.2
SELECT AVG(dep_delay) AS delay FROM (SELECT tailnum, dep_delay, LAG(arr_delay) OVER (PARTITION BY tailnum ORDER BY time_hour, flight) AS before FROM flights) AS t WHERE before > 30

-- first flight of each plane
--! answered
SELECT origin, COUNT(*) AS planes FROM (SELECT tailnum, origin, ROW_NUMBER() OVER (PARTITION BY tailnum ORDER BY time_hour, flight, origin) AS i FROM flights) AS t WHERE i = 1 GROUP BY origin

-- flights on one day of a plane
--! answered
SELECT i, COUNT(*) AS n FROM (SELECT tailnum, ROW_NUMBER() OVER (PARTITION BY tailnum, month ORDER BY time_hour, flight, origin) AS i FROM flights) AS t WHERE i <= 4 GROUP BY i

-- hours between flights
--! answered
SELECT COUNT(*) AS n FROM (SELECT tailnum, DATE_DIFF('hour', LAG(time_hour) OVER (PARTITION BY tailnum ORDER BY time_hour, flight), time_hour) AS gap FROM flights) AS t WHERE gap < 6

-- later flights of the same plane
--! answered
SELECT COUNT(*) AS n FROM flights a JOIN flights b ON a.tailnum = b.tailnum AND b.time_hour > a.time_hour AND b.month = a.month

-- flights at the same hour
--! refused HB513
SELECT COUNT(*) AS n FROM flights a JOIN flights b ON a.time_hour = b.time_hour AND a.origin = b.origin

-- later than the average flight
--! answered
SELECT COUNT(*) AS n FROM flights WHERE arr_delay > (SELECT AVG(arr_delay) FROM flights)

-- delay rank among carriers
--! answered; noisy place; loose 0.5
SELECT carrier, RANK() OVER (ORDER BY AVG(distance) DESC) AS place FROM flights WHERE carrier IN ('UA', 'B6', 'EV', 'DL') GROUP BY carrier

-- share of each origin
--! answered
SELECT origin, n / SUM(n) OVER () AS share FROM (SELECT origin, COUNT(*) AS n FROM flights GROUP BY origin) AS t

-- busiest months
--! answered
WITH m AS (SELECT month, COUNT(*) AS n FROM flights GROUP BY month) SELECT month, n FROM m ORDER BY n DESC LIMIT 3

-- the average month
--! answered; noisy mean
WITH m AS (SELECT month, COUNT(*) AS n FROM flights GROUP BY month) SELECT AVG(n) AS mean FROM m

-- months above the average
--! answered
WITH m AS (SELECT month, COUNT(*) AS n FROM flights GROUP BY month) SELECT month FROM m WHERE n > (SELECT AVG(n) FROM m) ORDER BY month

-- difference of two origins
--! answered
SELECT a.month, a.n - b.n AS more FROM (SELECT month, COUNT(*) AS n FROM flights WHERE origin = 'EWR' GROUP BY month) a JOIN (SELECT month, COUNT(*) AS n FROM flights WHERE origin = 'LGA' GROUP BY month) b ON a.month = b.month ORDER BY a.month

-- airports by zone, public
--! answered
SELECT tzone, COUNT(*) AS n, MIN(lat) AS south, MAX(lat) AS north FROM airports GROUP BY tzone ORDER BY n DESC, tzone

-- highest airports, public
--! answered
SELECT name, alt, RANK() OVER (ORDER BY alt DESC) AS place FROM airports QUALIFY place <= 3 ORDER BY place

-- airlines without a word, public
--! answered
SELECT name FROM airlines WHERE name NOT LIKE '%Air%' ORDER BY name

-- wet hours by month, public
--! answered
SELECT month, COUNT(*) FILTER (WHERE precip > 0) * 1.0 / COUNT(*) AS wet FROM weather GROUP BY month HAVING COUNT(*) > 100 ORDER BY month

-- months compared, public
--! answered
WITH m AS (SELECT month, AVG(temp) AS t FROM weather GROUP BY month) SELECT month, t - LAG(t) OVER (ORDER BY month) AS warmer FROM m ORDER BY month
