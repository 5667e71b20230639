-- ARGV   1 most ids
-- Reply  ids of jobs that the clock has to move on, the longest overdue first
return redis.call('ZRANGEBYSCORE', DUE, '-inf', now, 'LIMIT', 0, ARGV[1])
