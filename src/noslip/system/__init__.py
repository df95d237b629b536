"""What a mechanical system is."""

from noslip.system.definition import Parameters, System

__all__ = ["Parameters", "System"]
