"""The paper's experiments, on any ratings: the protocol, the methods, the study, its report."""

from mixedals.experiments.arms import ARMS, Arm, Point
from mixedals.experiments.protocol import Parts, Protocol
from mixedals.experiments.records import Records
from mixedals.experiments.study import Study

__all__ = ["ARMS", "Arm", "Parts", "Point", "Protocol", "Records", "Study"]
