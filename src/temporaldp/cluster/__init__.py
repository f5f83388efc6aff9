"""Work that is spread over a cluster: PySpark, which the extra `spark` installs, and Java."""

from temporaldp.cluster.spark import SparkLeakage, leakage_on_spark

__all__ = ["SparkLeakage", "leakage_on_spark"]
