"""What a column of the owner's file holds, what it should be declared as, and what the owner should look at.

Heuristics, each with its constant and a line that says why. They run on the owner's machine; cells that a finding shows never get into the draft.
"""
