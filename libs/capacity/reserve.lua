-- Grants one attempt its request, its tokens and its place, or changes nothing.
--
-- ARGV   2 reservation id, 3 batch: '1' or '0', 4 units of the estimated tokens
-- Reply  {code, microseconds until it can be granted, or -1 if that is not known}
local GRANTED, REQUESTS, TOKENS, IN_FLIGHT, TOO_LARGE = 0, 1, 2, 3, 4
local batch, tokens = ARGV[3] == '1', tonumber(ARGV[4])
local cost = {request, tokens, request, tokens}
local last = batch and 4 or 2

for bucket = 1, last do
  if cost[bucket] > size[bucket] then return {TOO_LARGE, -1} end
end

if not level then create() end
if record and tonumber(redis.call('ZSCORE', KEYS[2], id) or 0) > now then return {GRANTED, 0} end

-- Lapsed leases matter only where a place is short or the id is one of them; there are never more
-- of them than places.
local lapsed
if places >= places_limit or batch and batch_places >= batch_places_limit or record then
  lapsed = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now)
  for _, gone in ipairs(lapsed) do
    local was_batch = string.sub(redis.call('HGET', KEYS[1], 'lease:' .. gone), 1, 1)
    places, batch_places = places - 1, batch_places - was_batch
  end
  if places >= places_limit or batch and batch_places >= batch_places_limit then
    return {IN_FLIGHT, -1}
  end
end

local wait, why = opens - now, REQUESTS
for bucket = 1, last do
  local short = math.ceil((cost[bucket] - level[bucket]) / rate[bucket])
  if short > wait then
    wait, why = short, bucket % 2 == 1 and REQUESTS or TOKENS
  end
end
if wait > 0 then return {why, wait} end

if lapsed then
  for _, gone in ipairs(lapsed) do
    redis.call('ZREM', KEYS[2], gone)
    redis.call('HDEL', KEYS[1], 'lease:' .. gone)
  end
end
for bucket = 1, last do
  level[bucket] = level[bucket] - cost[bucket]
end
places, batch_places = places + 1, batch_places + ARGV[3]
write(id_record, ARGV[3] .. ' ' .. ARGV[4])
redis.call('ZADD', KEYS[2], now + lease, id)
return {GRANTED, 0}
