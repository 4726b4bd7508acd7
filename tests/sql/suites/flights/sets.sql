-- carriers and destinations beside each other
--! answered; delta 1e-6; near 0.03
SELECT carrier, dest, COUNT(*) AS n FROM flights GROUP BY GROUPING SETS ((carrier), (dest), ()) HAVING COUNT(DISTINCT tailnum) > 140

-- rollup of origin and destination
--! answered; delta 1e-6; near 0.03
SELECT origin, dest, COUNT(*) AS n FROM flights GROUP BY ROLLUP (origin, dest) HAVING COUNT(DISTINCT tailnum) > 127

-- destinations with their total
--! answered; delta 1e-6; loose 0.5
SELECT COALESCE(dest, 'all') AS dest, SUM(distance) AS miles FROM flights GROUP BY ROLLUP (dest) HAVING COUNT(DISTINCT tailnum) > 140

-- cube of destination and quarter
--! answered; delta 1e-6; loose 0.5
SELECT dest, (month + 2) // 3 AS q, AVG(distance) AS miles FROM flights GROUP BY CUBE (dest, q) HAVING COUNT(DISTINCT tailnum) > 245

-- large manufacturers and types
--! answered; delta 1e-6
SELECT manufacturer, type, COUNT(*) AS n FROM planes GROUP BY GROUPING SETS ((manufacturer), (type)) HAVING COUNT(*) > 20
