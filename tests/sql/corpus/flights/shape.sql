-- spread of delays
SELECT origin, STDDEV_POP(dep_delay) AS p, STDDEV_SAMP(arr_delay) AS s FROM departures GROUP BY origin

-- variances of planes' flights
SELECT VAR_POP(distance) AS p, VAR_SAMP(distance) AS s FROM flights

-- delays go together
SELECT month, CORR(arr_delay, dep_delay) AS r FROM departures GROUP BY month

-- covariance of distance and time
SELECT COVAR_POP(air_time, distance) AS p, COVAR_SAMP(air_time, distance) AS s FROM departures

-- minutes for a mile
SELECT REGR_SLOPE(air_time, distance) AS slope, REGR_INTERCEPT(air_time, distance) AS start, REGR_R2(air_time, distance) AS r2 FROM departures

-- quantiles of delays
SELECT QUANTILE_CONT(dep_delay, 0.05) AS early, MEDIAN(dep_delay) AS middle, QUANTILE_CONT(dep_delay, 0.95) AS late FROM departures

-- quantiles by carrier
SELECT carrier, PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY arr_delay) AS late FROM flights GROUP BY carrier
-- oracle
SELECT carrier, [quantile_disc(arr_delay, 0.9), quantile_cont(arr_delay, 0.9)] AS late FROM flights GROUP BY carrier

-- a quantile in falling order
SELECT PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY distance DESC) AS far FROM departures

-- longest and shortest
SELECT origin, MIN(distance) AS shortest, MAX(distance) AS longest, MAX(air_time) AS most FROM departures GROUP BY origin

-- the commonest carrier
SELECT origin, MODE(carrier) AS carrier FROM departures GROUP BY origin

-- the commonest hour
SELECT MODE(hour) AS hour, MODE(month) AS month FROM flights

-- Gaussian noise over many groups
--! delta 1e-6
SELECT carrier, month, COUNT(*) AS n FROM flights GROUP BY carrier, month
