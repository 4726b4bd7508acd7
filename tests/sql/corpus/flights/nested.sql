-- planes by how often they fly
SELECT LEAST(FLOOR(n / 50), 8) AS fifties, COUNT(*) AS planes FROM (SELECT tailnum, COUNT(*) AS n FROM flights GROUP BY tailnum) AS p GROUP BY fifties

-- the average plane
SELECT AVG(LEAST(n, 600)) AS flights, AVG(d) AS late FROM (SELECT tailnum, COUNT(*) AS n, AVG(dep_delay) AS d FROM flights GROUP BY tailnum) AS p

-- planes of each carrier
SELECT carrier, COUNT(*) AS planes FROM (SELECT DISTINCT tailnum, carrier FROM flights) AS p GROUP BY carrier

-- worst day of a plane
SELECT MEDIAN(worst) AS worst FROM (SELECT tailnum, MAX(arr_delay) AS worst FROM flights GROUP BY tailnum HAVING COUNT(*) >= 10) AS p

-- planes and their months
SELECT months, COUNT(*) AS planes FROM (SELECT tailnum, LEAST(COUNT(DISTINCT month), 12) AS months FROM flights GROUP BY tailnum) AS p GROUP BY months ORDER BY months

-- legs out of two airports
SELECT src, COUNT(*) AS n, AVG(x) AS x FROM (SELECT tailnum, 'dep' AS src, dep_delay AS x FROM flights WHERE origin = 'JFK' UNION ALL SELECT tailnum, 'arr', arr_delay FROM flights WHERE origin = 'LGA') AS u GROUP BY src

-- planes that were ever very late
SELECT COUNT(DISTINCT tailnum) AS planes, COUNT(*) AS flights FROM flights WHERE tailnum IN (SELECT tailnum FROM flights WHERE arr_delay >= 240)

-- conditions on answers, in a named part
WITH t AS (SELECT carrier, COUNT(*) AS n, AVG(arr_delay) AS late FROM departures GROUP BY carrier) SELECT carrier, ROUND(late, 2) AS late, n FROM t WHERE n > 5000 ORDER BY late DESC LIMIT 5
