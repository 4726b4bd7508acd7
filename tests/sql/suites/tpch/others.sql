-- recency frequency
--! answered
SELECT r, f, COUNT(*) AS n FROM (SELECT o_custkey, CASE WHEN MAX(o_orderdate) >= DATE '1998-01-01' THEN 'recent' ELSE 'lapsed' END AS r, CASE WHEN COUNT(*) > 10 THEN 'often' ELSE 'seldom' END AS f FROM orders GROUP BY o_custkey) AS t GROUP BY r, f

-- first and last order status
--! answered
SELECT first, last, COUNT(*) AS n FROM (SELECT o_custkey, ARG_MIN(o_orderstatus, o_orderkey) AS first, ARG_MAX(o_orderstatus, o_orderkey) AS last FROM orders GROUP BY o_custkey) AS t GROUP BY first, last

-- lines per order average
--! answered
SELECT AVG(k) AS a FROM (SELECT l_orderkey, COUNT(*) AS k FROM lineitem GROUP BY l_orderkey) AS t

-- lines per order by priority
--! answered
SELECT o_orderpriority, AVG(k) AS a FROM orders JOIN (SELECT l_orderkey, COUNT(*) AS k FROM lineitem GROUP BY l_orderkey) AS t ON t.l_orderkey = o_orderkey GROUP BY o_orderpriority

-- late orders share
--! answered; loose 0.2
SELECT o_orderpriority, AVG(CASE WHEN late > 0 THEN 1.0 ELSE 0.0 END) AS share FROM (SELECT o_orderkey, o_orderpriority, SUM(CASE WHEN l_receiptdate > l_commitdate THEN 1 ELSE 0 END) AS late FROM orders JOIN lineitem ON l_orderkey = o_orderkey GROUP BY o_orderkey, o_orderpriority) AS t GROUP BY o_orderpriority

-- customers joined to themselves by nation is across people
--! refused HB513
SELECT COUNT(*) AS n FROM customer AS a JOIN customer AS b ON a.c_nationkey = b.c_nationkey AND a.c_custkey < b.c_custkey

-- top nations in IN
--! answered; noisy n; near 0.05
SELECT COUNT(*) AS n FROM orders JOIN customer ON o_custkey = c_custkey WHERE c_nationkey IN (SELECT c_nationkey FROM customer GROUP BY c_nationkey HAVING COUNT(*) > 60)

-- exists grouped over everybody
--! answered; noisy n; near 0.05
SELECT COUNT(*) AS n FROM customer AS c WHERE EXISTS (SELECT 1 FROM customer AS d WHERE d.c_mktsegment = c.c_mktsegment GROUP BY d.c_mktsegment HAVING COUNT(*) > 290)

-- join with CTE of everybody by segment
--! answered; noisy n; near 0.05
WITH seg AS (SELECT c_mktsegment, AVG(c_acctbal) AS a FROM customer GROUP BY c_mktsegment) SELECT seg.c_mktsegment, COUNT(*) AS n FROM customer JOIN seg ON seg.c_mktsegment = customer.c_mktsegment WHERE c_acctbal > seg.a GROUP BY seg.c_mktsegment

-- orders over average in cte cross join
--! answered; noisy n; near 0.05
WITH a AS (SELECT AVG(o_totalprice) AS m FROM orders) SELECT COUNT(*) AS n FROM orders, a WHERE o_totalprice > a.m

-- same with cross join
--! answered; noisy n; near 0.05; without postgres HB574
SELECT COUNT(*) AS n FROM orders CROSS JOIN (SELECT AVG(o_totalprice) AS m, STDDEV(o_totalprice) AS s FROM orders) AS a WHERE o_totalprice > a.m + 2 * a.s

-- tsql year month
--! answered; dialect tsql
SELECT YEAR(o_orderdate) AS y, MONTH(o_orderdate) AS m, COUNT_BIG(*) AS n FROM orders WHERE o_orderdate < '1993-01-01' GROUP BY YEAR(o_orderdate), MONTH(o_orderdate) ORDER BY y, m
-- exact
SELECT YEAR(o_orderdate) AS y, MONTH(o_orderdate) AS m, COUNT(*) AS n FROM orders WHERE o_orderdate < '1993-01-01' GROUP BY 1, 2 ORDER BY y, m

-- snowflake width_bucket, median
--! answered; dialect snowflake; loose 0.5
SELECT MEDIAN(o_totalprice) AS m, APPROX_COUNT_DISTINCT(o_custkey) AS c FROM orders
-- exact
SELECT quantile_disc(o_totalprice, 0.5), COUNT(DISTINCT o_custkey) FROM orders

-- snowflake variant colon cast
--! answered; dialect snowflake
SELECT TO_VARCHAR(o_orderdate, 'YYYY') AS y, COUNT(*) AS n FROM orders GROUP BY y
-- exact
SELECT STRFTIME(o_orderdate, '%Y') AS y, COUNT(*) AS n FROM orders GROUP BY y

-- bigquery window with qualify
--! answered; dialect bigquery
SELECT o_orderpriority, COUNT(*) AS n FROM (SELECT o_custkey, o_orderpriority FROM orders WHERE TRUE QUALIFY ROW_NUMBER() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC) = 1) GROUP BY o_orderpriority

-- bigquery differential privacy clause
--! refused HB501; dialect bigquery
SELECT WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon = 1, delta = 1e-5, privacy_unit_column = o_custkey) o_orderstatus, COUNT(*) AS n FROM orders GROUP BY o_orderstatus

-- postgres filter and date interval text
--! answered; dialect postgres
SELECT count(*) FILTER (WHERE o_orderdate < date '1995-01-01' + interval '6 months')::float / count(*) AS share FROM orders
-- exact
SELECT COUNT(*) FILTER (WHERE o_orderdate < DATE '1995-07-01') / COUNT(*) AS share FROM orders

-- postgres array any
--! answered; dialect postgres
SELECT count(*) AS n FROM orders WHERE o_orderstatus = ANY (ARRAY['F', 'O'])
-- exact
SELECT COUNT(*) AS n FROM orders WHERE o_orderstatus IN ('F', 'O')

-- postgres date_part and position cast
--! answered; dialect postgres
SELECT date_part('year', o_orderdate)::int AS y, count(*)::bigint AS n FROM orders GROUP BY 1
-- exact
SELECT YEAR(o_orderdate) AS y, COUNT(*) AS n FROM orders GROUP BY 1

-- postgres regex operator
--! answered; dialect postgres
SELECT count(*) AS n FROM customer WHERE c_phone ~ '^1[0-5]'
-- exact
SELECT COUNT(*) AS n FROM customer WHERE regexp_matches(c_phone, '^1[0-5]')

-- postgres distinct on
--! answered; dialect postgres
SELECT o_orderstatus, count(*) AS n FROM (SELECT DISTINCT ON (o_custkey) o_custkey, o_orderstatus FROM orders ORDER BY o_custkey, o_orderdate DESC, o_orderkey) t GROUP BY 1

-- boolean aggregation per order
--! answered
SELECT COUNT(*) AS n FROM (SELECT l_orderkey, BOOL_AND(l_receiptdate <= l_commitdate) AS ontime FROM lineitem GROUP BY l_orderkey) AS t WHERE ontime

-- correlated sum compare
--! answered
SELECT COUNT(*) AS n FROM orders AS o WHERE (SELECT SUM(l_quantity) FROM lineitem AS l WHERE l.l_orderkey = o.o_orderkey) > 150

-- top value orders per customer
--! answered
SELECT SUM(o_totalprice) AS s FROM (SELECT o_custkey, o_totalprice, ROW_NUMBER() OVER (PARTITION BY o_custkey ORDER BY o_totalprice DESC) AS i FROM orders) AS t WHERE i <= 3

-- public only with window
--! answered
SELECT p_brand, p_partkey, p_retailprice FROM (SELECT p_brand, p_partkey, p_retailprice, ROW_NUMBER() OVER (PARTITION BY p_brand ORDER BY p_retailprice DESC, p_partkey) AS i FROM part) AS t WHERE i = 1 ORDER BY p_brand
