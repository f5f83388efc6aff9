"""The project file: one TOML document that says what a release is."""

from temporaldp.project.project import Project

__all__ = ["Project"]
