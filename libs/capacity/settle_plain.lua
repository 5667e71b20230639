-- Nearly every time, nobody waits, nothing is ramped and the clock went on.
if state and waiting == 0 and now >= time and time >= ramp_end then
  local expiry = redis.call('ZSCORE', KEYS[2], ARGV[2])
  if not expiry or tonumber(expiry) <= now then return 0 end
  local batch, estimate = struct.unpack(RESERVATION, ARGV[2])
  local used, requests, tokens = tonumber(ARGV[3]), 0, 0
  if used == -2 then requests, tokens = request, estimate end
  if used >= 0 then tokens = estimate - used end
  local elapsed, min = now - time, math.min
  level_1 = min(size_1, min(size_1, level_1 + elapsed * rate_1) + requests)
  level_2 = min(size_2, min(size_2, level_2 + elapsed * rate_2) + tokens)
  level_3 = min(size_3, min(size_3, level_3 + elapsed * rate_3) + batch * requests)
  level_4 = min(size_4, min(size_4, level_4 + elapsed * rate_4) + batch * tokens)
  redis.call('ZREM', KEYS[2], ARGV[2])
  redis.call('SET', KEYS[1], struct.pack(POOL, now, places - 1, batch_places - batch, 0, opens,
    cool_end, ramp_end, level_1, level_2, level_3, level_4))
  return 1
end
