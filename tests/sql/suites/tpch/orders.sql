-- customers
--! answered
SELECT COUNT(*) AS n FROM customer

-- customers by segment
--! answered
SELECT c_mktsegment, COUNT(*) AS n FROM customer GROUP BY c_mktsegment ORDER BY c_mktsegment

-- customers by nation
--! answered
SELECT n_name, COUNT(*) AS n FROM customer JOIN nation ON c_nationkey = n_nationkey GROUP BY n_name ORDER BY n DESC, n_name

-- customers by region
--! answered
SELECT r_name, COUNT(*) AS n FROM customer JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey GROUP BY r_name

-- customers by region with commas
--! answered
SELECT r_name, COUNT(*) AS n FROM customer, nation, region WHERE c_nationkey = n_nationkey AND n_regionkey = r_regionkey GROUP BY r_name

-- balances
--! answered
SELECT AVG(c_acctbal) AS mean, SUM(c_acctbal) AS total FROM customer

-- balances by segment
--! answered
SELECT c_mktsegment, AVG(c_acctbal) AS mean, COUNT(*) FILTER (WHERE c_acctbal < 0) AS in_debt FROM customer GROUP BY 1

-- median balance
--! answered
SELECT MEDIAN(c_acctbal) AS m FROM customer

-- country codes
--! answered
SELECT SUBSTRING(c_phone FROM 1 FOR 2) AS code, COUNT(*) AS n FROM customer WHERE SUBSTRING(c_phone FROM 1 FOR 2) IN ('13', '31', '23') GROUP BY code

-- customers in debt by IN
--! answered
SELECT COUNT(*) AS n FROM customer WHERE c_nationkey IN (SELECT n_nationkey FROM nation WHERE n_regionkey = 3) AND c_acctbal < 0

-- orders
--! answered
SELECT COUNT(*) AS n, AVG(o_totalprice) AS price FROM orders

-- orders by status
--! answered
SELECT o_orderstatus, COUNT(*) AS n, SUM(o_totalprice) AS price FROM orders GROUP BY o_orderstatus

-- orders by year
--! answered
SELECT EXTRACT(YEAR FROM o_orderdate) AS y, COUNT(*) AS n FROM orders GROUP BY 1 ORDER BY 1

-- orders by month of a year
--! answered
SELECT DATE_TRUNC('month', o_orderdate) AS m, SUM(o_totalprice) AS price FROM orders WHERE o_orderdate >= DATE '1996-01-01' AND o_orderdate < DATE '1997-01-01' GROUP BY 1 ORDER BY 1

-- orders by priority and status
--! answered
SELECT o_orderpriority, o_orderstatus, COUNT(*) AS n FROM orders GROUP BY 1, 2

-- customers who ordered
--! answered
SELECT COUNT(DISTINCT o_custkey) AS n FROM orders

-- clerks
--! answered; loose 0.2
SELECT COUNT(DISTINCT o_clerk) AS n FROM orders

-- dear orders
--! answered
SELECT COUNT(*) AS n FROM orders WHERE o_totalprice > 300000

-- comments
--! answered
SELECT COUNT(*) AS n FROM orders WHERE o_comment LIKE '%special%requests%'

-- orders of a segment
--! answered
SELECT c_mktsegment, COUNT(*) AS n, AVG(o_totalprice) AS price FROM customer JOIN orders ON c_custkey = o_custkey GROUP BY c_mktsegment

-- orders of a segment with commas
--! answered
SELECT c.c_mktsegment, SUM(o.o_totalprice) AS price FROM customer c, orders o WHERE c.c_custkey = o.o_custkey AND o.o_orderstatus = 'F' GROUP BY c.c_mktsegment

-- orders of a nation
--! answered
SELECT n_name, SUM(o_totalprice) AS price FROM orders JOIN customer ON o_custkey = c_custkey JOIN nation ON c_nationkey = n_nationkey GROUP BY n_name

-- customers without an order
--! answered
SELECT COUNT(*) AS n FROM customer WHERE NOT EXISTS (SELECT 1 FROM orders WHERE o_custkey = c_custkey)

-- customers without an order by NOT IN
--! answered
SELECT COUNT(*) AS n FROM customer WHERE c_custkey NOT IN (SELECT o_custkey FROM orders)

-- customers without an order by LEFT JOIN
--! answered
SELECT COUNT(*) AS n FROM customer LEFT JOIN orders ON c_custkey = o_custkey WHERE o_orderstatus IS NULL

-- customers without an order by LEFT JOIN and key
--! answered
SELECT c_mktsegment, COUNT(*) AS n FROM customer LEFT JOIN orders ON c_custkey = o_custkey WHERE o_orderkey IS NULL GROUP BY c_mktsegment

-- orders of a customer
--! answered
SELECT AVG(LEAST(n, 40)) AS mean FROM (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey) AS t

-- customers by number of orders
--! answered
SELECT LEAST(n, 30) // 10 AS tens, COUNT(*) AS customers FROM (SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey) AS t GROUP BY 1

-- customers of many orders
--! answered
SELECT c_mktsegment, COUNT(*) AS n FROM customer WHERE c_custkey IN (SELECT o_custkey FROM orders GROUP BY o_custkey HAVING COUNT(*) > 15) GROUP BY c_mktsegment

-- largest order of a customer
--! answered
SELECT AVG(top) AS mean FROM (SELECT o_custkey, MAX(o_totalprice) AS top FROM orders GROUP BY o_custkey) AS t

-- second order within 90 days
--! answered
SELECT COUNT(DISTINCT o_custkey) AS customers FROM (SELECT o_custkey, o_orderdate, LAG(o_orderdate) OVER (PARTITION BY o_custkey ORDER BY o_orderdate, o_orderkey) AS before FROM orders) AS t WHERE DATE_DIFF('day', before, o_orderdate) <= 90

-- first order by year
--! answered
SELECT YEAR(first) AS y, COUNT(*) AS customers FROM (SELECT o_custkey, MIN(o_orderdate) AS first FROM orders GROUP BY o_custkey) AS t WHERE first < DATE '1994-01-01' GROUP BY 1

-- first order by priority
--! answered
SELECT o_orderpriority, COUNT(*) AS customers FROM (SELECT o_custkey, o_orderpriority, ROW_NUMBER() OVER (PARTITION BY o_custkey ORDER BY o_orderdate, o_orderkey) AS i FROM orders) AS t WHERE i = 1 GROUP BY 1

-- orders dearer than one's average
--! answered
SELECT COUNT(*) AS n FROM orders o WHERE o_totalprice > (SELECT AVG(i.o_totalprice) FROM orders i WHERE i.o_custkey = o.o_custkey)

-- orders dearer than the average
--! answered
SELECT COUNT(*) AS n FROM orders WHERE o_totalprice > (SELECT 1000 * ROUND(AVG(o_totalprice) / 1000) FROM orders)

-- orders of a day by other customers
--! refused HB513
SELECT COUNT(*) AS n FROM orders a JOIN orders b ON a.o_orderdate = b.o_orderdate AND a.o_clerk = b.o_clerk

-- a customer's orders
--! refused HB516
SELECT COUNT(*) AS n FROM orders WHERE o_custkey = 370

-- an order
--! answered
SELECT COUNT(*) AS n FROM orders WHERE o_orderkey = 32

-- names of customers
--! refused HB510
SELECT c_name FROM customer WHERE c_acctbal > 9000

-- customers by key
--! refused HB510
SELECT o_custkey, COUNT(*) AS n FROM orders GROUP BY o_custkey

-- share of segments
--! answered
SELECT c_mktsegment, COUNT(*) * 1.0 / SUM(COUNT(*)) OVER () AS share FROM customer GROUP BY c_mktsegment

-- growth of orders
--! answered; noisy more
SELECT y, n - LAG(n) OVER (ORDER BY y) AS more FROM (SELECT YEAR(o_orderdate) AS y, COUNT(*) AS n FROM orders GROUP BY 1) AS t

-- regions by rank
--! answered; noisy place
SELECT r_name, RANK() OVER (ORDER BY SUM(c_acctbal) DESC) AS place FROM customer JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey GROUP BY r_name

-- nations above the average
--! answered
SELECT n_name FROM (SELECT n_name, COUNT(*) AS n FROM customer JOIN nation ON c_nationkey = n_nationkey GROUP BY n_name) AS t WHERE n > 75 ORDER BY n_name

-- rollup of region and nation
--! answered
SELECT r_name, n_name, COUNT(*) AS n FROM customer JOIN nation ON c_nationkey = n_nationkey JOIN region ON n_regionkey = r_regionkey WHERE r_name = 'ASIA' GROUP BY ROLLUP (r_name, n_name)

-- dear orders of all customers
--! answered
SELECT COUNT(*) AS n, COUNT(o_orderkey) AS dear FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_totalprice > 300000

-- orders of all customers from the right
--! answered
SELECT c_mktsegment, COUNT(*) AS n, COUNT(o_orderstatus) AS orders FROM orders RIGHT JOIN customer ON c_custkey = o_custkey AND o_orderdate < DATE '1993-01-01' AND o_orderpriority LIKE '1%' GROUP BY c_mktsegment

-- priority of early orders of all customers
--! answered
SELECT COALESCE(o_orderpriority, 'none') AS p, COUNT(*) AS n FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_orderdate < DATE '1992-06-01' GROUP BY p

-- orders above one's balance by an outer join
--! answered
SELECT COUNT(*) AS n FROM customer LEFT JOIN orders ON c_custkey = o_custkey AND o_totalprice > c_acctbal
