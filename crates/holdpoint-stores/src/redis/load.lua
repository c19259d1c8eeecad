-- Runs as they stand at one moment: of each its record, that of its session where its own says plainly which it is, and its
-- first entries after a revision. KEYS: runs, sessions, then the journal of each run. ARGV: how many entries come with a run at
-- most, then the names of the runs, then the revisions.
local call, unpack, tonumber, match, min = redis.call, unpack, tonumber, string.match, math.min
local count, most = #KEYS - 2, tonumber(ARGV[1])
local runs = call('HMGET', KEYS[1], unpack(ARGV, 2, count + 1))

-- A record is a list that begins with the session, the agent, the first event and the revision. No session is named ''.
local names, lasts = {}, {}
for number = 1, count do
    local name, last
    if runs[number] then
        name, last = match(runs[number], '^%["([^"\\]+)","[^"\\]*",%d+,(%d+),')
    end
    names[number], lasts[number] = name or '', last or false
end
local sessions = call('HMGET', KEYS[2], unpack(names))

local answer = {}
for number = 1, count do
    local entries = {}
    if runs[number] then
        local after, fields = tonumber(ARGV[count + 1 + number]), {}
        local wanted = lasts[number] and min(most, tonumber(lasts[number]) - after) or most
        for at = 1, wanted do
            fields[at] = after + at
        end
        if wanted > 0 then
            entries = call('HMGET', KEYS[number + 2], unpack(fields))
        end
    end
    local at = 3 * number
    answer[at - 2], answer[at - 1], answer[at] = runs[number], sessions[number], entries
end
return answer
