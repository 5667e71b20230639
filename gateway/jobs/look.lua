-- What a caller may know of a job of theirs, which ends first if that is asked.
--
-- ARGV   1 id, 2 name of the owner, 3 the owner's rights, 4 milliseconds for which those count,
--        5 "1" to cancel the job
-- Reply  {} if the owner has no such job, else {state, milliseconds of acceptance and of expiry,
--        attempts, reason, id of its successor, question, answer}
local id, owner = ARGV[1], ARGV[2]
local state = state_of(id)
if not state or not belongs_to(id, owner) then return {} end
-- Who looks again and again with the same rights makes no write of it, each of which is a sync.
local seen = ROOT .. 'rights:' .. owner
if redis.call('GET', seen) ~= ARGV[3] or redis.call('PTTL', seen) < 0.9 * ARGV[4] then
  redis.call('SET', seen, ARGV[3], 'PX', ARGV[4])
end
if ARGV[5] == '1' and is_open(state) then finish(id, 'cancelled', '') end
return redis.call('HMGET', key_of(id), 'state', 'accepted', 'expires', 'attempts', 'reason',
  'successor', 'question', 'answer')
