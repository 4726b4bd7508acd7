-- persons
--! answered
SELECT COUNT(*) AS n FROM person

-- persons by gender
--! answered
SELECT gender_concept_id, COUNT(*) AS n FROM person GROUP BY gender_concept_id

-- persons by gender with its name
--! answered
SELECT c.concept_name AS gender, COUNT(*) AS n FROM person AS p JOIN concept AS c ON p.gender_concept_id = c.concept_id GROUP BY c.concept_name

-- persons by race and gender
--! answered
SELECT race_concept_id, gender_concept_id, COUNT(DISTINCT person_id) AS n FROM person GROUP BY 1, 2

-- year of birth
--! answered
SELECT year_of_birth, COUNT(*) AS n FROM person GROUP BY year_of_birth ORDER BY year_of_birth

-- decade of birth
--! answered
SELECT FLOOR(year_of_birth / 10) * 10 AS decade, COUNT(*) AS n FROM person GROUP BY 1

-- age groups
--! answered
SELECT CASE WHEN 2021 - year_of_birth < 18 THEN '0-17' WHEN 2021 - year_of_birth < 65 THEN '18-64' ELSE '65+' END AS age, COUNT(*) AS n FROM person GROUP BY 1

-- average age by gender
--! answered
SELECT gender_concept_id, AVG(2021 - year_of_birth) AS age FROM person GROUP BY gender_concept_id

-- median year of birth
--! answered
SELECT MEDIAN(year_of_birth) AS y FROM person

-- quartiles of age by gender
--! answered
SELECT gender_concept_id, QUANTILE_CONT(year_of_birth, 0.25) AS a, QUANTILE_CONT(year_of_birth, 0.75) AS b FROM person GROUP BY 1

-- persons by place
--! answered
SELECT s.place_of_service, COUNT(*) AS n FROM person AS p JOIN care_site AS s ON p.care_site_id = s.care_site_id GROUP BY 1

-- persons by site with all sites
--! answered
SELECT s.care_site_name, COUNT(p.person_id) AS n FROM care_site AS s LEFT JOIN person AS p ON p.care_site_id = s.care_site_id GROUP BY s.care_site_name

-- deaths
--! answered
SELECT COUNT(*) AS n FROM death

-- deaths by year
--! answered
SELECT EXTRACT(YEAR FROM death_date) AS y, COUNT(*) AS n FROM death GROUP BY 1

-- deaths by gender
--! answered
SELECT p.gender_concept_id, COUNT(*) AS n FROM person AS p JOIN death AS d ON p.person_id = d.person_id GROUP BY 1

-- mortality
--! answered
SELECT p.gender_concept_id, COUNT(d.death_date) * 1.0 / COUNT(*) AS rate FROM person AS p LEFT JOIN death AS d ON p.person_id = d.person_id GROUP BY 1

-- age at death
--! answered
SELECT AVG(EXTRACT(YEAR FROM d.death_date) - p.year_of_birth) AS age FROM person AS p JOIN death AS d USING (person_id)

-- the living
--! answered
SELECT COUNT(*) AS n FROM person AS p WHERE NOT EXISTS (SELECT 1 FROM death AS d WHERE d.person_id = p.person_id)

-- the living by left join
--! answered
SELECT COUNT(*) AS n FROM person AS p LEFT JOIN death AS d ON p.person_id = d.person_id WHERE d.death_date IS NULL

-- the dead by IN
--! answered
SELECT race_concept_id, COUNT(*) AS n FROM person WHERE person_id IN (SELECT person_id FROM death) GROUP BY race_concept_id

-- born after the average
--! answered
SELECT COUNT(*) AS n FROM person WHERE year_of_birth > (SELECT AVG(year_of_birth) FROM person)

-- oldest and youngest
--! answered; loose 1
SELECT MIN(year_of_birth) AS a, MAX(year_of_birth) AS b FROM person

-- ids of persons
--! refused HB510
SELECT person_id FROM person WHERE year_of_birth < 1940

-- one person
--! refused HB516
SELECT COUNT(*) AS n FROM person WHERE person_id = 17

-- a range of persons
--! refused HB516
SELECT COUNT(*) AS n FROM person WHERE person_id BETWEEN 1 AND 10

-- highest id
--! refused HB516
SELECT MAX(person_id) AS m FROM person

-- standard deviation of age
--! answered
SELECT STDDEV_SAMP(year_of_birth) AS s, VAR_POP(year_of_birth) AS v FROM person

-- share of women
--! answered
SELECT AVG(CASE WHEN gender_concept_id = 8532 THEN 1.0 ELSE 0.0 END) AS share FROM person

-- women and men in columns
--! answered
SELECT care_site_id, COUNT(*) FILTER (WHERE gender_concept_id = 8532) AS women, COUNT(*) FILTER (WHERE gender_concept_id = 8507) AS men FROM person GROUP BY care_site_id

-- rollup of race and gender
--! answered
SELECT race_concept_id, gender_concept_id, COUNT(*) AS n FROM person GROUP BY ROLLUP (1, 2)

-- names of concepts
--! answered
SELECT concept_name FROM concept WHERE domain_id = 'Drug' ORDER BY concept_name

-- concepts by domain
--! answered
SELECT domain_id, COUNT(*) AS n FROM concept GROUP BY domain_id ORDER BY n DESC, domain_id

-- descendants of a group
--! answered
SELECT c.concept_name FROM concept_ancestor AS a JOIN concept AS c ON a.descendant_concept_id = c.concept_id WHERE a.ancestor_concept_id = 320136 ORDER BY 1

-- groups with several descendants
--! answered
SELECT a.concept_name, COUNT(*) AS n FROM concept AS a JOIN concept_ancestor AS p ON p.ancestor_concept_id = a.concept_id GROUP BY 1 HAVING COUNT(*) > 1 ORDER BY n DESC, 1
