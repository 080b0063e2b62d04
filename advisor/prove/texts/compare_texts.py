"""Compares the datasets of two texts of a script, each held at the first element of its training.

In: two `HeldText`s, and a way to hold the unchanged text once more.  Out: `ComparedDataset`s, and what was not compared.

Both texts start alike: the random generators of Python, NumPy and TensorFlow are seeded at their start, and so are Python's
hashes. A script whose data depend on anything else (the time, the order in which threads run) has other data in each run, which
would look like an effect of the change. So where elements differ more than permitted, the unchanged text is held once more, with
other seeds: if it differs from its first run at least as much, nothing is concluded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from advisor.host.calibration.proof import COMPARED_ELEMENTS, COMPARED_S, SIBLING_ELEMENTS, SIBLING_S, SLOWER_FACTOR
from advisor.model.change_proof import ComparedDataset, ElementDifference
from advisor.model.errors import AdvisorError
from advisor.model.finding import Safety
from advisor.model.text import message_of
from advisor.prove.texts.change_verdict import permitted_effects
from advisor.prove.texts.held_text import HeldDataset, HeldText
from advisor.prove.texts.random_changes import look_closer
from advisor.prove.texts.text_streams import TextStreams
from advisor.prove.trial.elements.compared_streams import Passes
from advisor.prove.trial.elements.element_comparison import OWN_NOISE, ElementComparison
from advisor.prove.trial.elements.judgement import Judgement
from advisor.prove.trial.elements.streams import OriginalFails
from advisor.prove.trial.trial_result import as_sentence
from advisor.replay.seedings import AS_RECORDED

CONTROL_SEED = 15_013
"""An arbitrary seed other than `START_SEED`."""
_SEVERITY = tuple(Safety)
"""From harmless to harmful."""
_OTHER_EVERY_RUN = (
    "Two runs of the unchanged script have different data, too, so an effect of the change cannot be distinguished from it: fix "
    "the seeds of the script."
)


@dataclass(frozen=True, slots=True)
class TextComparison:
    """What is known about the data of two texts."""

    datasets: tuple[ComparedDataset, ...]
    """The first one is that of the training."""
    unknown: tuple[str, ...]
    """Sentences on data that were not compared."""
    passes: Passes | None
    """How the training's dataset was sampled; None if it was not."""


class TextComparer:
    """Compares two held texts."""

    def __init__(
        self, before: HeldText, after: HeldText, control: Callable[[], HeldText], allowed: Collection[Safety] = ()
    ) -> None:
        """Prepare the comparison.

        Args:
            before: The unchanged text.
            after: The changed text.
            control: Holds the unchanged text once more, with other seeds; called at most once.
            allowed: Permitted effects, beyond those that two runs of a script without seeds have.
        """
        self._before, self._after, self._hold_control = before, after, control
        self._permitted = permitted_effects(allowed, before.is_seeded)
        self._control: HeldText | None = None
        self._passes: Passes | None = None

    def compare(self) -> TextComparison:
        """Compare all datasets; what cannot be compared is reported."""
        counts = [len(text.datasets) + text.left_out for text in (self._before, self._after)]
        unknown = []
        if counts[0] != counts[1]:
            unknown.append(
                f"Besides the training's, the script makes {counts[0] - 1} datasets without the change and {counts[1] - 1} with "
                "it, so these were not compared."
            )
        elif self._before.left_out:
            unknown.append(f"{self._before.left_out} further datasets of the script were not compared.")
        count = 1 if counts[0] != counts[1] else min(len(self._before.datasets), len(self._after.datasets))
        datasets = tuple(self._compare(number) for number in range(count))
        return TextComparison(datasets, tuple(unknown), self._passes)

    def _compare(self, number: int) -> ComparedDataset:
        name = self._before.datasets[number].name
        elements, seconds = (COMPARED_ELEMENTS, COMPARED_S) if number == 0 else (SIBLING_ELEMENTS, SIBLING_S)
        compared = ComparedDataset(name, None)
        try:
            before = self._before.open(number, elements.value, seconds.value)
            if number == 0:
                self._passes = before.passes
            after = self._after.open(number, elements.value, SLOWER_FACTOR.value * seconds.value, before.passes)
            streams = TextStreams(before, after)
            judgement = self._judge(number, before, streams)
            compared = _described(name, judgement)
            if judgement.seen not in (None, Safety.EXACT):
                compared = replace(compared, difference=_difference(streams))
        except (AdvisorError, OriginalFails) as error:
            if compared.safety is None:
                compared = replace(compared, note=as_sentence(message_of(error)))
        return compared

    def _judge(self, number: int, before: HeldDataset, streams: TextStreams) -> Judgement:
        judgement = _judged(streams)
        if judgement.seen is None or judgement.seen in self._permitted:
            return judgement
        static = ""
        if judgement.seen is Safety.CHANGES:
            static = streams.static_difference()
            if not static and (streams.frozen_by_cache()[0] or streams.changed(AS_RECORDED).error):
                return judgement  # of the changed text alone
        if self._control is None:
            self._control = self._hold_control()
        if number >= len(self._control.datasets):
            return replace(judgement, seen=None, note=_OTHER_EVERY_RUN)
        again = self._control.open(number, before.passes.length, SLOWER_FACTOR.value * COMPARED_S.value, before.passes)
        control = TextStreams(before, again)
        if static and not control.static_difference():
            return judgement
        as_it_is = _judged(control).seen
        if as_it_is is None or _SEVERITY.index(as_it_is) >= _SEVERITY.index(judgement.seen):
            return replace(judgement, seen=None, note=_OTHER_EVERY_RUN)
        return judgement


def _judged(streams: TextStreams) -> Judgement:
    judgement = ElementComparison(streams).judge()
    if judgement.seen is not Safety.RERANDOMIZED and judgement.note != OWN_NOISE:
        return judgement
    seen = look_closer(streams)
    if seen.difference:
        return replace(judgement, seen=Safety.CHANGES, note=seen.difference, undecided="", power="")
    return replace(judgement, undecided=seen.unknown) if seen.unknown else judgement


def _described(name: str, judgement: Judgement) -> ComparedDataset:
    return ComparedDataset(
        name,
        judgement.seen,
        judgement.elements,
        judgement.is_complete,
        is_undecided=bool(judgement.undecided),
        note=judgement.text,
    )


def _difference(streams: TextStreams) -> ElementDifference | None:
    try:
        return streams.difference()
    except AdvisorError:  # the judgement does not depend on it
        return None
