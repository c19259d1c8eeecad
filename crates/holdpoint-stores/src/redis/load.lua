-- Runs as they stand at one moment: of each its record, and that of its session where its own says plainly which it is. KEYS:
-- runs, sessions. ARGV: the names of the runs. What they wrote does not pass through here: it may be large, and never changes.
local runs = redis.call('HMGET', KEYS[1], unpack(ARGV))
local names = {}
for number, run in ipairs(runs) do
    -- A list that begins with the session. No session is named ''.
    names[number] = run and string.match(run, '^%["([^"\\]+)",') or ''
end
local sessions = redis.call('HMGET', KEYS[2], unpack(names))
local answer = {}
for number = 1, #ARGV do
    answer[2 * number - 1], answer[2 * number] = runs[number], sessions[number]
end
return answer
