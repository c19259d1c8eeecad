-- When the first pause opened, from a time on, that was decided: it is among all, and in none of the lists of those that
-- stand otherwise. How many there are up to a time is told by counting each list, so that it is found by halving, however
-- many others stand before it. KEYS: all, then the others. Gives nothing where there is none.
local from = tonumber(ARGV[1])

local function count(until_then)
    local low, high = string.format('%.0f', from), string.format('%.0f', until_then)
    local decided = redis.call('ZCOUNT', KEYS[1], low, high)
    for number = 2, #KEYS do
        decided = decided - redis.call('ZCOUNT', KEYS[number], low, high)
    end
    return decided
end

local last = redis.call('ZRANGE', KEYS[1], -1, -1, 'WITHSCORES')[2]
if not last or count(tonumber(last)) <= 0 then
    return false
end
local low, high = from, tonumber(last)
-- Far more times than a time can be halved: numbers that are too large to be told apart come to an end as well.
for _ = 1, 64 do
    if low >= high then
        break
    end
    local middle = math.floor((low + high) / 2)
    if count(middle) > 0 then
        high = middle
    else
        low = middle + 1
    end
end
return string.format('%.0f', low)
