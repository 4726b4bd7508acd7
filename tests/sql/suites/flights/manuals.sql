-- speed
--! answered; without postgres HB574
SELECT AVG(LEAST(1000, distance / NULLIF(air_time, 0) * 60)) AS mph FROM flights

-- dates built from columns
--! answered
SELECT MAKE_DATE(2013, month, day) AS d, COUNT(*) AS n FROM flights WHERE month <= 3 AND day = 13 GROUP BY d

-- public unnest
--! answered
SELECT h, COUNT(*) AS n FROM weather, UNNEST([0, 6, 12, 18]) AS u(h) WHERE weather.hour = h GROUP BY h

-- unnest of a constant list beside private rows
--! answered
SELECT u.h, COUNT(*) AS n FROM flights AS f JOIN UNNEST([6, 12, 18]) AS u(h) ON f.hour = u.h GROUP BY u.h

-- generate series beside private rows
--! answered
SELECT g.h, COUNT(f.tailnum) AS n FROM generate_series(0, 23) AS g(h) LEFT JOIN flights AS f ON f.hour = g.h GROUP BY g.h

-- legs that return the same day
--! answered
SELECT COUNT(*) AS n FROM (SELECT tailnum, origin, LEAD(origin) OVER (PARTITION BY tailnum, month, day ORDER BY sched_dep_time) AS nxt FROM flights) AS t WHERE nxt = origin

-- weather at departure
--! answered
SELECT w.precip > 0 AS wet, AVG(f.dep_delay) AS d FROM flights AS f JOIN weather AS w ON w.origin = f.origin AND w.time_hour = f.time_hour GROUP BY wet

-- cube of origin and month
--! answered
SELECT origin, month, GROUPING(origin) AS g, COUNT(*) AS n FROM flights WHERE month <= 2 GROUP BY CUBE (origin, month)
