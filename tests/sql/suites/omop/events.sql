-- conditions
--! answered
SELECT c.concept_name, COUNT(*) AS n, COUNT(DISTINCT o.person_id) AS people FROM condition_occurrence o JOIN concept c ON o.condition_concept_id = c.concept_id GROUP BY 1 ORDER BY people DESC

-- prevalence of diabetes
--! answered
SELECT COUNT(DISTINCT person_id) / 700.0 AS share FROM condition_occurrence WHERE condition_concept_id = 201826

-- conditions of a group of concepts
--! answered
SELECT COUNT(*) AS n FROM condition_occurrence o JOIN concept_ancestor a ON o.condition_concept_id = a.descendant_concept_id WHERE a.ancestor_concept_id = 320136

-- groups of concepts by name
--! answered
SELECT g.concept_name, COUNT(DISTINCT o.person_id) AS people FROM condition_occurrence o JOIN concept_ancestor a ON o.condition_concept_id = a.descendant_concept_id JOIN concept g ON g.concept_id = a.ancestor_concept_id GROUP BY 1

-- conditions in a list of public concepts
--! answered
SELECT COUNT(*) AS n FROM condition_occurrence WHERE condition_concept_id IN (SELECT descendant_concept_id FROM concept_ancestor WHERE ancestor_concept_id = 134057)

-- conditions by gender and concept
--! answered
SELECT p.gender_concept_id, o.condition_concept_id, COUNT(DISTINCT o.person_id) AS people FROM condition_occurrence o JOIN person p ON o.person_id = p.person_id GROUP BY 1, 2

-- diabetes and hypertension
--! answered
SELECT COUNT(*) AS people FROM person p WHERE EXISTS (SELECT 1 FROM condition_occurrence o WHERE o.person_id = p.person_id AND o.condition_concept_id = 201826) AND EXISTS (SELECT 1 FROM condition_occurrence o WHERE o.person_id = p.person_id AND o.condition_concept_id = 320128)

-- diabetes and hypertension by intersection
--! answered
SELECT COUNT(*) AS people FROM (SELECT person_id FROM condition_occurrence WHERE condition_concept_id = 201826 INTERSECT SELECT person_id FROM condition_occurrence WHERE condition_concept_id = 320128) AS t

-- diabetes and hypertension by flags
--! answered
SELECT d, h, COUNT(*) AS people FROM (SELECT person_id, MAX(CASE WHEN condition_concept_id = 201826 THEN 1 ELSE 0 END) AS d, MAX(CASE WHEN condition_concept_id = 320128 THEN 1 ELSE 0 END) AS h FROM condition_occurrence GROUP BY person_id) AS t GROUP BY d, h

-- asthma and never bronchitis
--! answered
SELECT COUNT(DISTINCT person_id) AS people FROM condition_occurrence WHERE condition_concept_id = 317009 AND person_id NOT IN (SELECT person_id FROM condition_occurrence WHERE condition_concept_id = 260139 AND person_id IS NOT NULL)

-- asthma and never bronchitis by difference
--! answered
SELECT COUNT(*) AS people FROM (SELECT person_id FROM condition_occurrence WHERE condition_concept_id = 317009 EXCEPT SELECT person_id FROM condition_occurrence WHERE condition_concept_id = 260139) AS t

-- first condition of a person
--! answered
SELECT condition_concept_id, COUNT(*) AS people FROM (SELECT person_id, condition_concept_id, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY condition_start_date, condition_occurrence_id) AS i FROM condition_occurrence) AS t WHERE i = 1 GROUP BY 1

-- second diagnosis within a year
--! answered
SELECT COUNT(DISTINCT a.person_id) AS people FROM condition_occurrence a JOIN condition_occurrence b ON a.person_id = b.person_id AND b.condition_start_date > a.condition_start_date WHERE a.condition_concept_id = 320128 AND b.condition_concept_id = 432867 AND DATE_DIFF('day', a.condition_start_date, b.condition_start_date) <= 365

-- incidence by year
--! answered
SELECT YEAR(first) AS y, COUNT(*) AS people FROM (SELECT person_id, MIN(condition_start_date) AS first FROM condition_occurrence WHERE condition_concept_id = 201826 GROUP BY person_id) AS t GROUP BY 1 ORDER BY 1

-- conditions per person
--! answered
SELECT LEAST(n, 8) AS n, COUNT(*) AS people FROM (SELECT person_id, COUNT(DISTINCT condition_concept_id) AS n FROM condition_occurrence GROUP BY person_id) AS t GROUP BY 1

-- drugs
--! answered
SELECT c.concept_name AS drug, COUNT(*) AS n, AVG(d.days_supply) AS days, SUM(d.quantity) AS quantity FROM drug_exposure d JOIN concept c ON d.drug_concept_id = c.concept_id GROUP BY 1

-- days supplied by drug
--! answered
SELECT drug_concept_id, days_supply, COUNT(*) AS n FROM drug_exposure GROUP BY 1, 2

-- drugs of a class
--! answered
SELECT COUNT(DISTINCT d.person_id) AS people FROM drug_exposure d JOIN concept_ancestor a ON a.descendant_concept_id = d.drug_concept_id WHERE a.ancestor_concept_id = 21601664

-- metformin among diabetics
--! answered
SELECT COUNT(DISTINCT o.person_id) AS people FROM condition_occurrence o JOIN drug_exposure d ON o.person_id = d.person_id WHERE o.condition_concept_id = 201826 AND d.drug_concept_id = 1503297

-- metformin after diabetes
--! answered
SELECT COUNT(DISTINCT o.person_id) AS people FROM condition_occurrence o JOIN drug_exposure d ON o.person_id = d.person_id AND d.drug_exposure_start_date >= o.condition_start_date WHERE o.condition_concept_id = 201826 AND d.drug_concept_id = 1503297

-- diabetics without metformin
--! answered
SELECT COUNT(DISTINCT o.person_id) AS people FROM condition_occurrence o WHERE o.condition_concept_id = 201826 AND NOT EXISTS (SELECT 1 FROM drug_exposure d WHERE d.person_id = o.person_id AND d.drug_concept_id = 1503297)

-- drugs per person and year
--! answered
SELECT y, AVG(LEAST(n, 8)) AS mean FROM (SELECT person_id, EXTRACT(YEAR FROM drug_exposure_start_date) AS y, COUNT(*) AS n FROM drug_exposure GROUP BY person_id, y) AS t GROUP BY y

-- supplies that last beyond a day
--! answered
SELECT COUNT(*) AS n FROM drug_exposure WHERE DATE_DIFF('day', drug_exposure_start_date, DATE '2021-12-31') < days_supply

-- end of a supply
--! answered
SELECT COUNT(*) AS n FROM drug_exposure WHERE drug_exposure_start_date + days_supply > DATE '2021-12-31'
-- exact
SELECT COUNT(*) AS n FROM drug_exposure WHERE drug_exposure_start_date + days_supply::INTEGER > DATE '2021-12-31'

-- quantity in classes
--! answered
SELECT WIDTH_BUCKET(quantity, 0, 90, 9) AS bin, COUNT(*) AS n FROM drug_exposure GROUP BY bin
-- exact
SELECT CASE WHEN quantity >= 90 THEN 10 ELSE FLOOR(quantity / 10) + 1 END AS bin, COUNT(*) AS n FROM drug_exposure GROUP BY bin

-- total days of a person
--! answered
SELECT AVG(LEAST(days, 720)) AS days FROM (SELECT person_id, SUM(days_supply) AS days FROM drug_exposure GROUP BY person_id) AS t

-- measurements
--! answered; loose 3
SELECT c.concept_name, COUNT(m.value_as_number) AS n, AVG(m.value_as_number) AS mean, STDDEV(m.value_as_number) AS sd FROM measurement m JOIN concept c ON m.measurement_concept_id = c.concept_id GROUP BY 1

-- missing values
--! answered
SELECT measurement_concept_id, COUNT(*) - COUNT(value_as_number) AS missing FROM measurement GROUP BY 1

-- missing values by condition
--! answered
SELECT COUNT(*) AS n FROM measurement WHERE value_as_number IS NULL

-- high blood pressure
--! answered
SELECT COUNT(*) AS n, COUNT(DISTINCT person_id) AS people FROM measurement WHERE measurement_concept_id = 3004249 AND value_as_number > 140

-- median by kind
--! answered
SELECT measurement_concept_id, MEDIAN(value_as_number) AS m FROM measurement GROUP BY 1

-- percentiles of pressure
--! answered
SELECT QUANTILE_CONT(value_as_number, 0.1) AS p10, QUANTILE_CONT(value_as_number, 0.9) AS p90 FROM measurement WHERE measurement_concept_id = 3004249

-- average of persons' averages
--! answered
SELECT AVG(m) AS mean FROM (SELECT person_id, AVG(value_as_number) AS m FROM measurement WHERE measurement_concept_id = 3027018 GROUP BY person_id) AS t

-- worst value of a person
--! answered
SELECT COUNT(*) AS people FROM (SELECT person_id, MAX(value_as_number) AS top FROM measurement WHERE measurement_concept_id = 3004410 GROUP BY person_id) AS t WHERE top >= 8

-- last value of a person
--! answered
SELECT AVG(value_as_number) AS mean FROM (SELECT person_id, value_as_number, ROW_NUMBER() OVER (PARTITION BY person_id ORDER BY measurement_date DESC, measurement_id DESC) AS i FROM measurement WHERE measurement_concept_id = 3038553 AND value_as_number IS NOT NULL) AS t WHERE i = 1

-- change between measurements
--! answered
SELECT AVG(value_as_number - before) AS change FROM (SELECT person_id, value_as_number, LAG(value_as_number) OVER (PARTITION BY person_id ORDER BY measurement_date, measurement_id) AS before FROM measurement WHERE measurement_concept_id = 3004249) AS t WHERE before IS NOT NULL

-- classes of body mass
--! answered
SELECT CASE WHEN value_as_number < 18.5 THEN 'under' WHEN value_as_number < 25 THEN 'normal' WHEN value_as_number < 30 THEN 'over' ELSE 'obese' END AS class, COUNT(*) AS n FROM measurement WHERE measurement_concept_id = 3038553 AND value_as_number IS NOT NULL GROUP BY 1

-- sugar of diabetics and others
--! answered
SELECT d.person_id IS NOT NULL AS diabetic, AVG(m.value_as_number) AS mean FROM measurement m LEFT JOIN (SELECT DISTINCT person_id FROM condition_occurrence WHERE condition_concept_id = 201826) d ON m.person_id = d.person_id WHERE m.measurement_concept_id = 3004410 GROUP BY 1

-- sugar of diabetics
--! answered
SELECT AVG(m.value_as_number) AS mean FROM measurement m WHERE m.measurement_concept_id = 3004410 AND m.person_id IN (SELECT person_id FROM condition_occurrence WHERE condition_concept_id = 201826)

-- above one's own average
--! answered
SELECT COUNT(*) AS n FROM measurement m WHERE value_as_number > (SELECT AVG(value_as_number) FROM measurement o WHERE o.person_id = m.person_id AND o.measurement_concept_id = m.measurement_concept_id)
-- exact
SELECT COUNT(*) AS n FROM measurement m WHERE CAST(value_as_number AS DECIMAL(9, 1)) * (SELECT COUNT(value_as_number) FROM measurement o WHERE o.person_id = m.person_id AND o.measurement_concept_id = m.measurement_concept_id) > (SELECT SUM(CAST(value_as_number AS DECIMAL(9, 1))) FROM measurement o WHERE o.person_id = m.person_id AND o.measurement_concept_id = m.measurement_concept_id)

-- all events together
--! answered
SELECT kind, COUNT(*) AS n FROM (SELECT person_id, 'condition' AS kind FROM condition_occurrence UNION ALL SELECT person_id, 'drug' FROM drug_exposure UNION ALL SELECT person_id, 'measurement' FROM measurement) AS t GROUP BY kind

-- persons with any event
--! answered
SELECT COUNT(*) AS people FROM (SELECT person_id FROM condition_occurrence UNION SELECT person_id FROM drug_exposure UNION SELECT person_id FROM measurement) AS t

-- four tables by person
--! answered
SELECT p.gender_concept_id, COUNT(DISTINCT p.person_id) AS people FROM person p JOIN condition_occurrence o ON p.person_id = o.person_id JOIN drug_exposure d ON p.person_id = d.person_id JOIN measurement m ON p.person_id = m.person_id WHERE o.condition_concept_id = 320128 AND d.drug_concept_id = 1308216 AND m.measurement_concept_id = 3004249 GROUP BY 1

-- pressure with and without a drug
--! answered
SELECT CASE WHEN d.n > 0 THEN 'treated' ELSE 'untreated' END AS arm, COUNT(*) AS n FROM measurement m LEFT JOIN (SELECT person_id, COUNT(*) AS n FROM drug_exposure WHERE drug_concept_id = 1308216 GROUP BY person_id) d ON m.person_id = d.person_id WHERE m.measurement_concept_id = 3004249 GROUP BY 1

-- full join of two summaries
--! answered
SELECT COUNT(*) AS people, COUNT(a.n) AS with_condition, COUNT(b.n) AS with_drug FROM (SELECT person_id, COUNT(*) AS n FROM condition_occurrence GROUP BY person_id) a FULL JOIN (SELECT person_id, COUNT(*) AS n FROM drug_exposure GROUP BY person_id) b ON a.person_id = b.person_id

-- correlation with age
--! answered
SELECT CORR(2021 - p.year_of_birth, m.value_as_number) AS r FROM measurement m JOIN person p USING (person_id) WHERE m.measurement_concept_id = 3004249

-- drugs by month after release
--! answered; noisy so_far
SELECT m, SUM(n) OVER (ORDER BY m) AS so_far FROM (SELECT MONTH(drug_exposure_start_date) AS m, COUNT(*) AS n FROM drug_exposure GROUP BY 1) AS t

-- drugs above the mean after release
--! answered
SELECT drug_concept_id, n FROM (SELECT drug_concept_id, COUNT(*) AS n, AVG(COUNT(*)) OVER () AS mean FROM drug_exposure GROUP BY 1) AS t WHERE n > mean

-- measurement by its row
--! refused HB510
SELECT measurement_id, value_as_number FROM measurement ORDER BY value_as_number DESC LIMIT 1

-- events matched by concept
--! refused HB513
SELECT COUNT(*) AS n FROM drug_exposure a JOIN drug_exposure b ON a.drug_concept_id = b.drug_concept_id

-- events of other people in a subquery
--! refused HB740
SELECT COUNT(*) AS n FROM condition_occurrence WHERE condition_concept_id IN (SELECT condition_concept_id FROM condition_occurrence WHERE condition_start_date > DATE '2021-06-01')

-- drugs that nobody declared
--! answered; delta 1e-6
SELECT drug_concept_id + 0 AS drug, COUNT(*) AS n FROM drug_exposure GROUP BY 1

-- people with diabetes who never had metformin
--! answered
SELECT COUNT(DISTINCT c.person_id) AS n FROM condition_occurrence AS c LEFT JOIN drug_exposure AS d ON c.person_id = d.person_id AND d.drug_concept_id = 1503297 WHERE c.condition_concept_id = 201826 AND d.person_id IS NULL

-- people without any drug by sex
--! answered
SELECT p.gender_concept_id, COUNT(*) AS n FROM person AS p LEFT JOIN drug_exposure AS d ON p.person_id = d.person_id WHERE d.person_id IS NULL GROUP BY p.gender_concept_id

-- people without any drug by sex, with USING
--! answered
SELECT gender_concept_id, COUNT(*) AS n FROM person LEFT JOIN drug_exposure USING (person_id) WHERE drug_exposure.person_id IS NULL GROUP BY gender_concept_id

-- neither a drug nor a measurement
--! answered
SELECT COUNT(*) AS n FROM person AS p LEFT JOIN drug_exposure AS d ON p.person_id = d.person_id LEFT JOIN measurement AS m ON p.person_id = m.person_id WHERE d.person_id IS NULL AND m.person_id IS NULL

-- only on one side of a full join
--! answered
SELECT COUNT(*) AS n FROM (SELECT DISTINCT person_id FROM condition_occurrence WHERE condition_concept_id = 201826) AS a FULL JOIN (SELECT DISTINCT person_id FROM drug_exposure WHERE drug_concept_id = 1503297) AS b ON a.person_id = b.person_id WHERE a.person_id IS NULL OR b.person_id IS NULL

-- diabetes and metformin, both, or one of them
--! answered
SELECT CASE WHEN a.person_id IS NULL THEN 'drug' WHEN b.person_id IS NULL THEN 'diabetes' ELSE 'both' END AS has, COUNT(*) AS n FROM (SELECT DISTINCT person_id FROM condition_occurrence WHERE condition_concept_id = 201826) AS a FULL OUTER JOIN (SELECT DISTINCT person_id FROM drug_exposure WHERE drug_concept_id = 1503297) AS b ON a.person_id = b.person_id GROUP BY 1

-- sum of both sides of a full join
--! answered
SELECT SUM(LEAST(COALESCE(a.n, 0) + COALESCE(b.n, 0), 16)) AS events FROM (SELECT person_id, COUNT(*) AS n FROM condition_occurrence GROUP BY person_id) AS a FULL JOIN (SELECT person_id, COUNT(*) AS n FROM drug_exposure GROUP BY person_id) AS b USING (person_id)

-- people on either side
--! answered
SELECT COUNT(DISTINCT COALESCE(c.person_id, d.person_id)) AS people FROM (SELECT person_id, condition_concept_id FROM condition_occurrence WHERE condition_concept_id = 201826) AS c FULL JOIN (SELECT person_id FROM drug_exposure WHERE drug_concept_id = 1503297) AS d ON c.person_id = d.person_id

-- a full join with a public table
--! refused HB513
SELECT COUNT(*) AS n FROM drug_exposure FULL JOIN concept ON drug_concept_id = concept_id
