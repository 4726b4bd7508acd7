-- birth date from year
--! answered
SELECT AVG(DATE_DIFF('year', MAKE_DATE(p.year_of_birth, 1, 1), v.visit_start_date)) AS age FROM visit_occurrence AS v JOIN person AS p ON p.person_id = v.person_id

-- end date of a supply
--! answered
SELECT COUNT(*) AS n FROM drug_exposure WHERE drug_exposure_start_date + days_supply::INTEGER > DATE '2021-06-30'

-- end date of supply by interval of a column
--! answered
SELECT COUNT(*) AS n FROM drug_exposure WHERE drug_exposure_start_date + days_supply * INTERVAL '1 day' > DATE '2021-06-30'

-- dateadd of a column
--! answered; dialect tsql
SELECT COUNT(*) AS n FROM drug_exposure WHERE DATEADD(day, days_supply, drug_exposure_start_date) > '2021-06-30'
-- exact
SELECT COUNT(*) AS n FROM drug_exposure WHERE drug_exposure_start_date + days_supply::INTEGER > DATE '2021-06-30'

-- spark date_add of a column
--! answered; dialect spark
SELECT COUNT(*) AS n FROM drug_exposure WHERE date_add(drug_exposure_start_date, days_supply) > DATE '2021-06-30'
-- exact
SELECT COUNT(*) AS n FROM drug_exposure WHERE drug_exposure_start_date + days_supply::INTEGER > DATE '2021-06-30'

-- bigquery date_add of a column
--! answered; dialect bigquery
SELECT COUNT(*) AS n FROM drug_exposure WHERE DATE_ADD(drug_exposure_start_date, INTERVAL days_supply DAY) > '2021-06-30'
-- exact
SELECT COUNT(*) AS n FROM drug_exposure WHERE drug_exposure_start_date + days_supply::INTEGER > DATE '2021-06-30'

-- gap to the end of the previous supply
--! answered
SELECT COUNT(*) AS n FROM (SELECT person_id, drug_exposure_start_date AS d, LAG(drug_exposure_start_date + CAST(days_supply AS INTEGER)) OVER (PARTITION BY person_id, drug_concept_id ORDER BY drug_exposure_start_date, drug_exposure_id) AS e FROM drug_exposure) AS t WHERE d - e > 30

-- first and last visit of all
--! answered; noisy a b
SELECT MIN(visit_start_date) AS a, MAX(visit_start_date) AS b FROM visit_occurrence

-- median visit date
--! answered; noisy m
SELECT MEDIAN(visit_start_date) AS m FROM visit_occurrence

-- visit nearest after a diagnosis by non-equality left join
--! answered
SELECT COUNT(DISTINCT c.person_id) AS n FROM condition_occurrence AS c LEFT JOIN visit_occurrence AS v ON v.person_id = c.person_id AND v.visit_start_date >= c.condition_start_date WHERE v.person_id IS NULL

-- left join with range and counts
--! answered
SELECT COUNT(*) AS n, COUNT(v.visit_start_date) AS m FROM death AS d LEFT JOIN visit_occurrence AS v ON v.person_id = d.person_id AND v.visit_start_date > d.death_date

-- subquery in on
--! answered
SELECT COUNT(*) AS n FROM person AS p JOIN visit_occurrence AS v ON v.person_id = p.person_id AND v.care_site_id IN (SELECT care_site_id FROM care_site WHERE place_of_service = 'Hospital')

-- iso year and week
--! answered; delta 1e-6
SELECT EXTRACT(ISOYEAR FROM visit_start_date) AS y, COUNT(*) AS n FROM visit_occurrence GROUP BY y

-- average length of stay by site
--! answered
SELECT s.care_site_name, AVG(v.visit_end_date - v.visit_start_date) AS los FROM visit_occurrence AS v JOIN care_site AS s USING (care_site_id) WHERE v.visit_concept_id = 9201 GROUP BY s.care_site_name

-- died within a year of diagnosis
--! answered
SELECT COUNT(DISTINCT c.person_id) AS n FROM condition_occurrence AS c JOIN death AS d ON d.person_id = c.person_id AND d.death_date BETWEEN c.condition_start_date AND c.condition_start_date + INTERVAL 1 YEAR

-- retention matrix
--! answered
SELECT YEAR(f.d) AS cohort, YEAR(v.visit_start_date) AS y, COUNT(DISTINCT v.person_id) AS n FROM visit_occurrence AS v JOIN (SELECT person_id, MIN(visit_start_date) AS d FROM visit_occurrence GROUP BY person_id) AS f ON f.person_id = v.person_id GROUP BY cohort, y

-- sessions by a gap of 60 days
--! answered
SELECT COUNT(*) AS n FROM (SELECT person_id, visit_start_date, LAG(visit_start_date) OVER (PARTITION BY person_id ORDER BY visit_start_date) AS p FROM visit_occurrence) AS t WHERE p IS NULL OR visit_start_date - p > 60

-- measurement change per person between first and last
--! answered
SELECT AVG(GREATEST(-100, LEAST(100, l - f))) AS d FROM (SELECT person_id, ARG_MIN(value_as_number, measurement_date) AS f, ARG_MAX(value_as_number, measurement_date) AS l FROM measurement WHERE measurement_concept_id = 3004249 GROUP BY person_id) AS t

-- concept names with regexp
--! answered; dialect snowflake
SELECT REGEXP_SUBSTR(c.concept_name, '^[A-Z][a-z]+') AS w, COUNT(*) AS n FROM condition_occurrence AS o JOIN concept AS c ON c.concept_id = o.condition_concept_id GROUP BY w
-- exact
SELECT REGEXP_EXTRACT(c.concept_name, '^[A-Z][a-z]+') AS w, COUNT(*) AS n FROM condition_occurrence AS o JOIN concept AS c ON c.concept_id = o.condition_concept_id GROUP BY w
