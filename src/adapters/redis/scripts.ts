/**
 * Stores a pointer where its epoch is higher than the stored one and its term not lower; or where it means the same, and its term is higher, or its
 * term is the same and the beat of its canary higher. One that cannot be read counts as none: what is no pointer at all, and the text that the
 * writer found to be none. Then hints the watchers.
 * KEYS pointer · ARGV epoch, term, beat, what the pointer means (all but term and beat) as canonical JSON, pointer as JSON, channel, the text that
 * cannot be read or nothing · answers nil where applied, else the stored pointer.
 */
export const WRITE_POINTER = `
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
local current = redis.call('HMGET', KEYS[1], 'epoch', 'term', 'pointer', 'beat', 'meaning')
local readable, stored = pcall(cjson.decode, current[3] or '')
local isPointer = readable and type(stored) == 'table' and type(stored.stable) == 'table'
if isPointer and current[3] ~= ARGV[7] and stored.epoch == tonumber(current[1]) and stored.term == tonumber(current[2]) then
  local rises = tonumber(ARGV[1]) > tonumber(current[1]) and tonumber(ARGV[2]) >= tonumber(current[2])
  local later = tonumber(ARGV[2]) - tonumber(current[2])
  local renews = current[4] and later == 0 and tonumber(ARGV[3]) > tonumber(current[4])
  if not rises and not (ARGV[4] == current[5] and (later > 0 or renews)) then return current[3] end
end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'term', ARGV[2], 'beat', ARGV[3], 'meaning', ARGV[4], 'pointer', ARGV[5])
redis.call('PUBLISH', ARGV[6], ARGV[1])
return nil`;

/** Keeps bytes under a name that says what they are: the first that come stay, unless they are no bytes at all. KEYS document · ARGV bytes. */
export const PUT_DOCUMENT = `
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'string' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], ARGV[1], 'NX')
return 1`;

/**
 * Takes or renews a lease: the first that the holder has already, else the first that nobody has. KEYS leases · ARGV holder, ttl in ms · answers its
 * place from 1, or 0 where others have all of them. What is under a key and no text is nobody's.
 */
export const HOLD_LEASE = `
local free = 0
for place, key in ipairs(KEYS) do
  local holder = redis.call('TYPE', key).ok == 'string' and redis.call('GET', key)
  if holder == ARGV[1] then
    free = place
    break
  end
  if not holder and free == 0 then free = place end
end
if free > 0 then redis.call('SET', KEYS[free], ARGV[1], 'PX', ARGV[2]) end
return free`;

/** Gives a lease back, where it is still held. KEYS lease · ARGV holder. */
export const RELEASE_LEASE = `
if redis.call('TYPE', KEYS[1]).ok == 'string' and redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end
return 1`;

const NOW_MS = `
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)`;

/**
 * Keeps a member's report until its time is up, beside those of the others. The hash lives as long as its longest-lived report.
 * KEYS reports · ARGV member, ttl in ms, text.
 */
export const WRITE_REPORT = `${NOW_MS}
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'hash' and kind ~= 'none' then redis.call('DEL', KEYS[1]) end
redis.call('HSET', KEYS[1], ARGV[1], string.format('%.0f', now + ARGV[2]) .. ' ' .. ARGV[3])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then redis.call('PEXPIRE', KEYS[1], ARGV[2]) end
return 1`;

/** Reports whose time is not up, and that are reports, as member, text, member, text, …; the others are removed. KEYS reports. */
export const READ_REPORTS = `${NOW_MS}
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' then return {} end
local live = {}
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  local space = string.find(all[i + 1], ' ', 1, true)
  local ends = space and tonumber(string.sub(all[i + 1], 1, space - 1))
  if ends and ends > now then
    live[#live + 1] = all[i]
    live[#live + 1] = string.sub(all[i + 1], space + 1)
  else
    redis.call('HDEL', KEYS[1], all[i])
  end
end
return live`;
