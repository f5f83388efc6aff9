"""The paper, reproduced from the package's public functions: its figures, its table, and what it says, claim by claim.

Cao, Yoshikawa, Xiao, Xiong: Quantifying Differential Privacy under Temporal Correlations, ICDE 2017.
"""

from temporaldp.paper.claims import Claim, Verdict, check_claims
from temporaldp.paper.document import write_document
from temporaldp.paper.exhibit import Comparison, Curve, Exhibit, Panel
from temporaldp.paper.exhibits import EXHIBITS, exhibit, reproduce, write_csv

__all__ = [
    "EXHIBITS",
    "Claim",
    "Comparison",
    "Curve",
    "Exhibit",
    "Panel",
    "Verdict",
    "check_claims",
    "exhibit",
    "reproduce",
    "write_csv",
    "write_document",
]
