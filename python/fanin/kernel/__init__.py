"""The engine `kernel`: real Linux TCP in virtual time, as an ordinary user.

========== ==========================================================
module     what is in it
========== ==========================================================
cache      where built kernels are, and which one fits this fanin
build      from the distribution's kernel source to one binary
machine    one run of it: start, watch, end
engine     a scenario's plan on it, with the frames of `fanin.run`
command    `fanin kernel build | status | clean`
========== ==========================================================
"""
