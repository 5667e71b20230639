-- The jobs and what is true of each at any time. Every script of this folder begins with this.
--
-- KEYS[1]  the root of all names. It holds the hash tag, so that all of them lie in one slot.
--
-- open     sorted set: id of each job that has not ended -> millisecond of its acceptance
-- due      sorted set: id -> millisecond at which nobody but the clock moves it on: its lease
--          lapses, its next attempt may begin, or it expires
-- queue    stream from which the workers' library takes ids
-- job:ID   hash, see accept.lua; it stays for a while after the end
-- key:X    id of the job that a caller's idempotency key stands for
-- tenants  hash: name of a tenant -> how many of its jobs are open
-- rights:X rights of an owner, a tenant's subject, as they were last verified
-- pace     hash: when the next attempt may begin, and what is known of an outage
--
-- States: queued -> running -> done | failed, running -> queued for another attempt, and from
-- both to expired | cancelled | superseded. What has ended stays as it is.
local ROOT = KEYS[1]
local OPEN, DUE, QUEUE, PACE = ROOT .. 'open', ROOT .. 'due', ROOT .. 'queue', ROOT .. 'pace'
local TENANTS = ROOT .. 'tenants'
local clock = redis.call('TIME')
local now = clock[1] * 1000 + math.floor(clock[2] / 1000)

local function key_of(id) return ROOT .. 'job:' .. id end
local function get(id, field) return redis.call('HGET', key_of(id), field) end
local function number(id, field) return tonumber(get(id, field) or 0) end

-- An entry as the library's own formatter writes it. Ids are hexadecimal.
local function enqueue(id)
  local entry = '{"task_id":"' .. id .. '","task_name":"answer","labels":{},'
    .. '"labels_types":null,"args":["' .. id .. '"],"kwargs":{}}'
  redis.call('XADD', QUEUE, '*', 'data', entry)
end

local function wake(id, at)
  redis.call('ZADD', DUE, string.format('%.0f', math.min(at, number(id, 'expires'))), id)
end

local function finish(id, state, reason)
  local job, key, kept = key_of(id), get(id, 'key'), number(id, 'kept')
  redis.call('HSET', job, 'state', state, 'reason', reason)
  redis.call('HDEL', job, 'lease', 'not_before', 'rights')
  redis.call('PEXPIRE', job, kept)
  if key and redis.call('GET', key) == id then redis.call('PEXPIRE', key, kept) end
  local tenant = redis.call('ZREM', OPEN, id) == 1 and get(id, 'tenant')
  if tenant and redis.call('HINCRBY', TENANTS, tenant, -1) < 1 then
    redis.call('HDEL', TENANTS, tenant)
  end
  redis.call('ZREM', DUE, id)
end

-- The state, in which the job's time is accounted for; false if there is no such job.
local function state_of(id)
  local state = get(id, 'state')
  if (state == 'queued' or state == 'running') and now >= number(id, 'expires') then
    finish(id, 'expired', '')
    return 'expired'
  end
  return state
end

local function is_open(state) return state == 'queued' or state == 'running' end

local function belongs_to(id, owner) return get(id, 'owner') == owner end

-- Whether this attempt is still the one whose word counts.
local function is_current(id, fence)
  return state_of(id) == 'running' and get(id, 'fence') == fence
end
