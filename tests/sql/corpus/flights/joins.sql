-- names of airlines
--! delta 1e-6
SELECT a.name, COUNT(*) AS n FROM flights AS f JOIN airlines AS a ON f.carrier = a.carrier WHERE a.carrier IN ('AA', 'DL', 'UA') GROUP BY a.name ORDER BY n DESC

-- where they fly to, by time zone
SELECT p.tzone, COUNT(*) AS n, AVG(f.air_time) AS minutes FROM flights AS f JOIN airports AS p ON f.dest = p.faa GROUP BY p.tzone

-- high airports
SELECT COUNT(*) AS n, AVG(alt) AS feet FROM departures JOIN airports ON dest = faa WHERE alt > 5000

-- destinations without an airport
SELECT COUNT(*) AS n, COUNT(tz) AS known FROM departures AS d LEFT JOIN airports AS a ON d.dest = a.faa

-- what plane it was
SELECT p.type, COUNT(*) AS n, AVG(p.seats) AS seats FROM flights AS f JOIN planes AS p ON f.tailnum = p.tailnum GROUP BY p.type

-- seats in the air by carrier
SELECT carrier, SUM(seats) AS seats FROM flights JOIN planes USING (tailnum) GROUP BY carrier

-- old planes
SELECT p.engines, COUNT(DISTINCT f.tailnum) AS planes, AVG(2013 - p.year) AS age FROM flights AS f LEFT JOIN planes AS p ON f.tailnum = p.tailnum GROUP BY p.engines

-- weather at the hour of departure
SELECT w.visib < 3 AS fog, AVG(d.dep_delay) AS late, COUNT(*) AS n FROM departures AS d JOIN weather AS w ON d.origin = w.origin AND d.time_hour = w.time_hour GROUP BY fog

-- two public tables at once
SELECT a.tzone, p.engines, COUNT(*) AS n FROM flights AS f JOIN airports AS a ON f.dest = a.faa JOIN planes AS p ON f.tailnum = p.tailnum GROUP BY a.tzone, p.engines

-- a public table in a named part
WITH west AS (SELECT faa FROM airports WHERE tz <= -8) SELECT f.origin, COUNT(*) AS n FROM flights AS f JOIN west AS w ON f.dest = w.faa GROUP BY f.origin

-- planes that were in both halves of the year
SELECT COUNT(DISTINCT a.tailnum) AS planes FROM (SELECT tailnum FROM flights WHERE month <= 6 GROUP BY tailnum) AS a JOIN (SELECT tailnum FROM flights WHERE month > 6 GROUP BY tailnum) AS b ON a.tailnum = b.tailnum
