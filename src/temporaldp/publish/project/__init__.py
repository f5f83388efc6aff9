"""The project file: one TOML document that defines a release."""

from temporaldp.publish.project.project import Project

__all__ = ["Project"]
