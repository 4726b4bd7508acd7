-- visits
--! answered
SELECT COUNT(*) AS n, COUNT(DISTINCT person_id) AS people FROM visit_occurrence

-- visits by kind
--! answered
SELECT visit_concept_id, COUNT(*) AS n FROM visit_occurrence GROUP BY 1

-- visits by name of the kind
--! answered
SELECT c.concept_name, COUNT(*) AS n, COUNT(DISTINCT v.person_id) AS people FROM visit_occurrence v JOIN concept c ON v.visit_concept_id = c.concept_id GROUP BY c.concept_name ORDER BY n DESC

-- visits by month
--! answered
SELECT DATE_TRUNC('month', visit_start_date) AS month, COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date >= DATE '2020-01-01' AND visit_start_date < DATE '2021-01-01' GROUP BY 1 ORDER BY 1

-- visits by year and kind
--! answered
SELECT EXTRACT(YEAR FROM visit_start_date) AS y, visit_concept_id, COUNT(*) AS n FROM visit_occurrence GROUP BY 1, 2

-- visits by quarter
--! answered
SELECT QUARTER(visit_start_date) AS q, COUNT(*) AS n FROM visit_occurrence WHERE YEAR(visit_start_date) = 2019 GROUP BY q ORDER BY q

-- visits by day of the week
--! answered
SELECT DAYOFWEEK(visit_start_date) AS d, COUNT(*) AS n FROM visit_occurrence GROUP BY 1

-- length of stay
--! answered
SELECT AVG(visit_end_date - visit_start_date) AS days FROM visit_occurrence WHERE visit_concept_id = 9201

-- length of stay by DATE_DIFF
--! answered
SELECT AVG(LEAST(DATE_DIFF('day', visit_start_date, visit_end_date), 30)) AS days FROM visit_occurrence WHERE visit_concept_id = 9201

-- length of stay by DATEDIFF of T-SQL
--! answered; dialect tsql
SELECT SUM(DATEDIFF(day, visit_start_date, visit_end_date)) AS days FROM visit_occurrence
-- exact
SELECT SUM(visit_end_date - visit_start_date) AS days FROM visit_occurrence

-- long stays
--! answered
SELECT COUNT(*) AS n FROM visit_occurrence WHERE DATE_DIFF('day', visit_start_date, visit_end_date) > 7

-- distribution of lengths
--! answered
SELECT LEAST(DATE_DIFF('day', visit_start_date, visit_end_date), 20) AS days, COUNT(*) AS n FROM visit_occurrence WHERE visit_concept_id = 9201 GROUP BY 1

-- median length
--! answered; loose 0.1
SELECT MEDIAN(DATE_DIFF('day', visit_start_date, visit_end_date)) AS days FROM visit_occurrence WHERE visit_concept_id = 9201

-- visits per person
--! answered
SELECT n, COUNT(*) AS people FROM (SELECT person_id, COUNT(*) AS n FROM visit_occurrence GROUP BY person_id) AS t WHERE n <= 10 GROUP BY n

-- average of visits per person
--! answered
SELECT AVG(LEAST(n, 10)) AS mean FROM (SELECT person_id, COUNT(*) AS n FROM visit_occurrence GROUP BY person_id) AS t

-- persons with several visits
--! answered
SELECT COUNT(*) AS people FROM (SELECT person_id FROM visit_occurrence GROUP BY person_id HAVING COUNT(*) >= 3) AS t

-- visits by gender
--! answered
SELECT p.gender_concept_id, COUNT(*) AS n FROM visit_occurrence AS v JOIN person AS p ON v.person_id = p.person_id GROUP BY 1

-- visits by gender in other order
--! answered
SELECT p.gender_concept_id, v.visit_concept_id, COUNT(*) AS n FROM person AS p INNER JOIN visit_occurrence AS v USING (person_id) GROUP BY 1, 2

-- comma join of persons and visits
--! answered
SELECT p.race_concept_id, COUNT(*) AS n FROM person p, visit_occurrence v WHERE p.person_id = v.person_id AND v.visit_concept_id = 9203 GROUP BY p.race_concept_id

-- persons without a visit
--! answered
SELECT COUNT(*) AS n FROM person AS p LEFT JOIN visit_occurrence AS v ON p.person_id = v.person_id WHERE v.visit_concept_id IS NULL

-- persons without a visit by NOT EXISTS
--! answered
SELECT gender_concept_id, COUNT(*) AS n FROM person AS p WHERE NOT EXISTS (SELECT * FROM visit_occurrence AS v WHERE v.person_id = p.person_id) GROUP BY 1

-- persons without a visit by NOT IN
--! answered
SELECT COUNT(*) AS n FROM person WHERE person_id NOT IN (SELECT person_id FROM visit_occurrence WHERE person_id IS NOT NULL)

-- persons with an emergency
--! answered
SELECT gender_concept_id, COUNT(*) AS n FROM person WHERE person_id IN (SELECT person_id FROM visit_occurrence WHERE visit_concept_id = 9203) GROUP BY 1

-- persons with an inpatient and no emergency visit
--! answered
SELECT COUNT(*) AS n FROM person AS p WHERE EXISTS (SELECT 1 FROM visit_occurrence v WHERE v.person_id = p.person_id AND v.visit_concept_id = 9201) AND NOT EXISTS (SELECT 1 FROM visit_occurrence v WHERE v.person_id = p.person_id AND v.visit_concept_id = 9203)

-- days since the previous visit
--! answered
SELECT AVG(LEAST(gap, 1500)) AS days FROM (SELECT person_id, visit_start_date - LAG(visit_start_date) OVER (PARTITION BY person_id ORDER BY visit_start_date) AS gap FROM visit_occurrence) AS t WHERE gap IS NOT NULL

-- visits again within 30 days
--! answered
SELECT COUNT(*) AS n FROM (SELECT person_id, visit_start_date, LEAD(visit_start_date) OVER (PARTITION BY person_id ORDER BY visit_start_date) AS later FROM visit_occurrence) AS t WHERE DATE_DIFF('day', visit_start_date, later) <= 30

-- readmissions
--! refused HB738
SELECT COUNT(*) AS n FROM visit_occurrence AS a WHERE a.visit_concept_id = 9201 AND EXISTS (SELECT 1 FROM visit_occurrence AS b WHERE b.person_id = a.person_id AND b.visit_concept_id = 9201 AND b.visit_start_date > a.visit_end_date AND b.visit_start_date <= a.visit_end_date + 90)

-- first visit by kind
--! answered
SELECT visit_concept_id, COUNT(*) AS people FROM (SELECT person_id, visit_concept_id, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY visit_start_date, visit_occurrence_id) AS i FROM visit_occurrence) AS t WHERE i = 1 GROUP BY 1

-- first visit by year
--! answered
SELECT EXTRACT(YEAR FROM first) AS y, COUNT(*) AS people FROM (SELECT person_id, MIN(visit_start_date) AS first FROM visit_occurrence GROUP BY person_id) AS t GROUP BY 1

-- kind of the last visit
--! answered
SELECT kind, COUNT(*) AS people FROM (SELECT person_id, ARG_MAX(visit_concept_id, visit_occurrence_id) AS kind FROM visit_occurrence GROUP BY person_id) AS t GROUP BY kind

-- visits by site
--! answered
SELECT s.care_site_name, COUNT(*) AS n FROM visit_occurrence v JOIN care_site s ON s.care_site_id = v.care_site_id WHERE s.place_of_service = 'Hospital' GROUP BY 1

-- visits by site and kind in words
--! answered
SELECT s.care_site_name, c.concept_name, COUNT(*) AS n FROM visit_occurrence v JOIN care_site s ON s.care_site_id = v.care_site_id JOIN concept c ON c.concept_id = v.visit_concept_id GROUP BY 1, 2

-- visits at another site than one's own
--! answered
SELECT COUNT(*) AS n FROM visit_occurrence AS v JOIN person AS p ON v.person_id = p.person_id WHERE v.care_site_id <> p.care_site_id

-- sites of a person
--! answered
SELECT AVG(LEAST(sites, 4)) AS mean FROM (SELECT person_id, COUNT(DISTINCT care_site_id) AS sites FROM visit_occurrence GROUP BY person_id) AS t

-- overlapping visits
--! answered
SELECT COUNT(*) AS n FROM visit_occurrence AS a JOIN visit_occurrence AS b ON a.person_id = b.person_id AND a.visit_occurrence_id < b.visit_occurrence_id AND b.visit_start_date BETWEEN a.visit_start_date AND a.visit_end_date

-- age at visit
--! answered
SELECT AVG(EXTRACT(YEAR FROM v.visit_start_date) - p.year_of_birth) AS age FROM visit_occurrence v JOIN person p ON p.person_id = v.person_id

-- visits of the dead in their last year
--! answered
SELECT COUNT(*) AS n FROM visit_occurrence v JOIN death d ON v.person_id = d.person_id WHERE DATE_DIFF('day', v.visit_start_date, d.death_date) BETWEEN 0 AND 365

-- visits by person
--! refused HB510
SELECT person_id, COUNT(*) AS n FROM visit_occurrence GROUP BY person_id

-- ids of visits
--! refused HB510
SELECT visit_occurrence_id FROM visit_occurrence ORDER BY visit_start_date LIMIT 10

-- persons matched by day
--! refused HB513
SELECT COUNT(*) AS n FROM visit_occurrence a JOIN visit_occurrence b ON a.visit_start_date = b.visit_start_date

-- windows over all visits
--! refused HB741
SELECT COUNT(*) AS n FROM (SELECT person_id, ROW_NUMBER() OVER (ORDER BY visit_start_date) AS i FROM visit_occurrence) AS t WHERE i < 100

-- share of kinds
--! answered
SELECT visit_concept_id, COUNT(*) * 100.0 / SUM(COUNT(*)) OVER () AS percent FROM visit_occurrence GROUP BY 1

-- visits before a date in quotes
--! answered
SELECT COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date < '2019-07-01'

-- visits in an interval
--! answered
SELECT COUNT(*) AS n FROM visit_occurrence WHERE visit_start_date BETWEEN DATE '2020-03-01' AND DATE '2020-03-01' + INTERVAL 90 DAY

-- visits of a year by parts
--! answered; parameters [2020, 6]
SELECT COUNT(*) AS n FROM visit_occurrence WHERE YEAR(visit_start_date) = $1 AND MONTH(visit_start_date) <= $2

-- month of the most visits
--! answered
SELECT MONTH(visit_start_date) AS m, COUNT(*) AS n FROM visit_occurrence GROUP BY 1 ORDER BY n DESC, m LIMIT 1

-- emergencies over all by site
--! answered
SELECT care_site_id, 1.0 * COUNT(CASE WHEN visit_concept_id = 9203 THEN 1 END) / COUNT(*) AS share FROM visit_occurrence GROUP BY care_site_id

-- site of the first visit
--! answered
SELECT site, COUNT(*) AS people FROM (SELECT person_id, ARG_MIN(care_site_id, visit_occurrence_id) AS site FROM visit_occurrence GROUP BY person_id) AS t GROUP BY site

-- site of the last visit, in Snowflake's words
--! answered; dialect snowflake
SELECT site, COUNT(*) AS people FROM (SELECT person_id, MAX_BY(care_site_id, visit_occurrence_id) AS site FROM visit_occurrence GROUP BY person_id) AS t GROUP BY site
-- exact
SELECT site, COUNT(*) AS people FROM (SELECT person_id, MAX_BY(care_site_id, visit_occurrence_id) AS site FROM visit_occurrence GROUP BY person_id) AS t GROUP BY site

-- people who changed the site
--! answered
SELECT COUNT(*) AS n FROM (SELECT person_id FROM visit_occurrence GROUP BY person_id HAVING ARG_MIN(care_site_id, visit_occurrence_id) <> ARG_MAX(care_site_id, visit_occurrence_id)) AS t

-- days of the last emergency
--! answered
SELECT AVG(days) AS days FROM (SELECT person_id, ARG_MAX(visit_end_date - visit_start_date, visit_occurrence_id) FILTER (WHERE visit_concept_id = 9203) AS days FROM visit_occurrence GROUP BY person_id) AS t

-- people by sex whose last visit was an emergency
--! answered
SELECT gender_concept_id, COUNT(*) AS n FROM person AS p WHERE (SELECT ARG_MAX(v.visit_concept_id, v.visit_occurrence_id) FROM visit_occurrence AS v WHERE v.person_id = p.person_id) = 9203 GROUP BY gender_concept_id
