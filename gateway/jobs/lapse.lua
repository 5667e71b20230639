-- Moves one job on by the clock: it expires, waits for an attempt again, or has had too many.
--
-- ARGV   1 id, 2 most attempts
-- Reply  {1} if a worker was lost with it, else {0}
local id = ARGV[1]
local state = state_of(id)
if not is_open(state) then
  redis.call('ZREM', DUE, id)
  return {0}
end
if state == 'running' then
  if now < number(id, 'lease') then return {0} end
  if number(id, 'attempts') >= tonumber(ARGV[2]) then
    finish(id, 'failed', 'WORKER_LOST')
    return {1}
  end
  redis.call('HSET', key_of(id), 'state', 'queued', 'reason', 'WORKER_LOST')
  redis.call('HDEL', key_of(id), 'lease')
elseif now < number(id, 'not_before') then
  return {0}
end
redis.call('HDEL', key_of(id), 'not_before')
wake(id, number(id, 'expires'))
enqueue(id)
return {state == 'running' and 1 or 0}
