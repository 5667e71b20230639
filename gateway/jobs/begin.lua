-- Begins an attempt, unless the job is not waiting for one or no attempt may begin yet.
--
-- ARGV   1 id, 2 milliseconds of a lease, 3 most attempts, 4 milliseconds between two starts,
--        5 milliseconds after an outage until starts are as frequent as that again
-- Reply  {0} nothing to do, {1, milliseconds until an attempt may begin}, or
--        {2, fence, attempts, rights at acceptance, rights as last verified, question}
local id, interval, ramp = ARGV[1], tonumber(ARGV[4]), tonumber(ARGV[5])
local SLOWEST = 10 -- times the interval, right after an outage

if state_of(id) ~= 'queued' or now < number(id, 'not_before') then return {0} end
if number(id, 'attempts') >= tonumber(ARGV[3]) then
  finish(id, 'failed', get(id, 'reason'))
  return {0}
end

local outage = tonumber(redis.call('HGET', PACE, 'outage') or 0)
local earliest = tonumber(redis.call('HGET', PACE, 'next') or 0)
-- Later than it can be: the server's clock went back.
if earliest > now + SLOWEST * interval then earliest = now end
earliest = math.max(earliest, outage)
if now < earliest then return {1, earliest - now} end
local left = outage > 0 and math.max(0, 1 - (now - outage) / ramp) or 0
local pause = interval * (1 + (SLOWEST - 1) * left)
redis.call('HSET', PACE, 'next', string.format('%.0f', now + pause))

redis.call('HINCRBY', key_of(id), 'attempts', 1)
redis.call('HINCRBY', key_of(id), 'fence', 1)
redis.call('HSET', key_of(id), 'state', 'running', 'lease', now + ARGV[2])
wake(id, now + ARGV[2])
return {2, number(id, 'fence'), number(id, 'attempts'), get(id, 'rights'),
  redis.call('GET', ROOT .. 'rights:' .. get(id, 'owner')), get(id, 'question')}
