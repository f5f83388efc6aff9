"""The project file: one TOML document that defines a release."""

from temporaldp.project.project import Project

__all__ = ["Project"]
