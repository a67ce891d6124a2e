-- What nodes hold of something: the sum in r, and in n what each of them holds, with its last sign of life. `due` is when
-- a node may have been quiet for too long, so that nobody looks before; 0 where nobody holds anything. What is booked for
-- lost nodes is in k. Both are entries of one length after the other, for a node each.

local QUIET = 60000
local HELD = '<c12dd'
local HELD_BYTES = 28
local BOOKED = '<c12d'
local BOOKED_BYTES = 20

-- Where the entry of this node begins.
local function entry_of(entries, node, bytes)
  for at = 1, #entries, bytes do
    if string.sub(entries, at, at + 11) == node then return at end
  end
end

-- The entries with another one in this place, or without it. No place is the end.
local function with_entry(entries, at, bytes, entry)
  -- Mostly nobody else holds anything.
  if #entries == 0 or at and #entries == bytes then return entry end
  if not at then return entries .. entry end
  return string.sub(entries, 1, at - 1) .. entry .. string.sub(entries, at + bytes)
end

-- What is booked for a node.
local function booked_for(record, node)
  local at = entry_of(record.k, node, BOOKED_BYTES)
  if not at then return 0 end
  local _, amount = struct.unpack(BOOKED, record.k, at)
  return amount, at
end

local function book(record, node, amount)
  local booked, at = booked_for(record, node)
  local left = booked + amount
  local k = with_entry(record.k, at, BOOKED_BYTES, left > 0 and struct.pack(BOOKED, node, left) or '')
  record.k = string.sub(k, -BOOKED_NODES * BOOKED_BYTES)
end

-- Lets go of what lost nodes held, and gives how much that was.
local function lose(record)
  if record.due == 0 or now < record.due then return 0 end
  local lost, due, kept = 0, 0, {}
  for at = 1, #record.n, HELD_BYTES do
    local node, amount, sign = struct.unpack(HELD, record.n, at)
    if now - sign >= QUIET then
      lost = lost + amount
      if record.k and amount > 0 then book(record, node, amount) end
    else
      kept[#kept + 1] = string.sub(record.n, at, at + HELD_BYTES - 1)
      if due == 0 or sign + QUIET < due then due = sign + QUIET end
    end
  end
  record.r, record.due, record.n = math.max(0, record.r - lost), due, table.concat(kept)
  return lost
end

local function hold(record, amount)
  local at, held = entry_of(record.n, NODE, HELD_BYTES), 0
  if at then held = struct.unpack('<d', record.n, at + 12) end
  record.n = with_entry(record.n, at, HELD_BYTES, struct.pack(HELD, NODE, held + amount, now))
  record.r = record.r + amount
  if record.due == 0 then record.due = now + QUIET end
end

-- Gives back as much as this node still holds, and says how much that was.
local function release(record, amount)
  local at = entry_of(record.n, NODE, HELD_BYTES)
  if not at then return 0 end
  local held = struct.unpack('<d', record.n, at + 12)
  local given = math.min(held, amount)
  record.r = math.max(0, record.r - given)
  record.n = with_entry(record.n, at, HELD_BYTES, held > given and struct.pack(HELD, NODE, held - given, now) or '')
  return given
end
