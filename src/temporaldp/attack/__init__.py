"""What a finished release of one's own gives away: the likelihood-ratio attack, against what is guaranteed."""

from temporaldp.attack.release_attack import ReleaseAttack, attack_release

__all__ = ["ReleaseAttack", "attack_release"]
