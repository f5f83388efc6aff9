"""One pair of rows against a metric: a simplex on trees, in functions that run as they stand or in machine code.

Plain loops over arrays and numbers, so that `temporaldp.kernels.compiled.lifting` can compile these very functions, and an
installation without Numba runs them slowly. Every file uses this notation.

Notation
--------
q, d    two rows of a transition matrix, cut to the m values that either can come from
b       metric between values: the likelihoods x obey ``x_a <= e^b(a, c) x_c``
wide    the same, widened by about 1e-13, each constraint by its own amount: two never become tight together by chance
u       ``log x``;  lq, ld: ``log q x`` and ``log d x``, so that the pair leaks ``lq - ld``
w       ``q_k x_k / q x - d_k x_k / d x``, what value k contributes; the sum is 0
tree    tight constraints: ``parent[v]`` (-1 at a root), and ``upper[v]``: ``u_v = u_p + b(v, p)``, else ``u_v = u_p - b(p, v)``
S, E, G of a subtree: its w sum to ``S e^E``, their parts without signs to ``G e^E``; E is 0 unless u spans hundreds of nats
"""
