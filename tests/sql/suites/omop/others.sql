-- cohort with index date and 90 day follow up
--! answered
WITH idx AS (SELECT person_id, MIN(condition_start_date) AS d FROM condition_occurrence WHERE condition_concept_id = 201826 GROUP BY person_id) SELECT COUNT(DISTINCT i.person_id) AS n FROM idx AS i JOIN drug_exposure AS x ON x.person_id = i.person_id AND x.drug_exposure_start_date BETWEEN i.d AND i.d + INTERVAL 90 DAY

-- age at first diagnosis in bands
--! answered
SELECT FLOOR((YEAR(f) - year_of_birth) / 20) AS band, COUNT(*) AS n FROM (SELECT c.person_id, p.year_of_birth, MIN(c.condition_start_date) AS f FROM condition_occurrence AS c JOIN person AS p ON p.person_id = c.person_id GROUP BY c.person_id, p.year_of_birth) AS t GROUP BY band

-- readmission within 30 days by LEAD
--! answered
SELECT COUNT(*) AS n FROM (SELECT person_id, visit_end_date, LEAD(visit_start_date) OVER (PARTITION BY person_id ORDER BY visit_start_date, visit_occurrence_id) AS nxt FROM visit_occurrence WHERE visit_concept_id = 9201) AS t WHERE DATE_DIFF('day', visit_end_date, nxt) BETWEEN 0 AND 30

-- max per person bucket
--! answered
SELECT WIDTH_BUCKET(m, 80, 200, 6) AS b, COUNT(*) AS n FROM (SELECT person_id, MAX(value_as_number) AS m FROM measurement WHERE measurement_concept_id = 3004249 GROUP BY person_id) AS t WHERE m IS NOT NULL GROUP BY b
-- exact
SELECT CASE WHEN m < 80 THEN 0 WHEN m >= 200 THEN 7 ELSE FLOOR((m - 80) / 20) + 1 END AS b, COUNT(*) AS n FROM (SELECT person_id, MAX(value_as_number) AS m FROM measurement WHERE measurement_concept_id = 3004249 GROUP BY person_id) AS t WHERE m IS NOT NULL GROUP BY b

-- tsql dateadd
--! answered; dialect tsql
SELECT COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date >= DATEADD(month, -6, '2021-07-01')
-- exact
SELECT COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date >= DATE '2021-01-01'

-- snowflake datediff and date_trunc
--! answered; dialect snowflake
SELECT DATE_TRUNC('quarter', visit_start_date) AS q, COUNT(*) AS n FROM visit_occurrence GROUP BY q
-- exact
SELECT DATE_TRUNC('quarter', visit_start_date) AS q, COUNT(*) AS n FROM visit_occurrence GROUP BY q

-- bigquery date functions
--! answered; dialect bigquery
SELECT EXTRACT(YEAR FROM visit_start_date) AS y, COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date < DATE_ADD(DATE '2020-01-01', INTERVAL 3 MONTH) AND DATE_DIFF(visit_end_date, visit_start_date, DAY) < 5 GROUP BY y
-- exact
SELECT EXTRACT(YEAR FROM visit_start_date) AS y, COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date < DATE '2020-04-01' AND DATE_DIFF('day', visit_start_date, visit_end_date) < 5 GROUP BY y

-- bigquery parse_date and date_trunc
--! answered; dialect bigquery
SELECT DATE_TRUNC(visit_start_date, MONTH) AS m, COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date >= PARSE_DATE('%Y%m%d', '20210101') GROUP BY m
-- exact
SELECT DATE_TRUNC('month', visit_start_date) AS m, COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date >= DATE '2021-01-01' GROUP BY m

-- spark date functions
--! answered; dialect spark
SELECT datediff(visit_end_date, visit_start_date) AS d, count(1) AS n FROM visit_occurrence WHERE visit_start_date > date_sub(to_date('2021-01-31'), 30) GROUP BY 1
-- exact
SELECT DATE_DIFF('day', visit_start_date, visit_end_date) AS d, COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date > DATE '2021-01-01' GROUP BY 1

-- spark add_months months_between
--! answered; dialect spark
SELECT count(*) AS n FROM visit_occurrence WHERE visit_start_date < add_months(DATE '2018-01-31', 1)
-- exact
SELECT COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date < DATE '2018-02-28'

-- postgres to_char month
--! answered; dialect postgres
SELECT TO_CHAR(visit_start_date, 'YYYY-MM') AS m, COUNT(*) AS n FROM visit_occurrence GROUP BY 1 ORDER BY 1
-- exact
SELECT STRFTIME(visit_start_date, '%Y-%m') AS m, COUNT(*) AS n FROM visit_occurrence GROUP BY 1 ORDER BY 1

-- strftime
--! answered
SELECT STRFTIME(visit_start_date, '%Y-%m') AS m, COUNT(*) AS n FROM visit_occurrence GROUP BY 1 ORDER BY 1

-- bigquery format_date
--! answered; dialect bigquery
SELECT FORMAT_DATE('%Y', visit_start_date) AS y, COUNT(*) AS n FROM visit_occurrence GROUP BY y
-- exact
SELECT STRFTIME(visit_start_date, '%Y') AS y, COUNT(*) AS n FROM visit_occurrence GROUP BY 1

-- monthname, dayname
--! answered
SELECT DAYNAME(visit_start_date) AS d, COUNT(*) AS n FROM visit_occurrence GROUP BY d

-- current date refused or answered
--! refused HB503
SELECT COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date >= CURRENT_DATE - INTERVAL 1 YEAR

-- persons without visits counted zero
--! answered
SELECT AVG(k) AS a FROM (SELECT p.person_id, COUNT(v.visit_occurrence_id) AS k FROM person AS p LEFT JOIN visit_occurrence AS v ON v.person_id = p.person_id AND v.visit_concept_id = 9203 GROUP BY p.person_id) AS t

-- correlated count in select
--! answered
SELECT AVG(k) AS a FROM (SELECT p.person_id, (SELECT COUNT(*) FROM visit_occurrence AS v WHERE v.person_id = p.person_id) AS k FROM person AS p) AS t

-- not in grouped subquery
--! answered
SELECT COUNT(*) AS n FROM person AS p WHERE NOT EXISTS (SELECT person_id FROM drug_exposure AS d WHERE d.person_id = p.person_id GROUP BY person_id HAVING COUNT(DISTINCT drug_concept_id) > 2)

-- case with exists
--! answered
SELECT CASE WHEN EXISTS (SELECT 1 FROM death AS d WHERE d.person_id = p.person_id) THEN 'dead' ELSE 'alive' END AS s, COUNT(*) AS n FROM person AS p GROUP BY s

-- proportion of days covered style
--! answered; loose 0.3
SELECT AVG(LEAST(s / 365.0, 1)) AS pdc FROM (SELECT person_id, SUM(days_supply) AS s FROM drug_exposure WHERE YEAR(drug_exposure_start_date) = 2020 GROUP BY person_id) AS t

-- year over year growth
--! answered; noisy growth; near 0.1
WITH t AS (SELECT YEAR(visit_start_date) AS y, COUNT(*) AS n FROM visit_occurrence GROUP BY 1) SELECT a.y, (a.n - b.n) * 100.0 / b.n AS growth FROM t AS a JOIN t AS b ON a.y = b.y + 1 ORDER BY a.y

-- count distinct visits days per person
--! answered
SELECT AVG(k) AS a FROM (SELECT person_id, COUNT(DISTINCT visit_start_date) AS k FROM visit_occurrence GROUP BY person_id) AS t

-- count distinct by conditional
--! answered
SELECT COUNT(DISTINCT CASE WHEN visit_concept_id = 9201 THEN person_id END) AS inp, COUNT(DISTINCT CASE WHEN visit_concept_id = 9203 THEN person_id END) AS er FROM visit_occurrence

-- ratio of two distinct counts
--! answered
SELECT COUNT(DISTINCT CASE WHEN visit_concept_id = 9203 THEN person_id END) * 1.0 / COUNT(DISTINCT person_id) AS share FROM visit_occurrence

-- cdm schema
--! refused HB505
SELECT COUNT(*) AS n FROM cdm.person

-- sessionization by gaps
--! answered
SELECT AVG(s) AS a FROM (SELECT person_id, SUM(new) AS s FROM (SELECT person_id, CASE WHEN DATE_DIFF('day', LAG(visit_start_date) OVER (PARTITION BY person_id ORDER BY visit_start_date, visit_occurrence_id), visit_start_date) <= 60 THEN 0 ELSE 1 END AS new FROM visit_occurrence) AS g GROUP BY person_id) AS t

-- averages by name within a domain
--! answered
SELECT c.concept_name, AVG(m.value_as_number) AS mean FROM measurement AS m JOIN concept AS c ON c.concept_id = m.measurement_concept_id WHERE c.domain_id = 'Measurement' GROUP BY c.concept_name ORDER BY ALL
