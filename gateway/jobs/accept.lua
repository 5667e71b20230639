-- Accepts a question: key, record and queue entry come into being together, or nothing does.
--
-- ARGV   1 id, 2 name of the owner, 3 the owner's rights, 4 name of the idempotency key or nothing,
--        5 digest of the input, 6 question, 7 milliseconds until it expires, 8 milliseconds for
--        which it is kept once it has ended, 9 most jobs that may be open, 10 most milliseconds
--        that one may have to wait, 11 milliseconds between two starts, 12 id of the job that it
--        takes the place of, or nothing, 13 name of the tenant, 14 most jobs of it that may be open
-- Reply  {0, id} accepted, also earlier under the same key; {1} the key stands for another
--        question; {2} too many are open, of all or of the tenant; {3} too long a wait; {4} no
--        such job to take the place of
local id, owner, rights, replaced, tenant = ARGV[1], ARGV[2], ARGV[3], ARGV[12], ARGV[13]
local key = ARGV[4] ~= '' and ROOT .. 'key:' .. ARGV[4]

local known = key and redis.call('GET', key)
if known and state_of(known) then
  if get(known, 'input') ~= ARGV[5] then return {1} end
  return {0, known}
end
if replaced ~= '' and not belongs_to(replaced, owner) then return {4} end

local open = redis.call('ZCARD', OPEN)
local of_tenant = tonumber(redis.call('HGET', TENANTS, tenant) or 0)
if open >= tonumber(ARGV[9]) or of_tenant >= tonumber(ARGV[14]) then return {2} end
-- It waits as long as the oldest has waited already, and for the starts of all that are before it.
local oldest = redis.call('ZRANGE', OPEN, 0, 0, 'WITHSCORES')
local waited = oldest[2] and now - oldest[2] or 0
if math.max(waited, open * ARGV[11]) > tonumber(ARGV[10]) then return {3} end

redis.call('HSET', key_of(id), 'state', 'queued', 'owner', owner, 'rights', rights,
  'input', ARGV[5], 'question', ARGV[6], 'accepted', now, 'expires', now + ARGV[7],
  'kept', ARGV[8], 'tenant', tenant, 'attempts', 0, 'fence', 0, 'reason', '', 'successor', '')
if key then
  redis.call('HSET', key_of(id), 'key', key)
  redis.call('SET', key, id)
end
redis.call('SET', ROOT .. 'rights:' .. owner, rights, 'PX', ARGV[7])
redis.call('ZADD', OPEN, now, id)
redis.call('HINCRBY', TENANTS, tenant, 1)
wake(id, now + ARGV[7])
enqueue(id)
if replaced ~= '' and is_open(state_of(replaced)) then
  finish(replaced, 'superseded', '')
  redis.call('HSET', key_of(replaced), 'successor', id)
end
return {0, id}
