"""The kernels in machine code, by Numba. Imported when first used: nothing else in the package may import it at the top.

Every kernel releases Python's lock and runs on the thread that calls it; `temporaldp.kernels.threads` spreads calls over
the cores. That needs none of Numba's own threading layers, which abort a process that forks or calls them from two threads.
"""
