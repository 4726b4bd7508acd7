-- a count
SELECT count(*) FROM people

-- count and sum of a filtered part
SELECT COUNT(*) c, SUM(income) FROM people WHERE female AND age BETWEEN 20 AND 30

-- decades, grouped by place
select floor(age/10)*10 as decade, avg(income) from people group by 1 order by 1

-- decades, grouped by alias
select floor(age/10)*10 as decade, avg(income) from people group by decade order by decade

-- ages in three words
select case when age<18 then 'child' when age<65 then 'adult' else 'old' end as k, count(distinct person) from people group by k

-- months, grouped by all
select month(day) m, count(*) from people group by all

-- months of a date, cut
select date_trunc('month', day), count(*) from people group by 1

-- weeks and weekdays of moments
--! delta 1e-6
select date_trunc('week', seen), date_part('dow', seen), count(*) from people group by 1, 2

-- a named part
with a as (select person, age, health from people where age>10) select health, count(*) from a group by health

-- a named part of a named part
with a as (select person, age, health from people), b as (select * from a where age>10) select b.health, median(age) from b group by b.health

-- a named part with named columns
with a(p, q) as (select person, age from people) select avg(q), count(distinct p) from a

-- a table joined to a part of itself
select health, count(*) from (select health from people union all select health from people where age > 50) group by health

-- a union of two tables of the same people
select count(distinct person), sum(x) from (select person, age as x from people union all select person, cost from visits)

-- an average of counts for each person
select avg(n) from (select person, least(count(*),10) as n from people group by person)

-- an average of averages, over those who came twice
select avg(m) from (select person, avg(income) m, max(age) from people group by person having count(*)>1) q

-- several aggregates for each person and year, over two tables
select avg(m), max(s) from (select person, year, avg(income) m, least(greatest(sum(cost), 0), 500) s from people join visits using (person, year) group by person, year)

-- distinct within a person
select count(*) from (select distinct person, health from people)

-- a public table joined on a condition
select s.city, count(*) from people p join sites s on p.site = s.site group by s.city

-- a public table joined by a shared column
select city, count(*), sum(greatest(0, least(beds, 100))) from people join sites using (site) group by city

-- a public table joined to the left
select city, count(*) from people p left join sites s using (site) group by city

-- a public table first, with a condition
select count(*) from sites s join people p on p.site = s.site and s.beds > 20

-- a public table joined to the right
select count(*), count(city) from sites s right join people p using (site)

-- two private tables joined on the person
select count(distinct p.person), avg(v.cost) from people p join visits v on p.person=v.person

-- two private tables joined to the left
select p.health, sum(v.cost) from people p left join visits v using (person) where p.age>3 group by 1

-- a table joined with itself, a year apart
select a.health, count(*) from people a join people b on a.person=b.person and a.year = b.year+1 group by a.health

-- two private tables joined on more than the person
select count(*) from people h join visits v on h.person = v.person and h.age > v.cost

-- a table joined with a part grouped by person
select count(*) from people h join (select person, max(cost) m from visits group by person) v on h.person = v.person where v.m > 5

-- those who are in another table
select count(*) from people where person in (select person from visits where cost > 10) and age > 3

-- rollup
select health, female, count(*) from people group by rollup(health, female)
-- oracle
select health, female, n from (select health, female, count(*) n, grouping(health) g_health, grouping(female) g_female from people group by rollup(health, female)) where not (health is null and g_health = 0) and not (female is null and g_female = 0)

-- cube
select health, female, count(*) from people group by cube(health, female)
-- oracle
select health, female, n from (select health, female, count(*) n, grouping(health) g_health, grouping(female) g_female from people group by cube(health, female)) where not (health is null and g_health = 0) and not (female is null and g_female = 0)

-- grouping sets
select health, female, count(*) from people group by grouping sets ((health), (female), ())
-- oracle
select health, female, n from (select health, female, count(*) n, grouping(health) g_health, grouping(female) g_female from people group by grouping sets ((health), (female), ())) where not (health is null and g_health = 0) and not (female is null and g_female = 0)

-- a key beside grouping sets
select year, health, female, count(*) from people group by year, grouping sets ((health, female), rollup(health))
-- oracle
select year, health, female, n from (select year, health, female, count(*) n, grouping(year) g_year, grouping(health) g_health, grouping(female) g_female from people group by year, grouping sets ((health, female), rollup(health))) where not (year is null and g_year = 0) and not (health is null and g_health = 0) and not (female is null and g_female = 0)

-- expressions over answers, having and order
select health, count(*)*100.0/5 as pct, sum(income)/count(*) from people group by health having count(*)>5 order by sum(income) desc nulls last, 1

-- aliases in having and order
select health, count(*) n from people group by health having n > 5 order by n+1, health

-- filters and counts of truth
select count(*) filter (where age>30), count_if(female), sum(case when female then 1 else 0 end) from people

-- three quantiles
select percentile_cont(0.9) within group (order by income), quantile_cont(age, 0.25), median(income) from people

-- a quantile in falling order
select percentile_cont(0.2) within group (order by income desc) from people

-- a quoted name
select "age", count(*) from people group by "age"

-- names in any case
select AGE, COUNT(*) FROM PEOPLE group by Age

-- days as text and as dates
select count(*) from people where day >= '2020-01-01' and day < date '2020-12-01' + interval 1 month

-- moments and hours
select count(*) from people where seen > timestamp '2020-05-01 12:00:00' or seen - interval 3 hour < '2020-02-02'

-- days added and taken away
select count(*) from people where day + 30 > date '2021-01-01' and day - date '2019-01-01' > 100

-- parts of a date
select extract(year from day) y, quarter(day), count(*) from people group by y, 2

-- months between
--! delta 1e-6
select date_diff('month', day, date '2021-12-31') m, count(*) from people group by m

-- bounds written in the query
select sum(greatest(0, least(spending, 100))) from people

-- patterns and lists of text
select count(*) from people where health ilike 'Go%' or lower(health) like 'p_or' and health not in ('fair','poor')

-- extremes, spreads and correlation
select min(age), max(age), stddev(age), var_pop(age), corr(age, income), covar_pop(age,income) from people

-- regression
select regr_slope(income, age), regr_intercept(income, age), regr_r2(income, age) from people

-- rows as units, joined with a public table
select city, avg(x) from logs l join sites s on l.site=s.site group by city

-- rows as units, joined to the left
select count(*), count(city) from logs l left join sites s on l.site=s.site

-- pages that nobody declared
--! delta 1e-6
select page, count(*) from logs group by page

-- a condition on released counts
select health, n*2 as d from (select health, count(*) n from people group by health) where n > 3 order by d desc

-- everything of a released part
with c as (select health, count(*) n from people group by health) select * from c where health is not null order by n

-- an expression of released counts
select health, round(100 * n / (n + 1), 2) from (select health, count(*) n from people group by health) t where t.n > 1

-- counts of people by their number of rows
select k, count(*) from (select person, least(count(*), 5) as k from people group by person) group by k

-- averages within a person and group
select health, avg(age) from (select person, health, avg(age) age from people group by person, health) group by health

-- a quotient as a key
select age/10 k, count(*) from people group by k

-- whole quotients and remainders
select age//10 k, age % 7, count(*) from people group by all

-- text put together
select upper(health) || '-' || coalesce(female::text, 'none') k, count(*) from people group by k

-- nothing put into words
select coalesce(health, 'unknown') k, nullif(health, 'good'), count(*) from people group by 1, 2

-- truths as keys
select age > 50 and female k, female is true, female is not false, count(*) from people group by all

-- rounded keys
select round(income, -3) r, round(income / 1000), count(*) from people group by r, 2

-- parts of text
select length(health), left(health, 1), right(health, 1), substr(health, 2, 2), strpos(health, 'o'), count(*) from people group by all

-- tests of text
select starts_with(health, 'g'), contains(health, 'o'), suffix(health, 'r'), trim(health), count(*) from people group by all

-- text put together in two ways
select concat(health, '!'), health || '!', count(*) from people group by all

-- cases in two spellings
select case health when 'good' then 1 when 'fair' then 2 end, if(age > 30, 1, 0), count(*) from people group by all

-- functions of numbers
select sum(age), sum(-age), sum(abs(age - 50)), sum(sign(age - 50)), sum(sqrt(age)), sum(age ^ 2), sum(ln(age + 1)) from people

-- casts
select avg(age::double), avg(cast(income as integer)), avg(greatest(0, least(9, try_cast(health as double)))) from people where cast(age as varchar) <> '1'

-- distinct from
select count(*) from people where age is distinct from year and health is not distinct from 'good'

-- three-valued logic
select count(*) from people where not (age = 3 or age <> 4) is null

-- constants and cases over a count
select count(*) + 1, 'x', case when count(*) > 5 then 'many' else 'few' end from people

-- having without groups
select count(*) from people having count(*) > 5

-- the two largest groups
select health from people group by health order by count(*) desc, health limit 2
-- oracle
select health from people where health is not null group by health order by count(*) desc, health limit 2

-- counts of what is there
select count(income), count(person), count(distinct age) from people

-- brackets in a join
select count(*) from people p join visits v on (p.person = v.person and (p.year = v.year and p.age > 3))

-- brackets in a condition
select count(*) from people where (age > 3 and (person in (select person from visits))) and health = 'good'
