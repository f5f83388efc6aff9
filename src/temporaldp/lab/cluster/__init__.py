"""Computations on a cluster with PySpark (the extra `spark`, and Java)."""

from temporaldp.lab.cluster.spark import SparkLeakage, leakage_on_spark

__all__ = ["SparkLeakage", "leakage_on_spark"]
