"""The ways in which random ops are seeded in a replay, see `advisor.replay.seeding`.

In: nothing.  Out: their names; importing this file needs no TensorFlow.
"""

AS_RECORDED, TWIN, OTHER = "as recorded", "twin", "other"
