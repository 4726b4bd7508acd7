-- rows
--! answered
SELECT COUNT(*) AS n FROM health

-- people
--! answered
SELECT COUNT(DISTINCT person) AS people FROM health

-- constant argument
--! answered
SELECT COUNT(1) AS n FROM health

-- rows with a value
--! answered
SELECT COUNT(income) AS n, COUNT(age) AS m FROM health

-- children
--! answered
SELECT COUNT(*) AS n FROM health WHERE age < 18

-- two conditions
--! answered
SELECT COUNT(*) AS n FROM health WHERE age >= 18 AND health = 'poor'

-- either condition
--! answered
SELECT COUNT(*) AS n FROM health WHERE health = 'poor' OR admissions >= 2

-- negated condition
--! answered
SELECT COUNT(*) AS n FROM health WHERE NOT (health IN ('poor', 'fair'))

-- between
--! answered
SELECT COUNT(*) AS n FROM health WHERE age BETWEEN 30 AND 39

-- list
--! answered
SELECT COUNT(*) AS n FROM health WHERE site IN (1, 3, 5)

-- pattern
--! answered
SELECT COUNT(*) AS n FROM health WHERE health LIKE '%o%'

-- unequal by two signs
--! answered
SELECT COUNT(*) AS n FROM health WHERE health <> 'good' AND site != 2

-- by group
--! answered
SELECT site, COUNT(*) AS n FROM health GROUP BY site

-- by group in order
--! answered
SELECT site, COUNT(*) AS n FROM health GROUP BY site ORDER BY site

-- people by group
--! answered
SELECT health, COUNT(DISTINCT person) AS people FROM health GROUP BY health ORDER BY people DESC

-- by two keys
--! answered
SELECT site, health, COUNT(*) AS n FROM health GROUP BY site, health

-- by position
--! answered
SELECT year, female, COUNT(*) AS n FROM health GROUP BY 1, 2 ORDER BY 1, 2

-- by all
--! answered
SELECT year, COUNT(*) AS n FROM health GROUP BY ALL

-- by alias
--! answered
SELECT age >= 18 AS adult, COUNT(*) AS n FROM health GROUP BY adult

-- by decade
--! answered
SELECT FLOOR(age / 10) * 10 AS decade, COUNT(*) AS n FROM health GROUP BY decade ORDER BY decade

-- by case
--! answered
SELECT CASE WHEN age < 18 THEN 'child' WHEN age < 45 THEN 'young' ELSE 'older' END AS phase, COUNT(*) AS n FROM health GROUP BY phase

-- by integer quotient
--! answered
SELECT visits // 10 AS tens, COUNT(*) AS n FROM health WHERE visits < 30 GROUP BY tens

-- by remainder
--! answered
SELECT year % 2 AS odd, COUNT(*) AS n FROM health GROUP BY odd

-- conditional count
--! answered
SELECT COUNT(*) FILTER (WHERE female = 1) AS women, COUNT(*) FILTER (WHERE female = 0) AS men FROM health

-- count of a case
--! answered
SELECT COUNT(CASE WHEN visits = 0 THEN 1 END) AS none FROM health

-- sum of a case
--! answered
SELECT SUM(CASE WHEN visits > 10 THEN 1 ELSE 0 END) AS many FROM health

-- count if
--! answered
SELECT site, COUNT_IF(admissions > 0) AS admitted FROM health GROUP BY site

-- countif of BigQuery
--! answered; dialect bigquery
SELECT COUNTIF(admissions > 0) AS admitted FROM health
-- exact
SELECT count_if(admissions > 0) AS admitted FROM health

-- share of groups
--! answered
SELECT health, COUNT(*) * 100.0 / 20190 AS percent FROM health GROUP BY health

-- having
--! answered
SELECT site, COUNT(*) AS n FROM health GROUP BY site HAVING COUNT(*) > 3000 ORDER BY n DESC

-- top groups with counts
--! answered
SELECT site, COUNT(*) AS n FROM health GROUP BY site ORDER BY n DESC LIMIT 3

-- top group alone
--! answered
SELECT health FROM health GROUP BY health ORDER BY COUNT(*) DESC LIMIT 1

-- distinct values
--! answered
SELECT COUNT(DISTINCT age) AS ages FROM health

-- distinct expression
--! answered
SELECT COUNT(DISTINCT age // 10) AS decades FROM health

-- distinct values by group
--! answered
SELECT female, COUNT(DISTINCT education) AS levels FROM health GROUP BY female

-- groups that nobody declared
--! answered; delta 1e-6
SELECT CAST(education AS VARCHAR) AS education, COUNT(*) AS n FROM health WHERE education BETWEEN 5 AND 20 GROUP BY 1

-- rollup
--! answered
SELECT female, health, COUNT(*) AS n FROM health GROUP BY ROLLUP (female, health)

-- cube
--! answered
SELECT female, site, COUNT(*) AS n FROM health GROUP BY CUBE (female, site)

-- grouping sets
--! answered
SELECT year, site, COUNT(*) AS n FROM health GROUP BY GROUPING SETS ((year), (site), ())

-- parameters
--! answered; parameters [18, "poor"]
SELECT COUNT(*) AS n FROM health WHERE age >= $1 AND health = $2

-- parameters without numbers
--! answered; parameters [18]
SELECT COUNT(*) AS n FROM health WHERE age >= ?

-- table alias
--! answered
SELECT h.site, COUNT(*) AS n FROM health AS h GROUP BY h.site

-- table alias without AS
--! answered
SELECT h.site, COUNT(h.age) AS n FROM health h GROUP BY h.site

-- quoted names
--! answered
SELECT "site", COUNT(*) AS "how many" FROM "health" GROUP BY "site"

-- names in other letters
--! answered
SELECT SITE, count(*) AS N FROM Health GROUP BY Site

-- comments and a semicolon
--! answered
SELECT /* all */ COUNT(*) AS n FROM health -- everybody
;

-- limit without order
--! answered
SELECT site, COUNT(*) AS n FROM health GROUP BY site LIMIT 6

-- rows themselves
--! refused HB510
SELECT * FROM health

-- one person's row
--! refused HB516
SELECT age FROM health WHERE person = 125024

-- a person in a condition
--! refused HB516
SELECT COUNT(*) AS n FROM health WHERE person = 125024

-- by person
--! refused HB510
SELECT person, COUNT(*) AS n FROM health GROUP BY person

-- unknown column
--! refused HB506
SELECT COUNT(*) AS n FROM health WHERE weight > 80

-- unknown table
--! refused HB505
SELECT COUNT(*) AS n FROM patients

-- unknown function
--! refused HB504
SELECT COUNT(*) AS n FROM health WHERE soundex(health) = 'G300'

-- two statements
--! refused HB502
SELECT COUNT(*) FROM health; SELECT COUNT(*) FROM health

-- a change of data
--! refused HB502
DELETE FROM health WHERE age > 60

-- a file
--! refused HB504
SELECT COUNT(*) FROM read_csv('/etc/passwd')

-- current time
--! refused HB504
SELECT COUNT(*) AS n FROM health WHERE year < EXTRACT(YEAR FROM now())

-- random rows
--! refused HB504
SELECT COUNT(*) AS n FROM health WHERE random() < 0.5
