-- orders per customer distribution
--! answered
SELECT k, COUNT(*) AS n FROM (SELECT c.c_custkey, COUNT(o.o_orderkey) AS k FROM customer c LEFT JOIN orders o ON o.o_custkey = c.c_custkey GROUP BY c.c_custkey) AS t GROUP BY k HAVING COUNT(*) > 20

-- late lines per order
--! answered
SELECT AVG(k) AS a FROM (SELECT l_orderkey, COUNT(*) FILTER (WHERE l_receiptdate > l_commitdate) AS k FROM lineitem GROUP BY l_orderkey) AS t WHERE k BETWEEN 0 AND 7

-- quarters
--! answered
SELECT QUARTER(o_orderdate) AS q, COUNT(*) AS n, SUM(o_totalprice) AS s FROM orders GROUP BY ROLLUP (q) ORDER BY q NULLS LAST

-- having on two aggregates
--! answered
SELECT c_nationkey, COUNT(*) AS n, AVG(c_acctbal) AS b FROM customer GROUP BY c_nationkey HAVING COUNT(*) > 55 AND AVG(c_acctbal) > 4000

-- qualify the largest order of each customer
--! answered
SELECT o_orderpriority, COUNT(*) AS n FROM (SELECT * FROM orders QUALIFY ROW_NUMBER() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC) = 1) AS t GROUP BY o_orderpriority

-- phone prefix from a regexp
--! answered
SELECT REGEXP_EXTRACT(c_phone, '^([0-9]+)-', 1) AS cc, COUNT(*) AS n FROM customer WHERE c_nationkey < 3 GROUP BY cc
