-- lines
--! answered
SELECT COUNT(*) AS n, SUM(l_quantity) AS q FROM lineitem

-- lines by mode
--! answered
SELECT l_shipmode, COUNT(*) AS n, AVG(l_quantity) AS q FROM lineitem GROUP BY l_shipmode

-- lines by flag and year
--! answered
SELECT l_returnflag, EXTRACT(YEAR FROM l_shipdate) AS y, COUNT(*) AS n FROM lineitem GROUP BY 1, 2

-- late lines
--! answered
SELECT l_shipmode, COUNT(*) AS n FROM lineitem WHERE l_receiptdate > l_commitdate GROUP BY l_shipmode

-- days on the way
--! answered
SELECT AVG(LEAST(l_receiptdate - l_shipdate, 60)) AS days FROM lineitem

-- days late by mode
--! answered
SELECT l_shipmode, AVG(GREATEST(0, LEAST(DATE_DIFF('day', l_commitdate, l_receiptdate), 120))) AS days FROM lineitem GROUP BY 1

-- revenue
--! answered
SELECT SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem

-- revenue by year
--! answered
SELECT YEAR(l_shipdate) AS y, SUM(l_extendedprice * (1 - l_discount) * (1 + l_tax)) AS charge FROM lineitem GROUP BY y ORDER BY y

-- average discount
--! answered
SELECT AVG(l_discount) AS d, AVG(l_tax) AS t FROM lineitem

-- lines by quantity
--! answered
SELECT WIDTH_BUCKET(l_quantity, 0, 50, 5) AS bin, COUNT(*) AS n FROM lineitem GROUP BY bin
-- exact
SELECT CASE WHEN l_quantity >= 50 THEN 6 ELSE FLOOR(l_quantity / 10) + 1 END AS bin, COUNT(*) AS n FROM lineitem GROUP BY bin

-- lines of a brand
--! answered
SELECT p_brand, COUNT(*) AS n, SUM(l_quantity) AS q FROM lineitem JOIN part ON l_partkey = p_partkey GROUP BY p_brand

-- lines of a maker
--! answered
SELECT p_mfgr, SUM(l_extendedprice) AS price FROM lineitem, part WHERE p_partkey = l_partkey AND p_size < 10 GROUP BY p_mfgr

-- lines of a supplier's nation
--! answered
SELECT n_name, COUNT(*) AS n FROM lineitem JOIN supplier ON l_suppkey = s_suppkey JOIN nation ON s_nationkey = n_nationkey GROUP BY n_name

-- cost and price
--! answered
SELECT SUM(l_extendedprice - ps_supplycost * l_quantity) AS profit FROM lineitem JOIN partsupp ON l_partkey = ps_partkey AND l_suppkey = ps_suppkey

-- lines and orders
--! answered
SELECT o_orderpriority, COUNT(*) AS n FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY o_orderpriority

-- lines and orders with commas
--! answered
SELECT o_orderstatus, SUM(l_quantity) AS q FROM lineitem, orders WHERE l_orderkey = o_orderkey GROUP BY o_orderstatus

-- lines, orders and customers
--! answered
SELECT c_mktsegment, COUNT(*) AS n, SUM(l_extendedprice) AS price FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON o_orderkey = l_orderkey GROUP BY c_mktsegment

-- all tables
--! answered; loose 0.3
SELECT cr.r_name, COUNT(*) AS n FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey JOIN part ON p_partkey = l_partkey JOIN supplier ON s_suppkey = l_suppkey JOIN nation cn ON c_nationkey = cn.n_nationkey JOIN region cr ON cn.n_regionkey = cr.r_regionkey WHERE p_brand = 'Brand#11' AND s_nationkey <> c_nationkey GROUP BY cr.r_name

-- lines of an order
--! answered
SELECT n, COUNT(*) AS orders FROM (SELECT l_orderkey, COUNT(*) AS n FROM lineitem GROUP BY l_orderkey) AS t WHERE n <= 7 GROUP BY n

-- orders without a late line
--! answered
SELECT COUNT(*) AS n FROM orders WHERE NOT EXISTS (SELECT 1 FROM lineitem WHERE l_orderkey = o_orderkey AND l_receiptdate > l_commitdate)

-- orders with lines by two suppliers
--! answered
SELECT COUNT(*) AS n FROM orders o WHERE EXISTS (SELECT 1 FROM lineitem a WHERE a.l_orderkey = o.o_orderkey AND EXISTS (SELECT 1 FROM lineitem b WHERE b.l_orderkey = a.l_orderkey AND b.l_suppkey <> a.l_suppkey))

-- orders in a list of lines
--! answered
SELECT o_orderpriority, COUNT(*) AS n FROM orders WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem WHERE l_quantity > 45) GROUP BY o_orderpriority

-- orders of a total quantity
--! answered
SELECT COUNT(*) AS n FROM orders WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY l_orderkey HAVING SUM(l_quantity) > 200)

-- lines of a customer
--! answered
SELECT AVG(LEAST(n, 150)) AS mean FROM (SELECT o_custkey, COUNT(*) AS n FROM orders JOIN lineitem ON o_orderkey = l_orderkey GROUP BY o_custkey) AS t

-- customers who returned something
--! answered
SELECT c_mktsegment, COUNT(*) AS n FROM customer WHERE EXISTS (SELECT 1 FROM orders JOIN lineitem ON l_orderkey = o_orderkey WHERE o_custkey = c_custkey AND l_returnflag = 'R') GROUP BY c_mktsegment

-- returned share by segment
--! answered
SELECT c_mktsegment, AVG(CASE WHEN l_returnflag = 'R' THEN 1.0 ELSE 0.0 END) AS share FROM customer JOIN orders ON c_custkey = o_custkey JOIN lineitem ON l_orderkey = o_orderkey GROUP BY 1

-- suppliers in a public list
--! answered
SELECT COUNT(*) AS n FROM lineitem WHERE l_suppkey IN (SELECT s_suppkey FROM supplier WHERE s_acctbal < 0)

-- parts in a public list
--! answered
SELECT SUM(l_quantity) AS q FROM lineitem WHERE l_partkey IN (SELECT p_partkey FROM part WHERE p_name LIKE '%green%')

-- lines against a public summary
--! answered
SELECT COUNT(*) AS n FROM lineitem JOIN (SELECT ps_partkey, MIN(ps_supplycost) AS least FROM partsupp GROUP BY ps_partkey) AS c ON l_partkey = c.ps_partkey WHERE l_extendedprice > 20 * c.least * l_quantity

-- revenue by supplier
--! answered; loose 0.3
SELECT s_name, SUM(l_extendedprice * (1 - l_discount)) AS revenue FROM lineitem JOIN supplier ON l_suppkey = s_suppkey GROUP BY s_name ORDER BY s_name LIMIT 5

-- lines matched by part
--! refused HB513
SELECT COUNT(*) AS n FROM lineitem a JOIN lineitem b ON a.l_partkey = b.l_partkey

-- lines of an order by another key
--! refused HB513
SELECT COUNT(*) AS n FROM lineitem JOIN orders ON l_linenumber = o_shippriority

-- lines of a larger order
--! answered
SELECT COUNT(*) AS n FROM lineitem l WHERE l_quantity > (SELECT AVG(i.l_quantity) FROM lineitem i WHERE i.l_orderkey = l.l_orderkey)

-- first line of an order
--! answered
SELECT AVG(l_quantity) AS q FROM (SELECT l_orderkey, l_quantity, ROW_NUMBER() OVER (PARTITION BY l_orderkey ORDER BY l_linenumber) AS i FROM lineitem) AS t WHERE i = 1

-- parts by size, public
--! answered
SELECT p_size, COUNT(*) AS n, AVG(p_retailprice) AS price FROM part GROUP BY p_size ORDER BY p_size

-- dearest parts, public
--! answered
SELECT p_partkey, p_name, p_retailprice FROM part ORDER BY p_retailprice DESC, p_partkey LIMIT 5

-- suppliers by nation, public
--! answered
SELECT n_name, COUNT(s_suppkey) AS n FROM nation LEFT JOIN supplier ON s_nationkey = n_nationkey GROUP BY n_name ORDER BY n DESC, n_name

-- cheapest supplier of each part, public
--! answered
SELECT ps_partkey, ps_suppkey FROM (SELECT ps_partkey, ps_suppkey, ROW_NUMBER() OVER (PARTITION BY ps_partkey ORDER BY ps_supplycost, ps_suppkey) AS i FROM partsupp) AS t WHERE i = 1 AND ps_partkey <= 5 ORDER BY ps_partkey

-- parts of every supplier, public
--! answered
SELECT s_name, SUM(ps_availqty) AS stock FROM supplier, partsupp WHERE s_suppkey = ps_suppkey GROUP BY s_name HAVING SUM(ps_availqty) > 400000 ORDER BY stock DESC

-- nations and regions, public
--! answered
SELECT r_name, STRING_AGG(n_name, ', ' ORDER BY n_name) AS nations FROM nation JOIN region ON n_regionkey = r_regionkey GROUP BY r_name ORDER BY r_name

-- suppliers without a part, public
--! answered
SELECT COUNT(*) AS n FROM supplier WHERE NOT EXISTS (SELECT 1 FROM partsupp WHERE ps_suppkey = s_suppkey)

-- union of public names
--! answered
SELECT r_name AS name FROM region UNION ALL SELECT n_name FROM nation WHERE n_regionkey = 0 ORDER BY name

-- small lines of one brand, beside the noisy average of their part
--! answered
SELECT SUM(l_extendedprice) / 7.0 AS avg_yearly FROM lineitem, part WHERE p_partkey = l_partkey AND p_brand = 'Brand#23' AND l_quantity < (SELECT 0.2 * AVG(l_quantity) FROM lineitem WHERE l_partkey = p_partkey)

-- lines above the average of their ship mode
--! answered
SELECT l_returnflag, COUNT(*) AS n FROM lineitem o WHERE l_quantity > (SELECT AVG(l_quantity) FROM lineitem i WHERE i.l_shipmode = o.l_shipmode) GROUP BY l_returnflag

-- lines of suppliers with many lines
--! answered
SELECT COUNT(*) AS n FROM lineitem, supplier WHERE l_suppkey = s_suppkey AND 600 < (SELECT COUNT(*) FROM lineitem i WHERE i.l_suppkey = supplier.s_suppkey)

-- suppliers in a nation with little business
--! answered
SELECT s_suppkey FROM supplier WHERE s_nationkey < 5 AND 15200 > (SELECT SUM(l_quantity) FROM lineitem WHERE l_suppkey = s_suppkey) ORDER BY s_suppkey

-- lines above the average of their order's part, whose keys nobody declared
--! refused HB740
SELECT COUNT(*) AS n FROM lineitem o WHERE l_quantity > (SELECT AVG(l_quantity) FROM lineitem i WHERE i.l_partkey = o.l_partkey)
