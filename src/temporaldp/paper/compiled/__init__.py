"""The paper's own algorithm in machine code, by Numba; imported when first used."""
