-- One query a line. Each means the same to hubbub and to DuckDB, on data within the declared bounds.
SELECT count(*) FROM people
SELECT COUNT(*) c, SUM(income) FROM people WHERE female AND age BETWEEN 20 AND 30
select floor(age/10)*10 as decade, avg(income) from people group by 1 order by 1
select floor(age/10)*10 as decade, avg(income) from people group by decade order by decade
select case when age<18 then 'child' when age<65 then 'adult' else 'old' end as k, count(distinct person) from people group by k
select month(day) m, count(*) from people group by all
select date_trunc('month', day), count(*) from people group by 1
select date_trunc('week', seen), date_part('dow', seen), count(*) from people group by 1, 2
with a as (select person, age, health from people where age>10) select health, count(*) from a group by health
with a as (select person, age, health from people), b as (select * from a where age>10) select b.health, median(age) from b group by b.health
with a(p, q) as (select person, age from people) select avg(q), count(distinct p) from a
select health, count(*) from (select health from people union all select health from people where age > 50) group by health
select count(distinct person), sum(x) from (select person, age as x from people union all select person, cost from visits)
select avg(n) from (select person, least(count(*),10) as n from people group by person)
select avg(m) from (select person, avg(income) m, max(age) from people group by person having count(*)>1) q
select avg(m), max(s) from (select person, year, avg(income) m, least(greatest(sum(cost), 0), 500) s from people join visits using (person, year) group by person, year)
select count(*) from (select distinct person, health from people)
select s.city, count(*) from people p join sites s on p.site = s.site group by s.city
select city, count(*), sum(greatest(0, least(beds, 100))) from people join sites using (site) group by city
select city, count(*) from people p left join sites s using (site) group by city
select count(*) from sites s join people p on p.site = s.site and s.beds > 20
select count(*), count(city) from sites s right join people p using (site)
select count(distinct p.person), avg(v.cost) from people p join visits v on p.person=v.person
select p.health, sum(v.cost) from people p left join visits v using (person) where p.age>3 group by 1
select a.health, count(*) from people a join people b on a.person=b.person and a.year = b.year+1 group by a.health
select count(*) from people h join visits v on h.person = v.person and h.age > v.cost
select count(*) from people h join (select person, max(cost) m from visits group by person) v on h.person = v.person where v.m > 5
select count(*) from people where person in (select person from visits where cost > 10) and age > 3
select health, female, count(*) from people group by rollup(health, female)
select health, female, count(*) from people group by cube(health, female)
select health, female, count(*) from people group by grouping sets ((health), (female), ())
select year, health, female, count(*) from people group by year, grouping sets ((health, female), rollup(health))
select health, count(*)*100.0/5 as pct, sum(income)/count(*) from people group by health having count(*)>5 order by sum(income) desc nulls last, 1
select health, count(*) n from people group by health having n > 5 order by n+1, health
select count(*) filter (where age>30), count_if(female), sum(case when female then 1 else 0 end) from people
select percentile_cont(0.9) within group (order by income), quantile_cont(age, 0.25), median(income) from people
select percentile_cont(0.2) within group (order by income desc) from people
select "age", count(*) from people group by "age"
select AGE, COUNT(*) FROM PEOPLE group by Age
select count(*) from people where day >= '2020-01-01' and day < date '2020-12-01' + interval 1 month
select count(*) from people where seen > timestamp '2020-05-01 12:00:00' or seen - interval 3 hour < '2020-02-02'
select count(*) from people where day + 30 > date '2021-01-01' and day - date '2019-01-01' > 100
select extract(year from day) y, quarter(day), count(*) from people group by y, 2
select date_diff('month', day, date '2021-12-31') m, count(*) from people group by m
select sum(greatest(0, least(spending, 100))) from people
select count(*) from people where health ilike 'Go%' or lower(health) like 'p_or' and health not in ('fair','poor')
select min(age), max(age), stddev(age), var_pop(age), corr(age, income), covar_pop(age,income) from people
select regr_slope(income, age), regr_intercept(income, age), regr_r2(income, age) from people
select city, avg(x) from logs l join sites s on l.site=s.site group by city
select count(*), count(city) from logs l left join sites s on l.site=s.site
select page, count(*) from logs group by page
select health, n*2 as d from (select health, count(*) n from people group by health) where n > 3 order by d desc
with c as (select health, count(*) n from people group by health) select * from c where health is not null order by n
select health, round(100 * n / (n + 1), 2) from (select health, count(*) n from people group by health) t where t.n > 1
select k, count(*) from (select person, least(count(*), 5) as k from people group by person) group by k
select health, avg(age) from (select person, health, avg(age) age from people group by person, health) group by health
select age/10 k, count(*) from people group by k
select age//10 k, age % 7, count(*) from people group by all
select upper(health) || '-' || coalesce(female::text, 'none') k, count(*) from people group by k
select coalesce(health, 'unknown') k, nullif(health, 'good'), count(*) from people group by 1, 2
select age > 50 and female k, female is true, female is not false, count(*) from people group by all
select round(income, -3) r, round(income / 1000), count(*) from people group by r, 2
select length(health), left(health, 1), right(health, 1), substr(health, 2, 2), strpos(health, 'o'), count(*) from people group by all
select starts_with(health, 'g'), contains(health, 'o'), suffix(health, 'r'), trim(health), count(*) from people group by all
select concat(health, '!'), health || '!', count(*) from people group by all
select case health when 'good' then 1 when 'fair' then 2 end, if(age > 30, 1, 0), count(*) from people group by all
select sum(age), sum(-age), sum(abs(age - 50)), sum(sign(age - 50)), sum(sqrt(age)), sum(age ^ 2), sum(ln(age + 1)) from people
select avg(age::double), avg(cast(income as integer)), avg(greatest(0, least(9, try_cast(health as double)))) from people where cast(age as varchar) <> '1'
select count(*) from people where age is distinct from year and health is not distinct from 'good'
select count(*) from people where not (age = 3 or age <> 4) is null
select count(*) + 1, 'x', case when count(*) > 5 then 'many' else 'few' end from people
select count(*) from people having count(*) > 5
select health from people group by health order by count(*) desc, health limit 2
select count(income), count(person), count(distinct age) from people
select count(*) from people p join visits v on (p.person = v.person and (p.year = v.year and p.age > 3))
select count(*) from people where (age > 3 and (person in (select person from visits))) and health = 'good'
