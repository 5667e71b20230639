-- Ends one reservation: its place is free, its estimate becomes what was used.
--
-- ARGV   2 reservation id, 3 whether the attempt began: '1' or '0' (its request is given back),
--        4 units of tokens used, or -1 if not known: then the estimate stays charged
-- Reply  {1}, or {0} if no such reservation runs, and then nothing changed
if not record or tonumber(redis.call('ZSCORE', KEYS[2], id) or 0) <= now then return {0} end

local batch, estimate = string.match(record, '(%d) (%d+)')
local used = tonumber(ARGV[4])
local requests, tokens = ARGV[3] == '1' and 0 or request, used < 0 and 0 or estimate - used
local back = {requests, tokens, requests, tokens}
for bucket = 1, batch == '1' and 4 or 2 do
  level[bucket] = math.min(size[bucket], level[bucket] + back[bucket])
end
places, batch_places = places - 1, batch_places - batch
write()
redis.call('HDEL', KEYS[1], id_record)
redis.call('ZREM', KEYS[2], id)
return {1}
