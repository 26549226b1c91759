"""The engine `testbed`: the running kernel's TCP in network namespaces, in real time. Root.

========== ==========================================================
module     what is in it
========== ==========================================================
engine     a scenario's plan on it, with the frames of `fanin.run`
host       what this machine has, and what it cannot carry
network    namespaces and veth; gone with the process that made them
processes  switch and player
shims      algorithms beside the kernel: a library in front of the player
honesty    how honest a run was, and when it is no result
========== ==========================================================
"""
