"""Hostile SQL: expressions that make databases fail, wrap or overflow, contexts for them, and whole statements."""

#: Over the columns patient, x, free, i, k, word, key, day, moment and flag; one a line.
EXPRESSIONS = r"""
1 / x
1 / (i - 7)
i / 0
x / (x - x)
i % (i - 7)
i // (i - 7)
mod(i, i - 1000)
ln(x)
log(x, 0)
log10(free)
sqrt(x)
sqrt(free)
exp(free)
exp(x * 1000)
power(x, 1000)
power(free, free)
power(0, x)
x * 1e308 * 10
i * 9223372036854775807
k * k
k + k
-k
abs(k)
abs(i - 9223372036854775807)
factorial(i)
i << 62
i & k
k | i
asin(x)
acos(free)
tan(free)
gamma(x)
cot(x)
round(free, 400)
round(x, i)
trunc(free)
floor(free)
ceil(free)
sign(free)
greatest(free, x)
least(x, NULL)
nullif(x, free)
coalesce(free, 1 / x)
isnan(free)
isinf(x)
nextafter(x, free)
CAST(word AS INTEGER)
CAST(word AS DOUBLE)
CAST(word AS DATE)
CAST(word AS TIMESTAMP)
CAST(word AS BOOLEAN)
TRY_CAST(word AS INTEGER)
TRY_CAST(word AS DATE)
word::BIGINT
free::INTEGER
CAST(x AS SMALLINT)
CAST(k AS INTEGER)
CAST(free AS DECIMAL(4, 2))
CAST(flag AS INTEGER)
CAST(day AS TEXT)
CAST(word AS UUID)
CAST(word AS JSON)
CAST(word AS INTEGER[])
error(word)
error('stop')
CASE WHEN key = 'CANARY7431' THEN error(word) ELSE 1 END
CASE WHEN x > 99 THEN 1 / (x - x) ELSE x END
CASE WHEN k > 1 THEN CAST(word AS INTEGER) ELSE 0 END
length(word)
upper(word)
substring(word, i, k)
substring(word, -9223372036854775808, 1)
left(word, k)
right(word, i)
repeat(word, 1000000000)
repeat(word, k)
lpad(word, 2000000000, 'x')
word || word || word
replace(word, '', 'x')
regexp_matches(word, '(a+)+$')
regexp_matches(word, word)
regexp_extract(word, '(')
word LIKE word
word LIKE '%C%N%R%'
word ~ '['
word SIMILAR TO '('
position(word IN key)
chr(i)
chr(k)
ascii(word)
unicode(word)
to_base64(word)
from_hex(word)
unhex(word)
md5(word)
hash(word)
string_split(word, '')
list_extract([1, 2], i)
word[k]
{'a': word}.a
json_extract(word, '$.a')
word::JSON->>'a'
day + INTERVAL 1000000 YEAR
day - INTERVAL 9000 YEAR
moment + INTERVAL 300000 YEAR
day + i
day + k
date_add(day, INTERVAL 1 DAY)
date_diff('day', day, DATE '1970-01-01')
date_diff('microsecond', moment, TIMESTAMP '1970-01-01')
date_sub('month', day, DATE '2020-01-01')
date_trunc('month', day)
date_trunc('century', moment)
date_trunc(word, day)
extract(year FROM day)
extract(epoch FROM moment)
extract(month FROM day)
extract(isodow FROM moment)
year(moment)
last_day(day)
strftime(day, word)
strftime(moment, '%Q')
strptime(word, '%Y')
make_date(i, i, i)
make_timestamp(k)
to_timestamp(free)
epoch_ms(k)
age(moment)
moment AT TIME ZONE word
dayname(day)
day < '2020-13-45'
word < 5
x = word
flag = word
flag + 1
NOT word
x AND flag
(SELECT x FROM t)
(SELECT 1 / 0)
x IN (SELECT free FROM t)
EXISTS (SELECT 1 FROM t b WHERE b.x > x)
row_number() OVER ()
lag(word) OVER (ORDER BY x)
random()
nextval('s')
getenv('HOME')
current_setting('threads')
read_text('/etc/passwd')
getvariable('x')
pg_sleep(1)
version()
current_user
txid_current()
nosuchcolumn
t.nosuchcolumn
patient
hash(patient)
enum_first(NULL)
add(k, k)
multiply(k, k)
subtract(k, i)
bit_count(k)
width_bucket(x, 0, 0, 0)
x BETWEEN free AND ln(x)
x IS DISTINCT FROM free
$1
$2 / x
?
""".strip().splitlines()

CONTEXTS = """
SELECT COUNT(*) AS n FROM {t} WHERE ({e}) IS NOT NULL
SELECT COUNT(*) AS n FROM {t} WHERE {e}
SELECT COUNT(*) FILTER (WHERE ({e}) > 0) AS n FROM {t}
SELECT SUM(LEAST(GREATEST({e}, -5), 5)) AS s, COUNT(*) AS n FROM {t}
SELECT AVG({e}) AS a FROM {t}
SELECT key, COUNT({e}) AS n FROM {t} GROUP BY key
SELECT ({e}) > 1 AS g, COUNT(*) AS n FROM {t} GROUP BY 1
SELECT COUNT(DISTINCT {e}) AS d FROM {t}
SELECT MAX(LEAST(GREATEST({e}, 0), 9)) AS m FROM {t}
SELECT COUNT(*) AS n FROM (SELECT patient, MAX({e}) AS v FROM {t} GROUP BY patient) q WHERE v > 0
SELECT COUNT(*) / ({e}) AS n FROM {t}
SELECT key, COUNT(*) AS n FROM {t} GROUP BY key HAVING COUNT(*) > ({e}) ORDER BY {e}
SELECT COUNT(*) AS n FROM {t} a JOIN {t} b ON a.patient = b.patient AND ({e}) = 1
WITH q AS (SELECT patient, {e} AS v FROM {t}) SELECT COUNT(v) AS n FROM q
SELECT COUNT(*) AS n FROM {t} LIMIT ({e})
SELECT {e} FROM {t}
""".strip().splitlines()

WHOLE = """
SELECT * FROM read_csv('/etc/passwd')
COPY t TO 'x.csv'
PRAGMA database_list
SELECT error(word) FROM t
SELECT COUNT(*) FROM t; SELECT 1
ATTACH 'x' AS y
CREATE TABLE u AS SELECT * FROM t
DROP TABLE t
SELECT COUNT(*) FROM t WHERE patient = 8123456789012345
SELECT word, COUNT(*) FROM t GROUP BY word
SELECT k, SUM(x) FROM t GROUP BY k
SELECT day, COUNT(*) FROM t GROUP BY day
SELECT free, COUNT(*) FROM t GROUP BY free
SELECT COUNT(*) FROM t UNION ALL SELECT error(word) FROM t
EXPLAIN ANALYZE SELECT COUNT(*) FROM t
SELECT
'
/*
--
SELECT COUNT(*) FROM information_schema.tables
SELECT COUNT(*) FROM duckdb_settings()
SELECT COUNT(*) FROM t, t b
WITH RECURSIVE r AS (SELECT 1 UNION ALL SELECT * FROM r) SELECT COUNT(*) FROM r
SELECT COUNT(*) FROM t ORDER BY (SELECT MAX(word) FROM t)
SELECT MEDIAN(k) FROM t
SELECT MODE(word) FROM t
SELECT MIN(word), MAX(day) FROM t
SELECT STRING_AGG(word, ',') FROM t
SELECT LIST(word) FROM t
SELECT FIRST(word) FROM t
""".strip().splitlines()
