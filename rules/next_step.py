"""next-step: input is the problem and no other rule has a fix; the cheapest thing to do next, with its reason."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

from advisor.model.units import format_bytes, format_count, format_many, format_ns, format_rate, format_share
from advisor.rule import (
    Analysis,
    Call,
    Evidence,
    Finding,
    Iter,
    Iterator,
    Note,
    Pipeline,
    Rule,
    batch_after,
    cache_places,
    catalog,
    core_use,
    cores_needed,
    costliest_line,
    elements_per_epoch,
    label,
    op_share,
    place,
    read_from_disk,
    share_of_wait,
    smallest_place,
    steps_per_epoch,
    vectorizing_obstacle,
)
from advisor.testing import AUTOTUNE, batch, fires, map_, pipeline, prefetch, silent, source

PASSIVE = frozenset(
    {"Prefetch", "Take", "Repeat", "AssertCardinality", "MemoryCache", "MemoryCacheImpl", *catalog.BOOKKEEPING}
)
"""Types that only pass elements on, so that there is no work in them to reduce."""
DECODING = ("Decode", "Resize", "CropAndResize")
"""Beginnings of the types of ops that turn a file into an image and shrink it."""


@dataclass(frozen=True)
class NextStep(Rule):
    """Steps wait for input, and no other rule has a change for this pipeline.

    ## Why it is slow
    Each step waits for elements whose production takes longer than the step itself. The usual mistakes were looked for
    and not found (the report lists what was considered), so that less work, other work or more hardware is left.

    ## What the fix does
    This is advice only: the cheapest of the steps that apply, in this order. Measure the steps that wait, if they are
    not in the profile. Store what every run computes again (`dataset.save`, the size is predicted). Rewrite a function
    for whole batches by hand, if calling it costs more than its ops; the op in the way is named. Store smaller images,
    if decoding takes most of the time. Make the most expensive op of the slowest function cheaper. If all cores are
    busy, the number of cores is said with which the CPU time of a step fits into the step.

    ## When not to
    When the wait is acceptable: the report says how much it is.

    ## What tf.data already does
    See "already done" in the report. What is proposed here, tf.data never does by itself.
    """

    is_fallback: ClassVar[bool] = True

    min_share: float = 0.1
    """Share of the wait of an iterator that is worth naming. Below a tenth, removing all of its work would be within
    the noise of two runs."""
    max_op_share: float = 0.5
    """Share of a call's time in its ops below which the call itself is the larger cost, which one call per batch
    saves."""
    min_decoding_share: float = 0.5
    """Share of a function's time in decoding and resizing from which smaller images help most."""
    disk_bytes_per_s: float = 500.0 * (1 << 20)
    """Assumed read rate in bytes per second if none was measured, as in `repeated-work-on-disk`."""
    min_unseen_ratio: float = 2.0
    """Ratio of the mean wait without the profiler to the one in the profile from which the profile lacks the steps that
    wait. Two windows of an even run differ by less."""
    min_free_cores: float = 0.25
    """Cores available to the process in addition; with more, further cores would be idle as well."""
    min_own_share: float = 0.8
    """Share of the usable cores used by the process itself; as in `host-saturated`."""
    max_handing_ns: float = 500_000.0
    """Wait per step, in nanoseconds, up to which handing over an element that is ready explains it: 50 to 400 us in
    loops on busy machines with two cores."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield the cheapest next step and, if all cores are busy, the number of cores that would suffice."""
        pipeline = analysis.main
        if pipeline is None:
            yield self._unprofiled(analysis)
            return
        iterator = self._slowest(pipeline)
        yield (
            self._unseen(analysis, pipeline)
            or self._stored(analysis, pipeline)
            or (iterator and self._by_hand(analysis, pipeline, iterator))
            or (iterator and self._smaller(pipeline, iterator))
            or self._handing_over(pipeline, iterator)
            or (iterator and self._cheaper(analysis, pipeline, iterator))
            or self._unknown(analysis, pipeline)
        )
        cores = self._more_cores(analysis, pipeline, iterator)
        if cores is not None:
            yield cores

    def _slowest(self, pipeline: Pipeline) -> Iterator | None:
        """The bottleneck, or else the iterator with work that causes the largest share of the wait."""
        if pipeline.bottleneck is not None:
            return pipeline.iterator(pipeline.bottleneck.iterator_id)
        active = [it for it in pipeline.iterators if catalog.base_type(it.name) not in PASSIVE]
        worst = max(active, key=lambda it: share_of_wait(pipeline, it), default=None)
        return worst if worst is not None and share_of_wait(pipeline, worst) >= self.min_share else None

    def _unprofiled(self, analysis: Analysis) -> Finding:
        """Nothing is known but the wait: no profile was taken, or it shows no request for an element."""
        gaps, recording = analysis.verdict.gaps, analysis.recording
        waited = (
            ""
            if gaps is None
            else f"{format_many(gaps.steps, 'step')} of {format_ns(gaps.step_ns)} waited {format_share(gaps.wait_share)} of "
            "their time for input. "
        )
        why = f"{recording.unprofiled} " if recording is not None and recording.unprofiled else ""
        consumers = recording.consumers if recording is not None else ()
        return self.finding(
            "Profile the steps that wait",
            f"{waited}No profile shows what they waited for. {why}`advisor analyze --seconds 30 {target_of(analysis)}` "
            "profiles a longer window.",
            site=next((consumer.site for consumer in consumers if consumer.is_main), None),
            evidence=() if gaps is None else (Evidence("wait_share", gaps.wait_share, "share"),),
        )

    def _unseen(self, analysis: Analysis, pipeline: Pipeline) -> Finding | None:
        """Most of the wait is in steps outside the profile, such as the first ones of an epoch."""
        steps, recording = pipeline.steps, analysis.recording
        if steps is None or recording is None or analysis.verdict.wait_steps != "unprofiled":
            return None
        least_ns = max(self.min_unseen_ratio * pipeline.mean_call_ns, self.max_handing_ns)
        if steps.wait_mean_ns < least_ns or not pipeline.num_elements:
            return None
        whole = steps_per_epoch(analysis, pipeline)
        count = max(2 * pipeline.num_elements, round(whole) if whole else 10 * pipeline.num_elements)
        epoch = " (a whole epoch)" if whole and count == round(whole) else ""
        return self.finding(
            f"Profile a longer window: --steps {count}",
            f"A step without the profiler waits {format_ns(steps.wait_mean_ns)} for input on average, the "
            f"{format_count(pipeline.num_elements)} profiled ones wait {format_ns(pipeline.mean_call_ns)}: the long waits "
            f"are between them, as at the start of an epoch or while a buffer fills. Run `advisor analyze --steps "
            f"{count} {target_of(analysis)}`{epoch} to see where they come from.",
            site=pipeline.consumer.site if pipeline.consumer else None,
            evidence=(
                Evidence("mean_wait", steps.wait_mean_ns, "ns"),
                Evidence("mean_wait_in_profile", pipeline.mean_call_ns, "ns"),
            ),
        )

    def _stored(self, analysis: Analysis, pipeline: Pipeline) -> Finding | None:
        """Elements that are the same in every run, so that they can be computed once and stored."""
        measured_rate = analysis.host.disk_read_bytes_per_s if analysis.host is not None else None
        rate = measured_rate or self.disk_bytes_per_s
        places = [
            replace(cache_place, prediction=read_from_disk(analysis, pipeline, cache_place, rate))
            for cache_place in cache_places(analysis, pipeline)
            if not cache_place.obstacles
            and not cache_place.assumptions
            and cache_place.call.inputs  # the elements of a source are stored already
            and cache_place.saved_share >= self.min_share
        ]
        gain = max((cache_place.prediction.value for cache_place in places), default=1.0)
        best = smallest_place(places, equal_gain=0.95) if gain >= self.min_speedup else None
        free = analysis.host.disk_free_bytes if analysis.host is not None else None
        if best is None or (free is not None and (best.bytes or 0) > free):
            return None
        call = best.call
        size = "their size is unknown" if best.bytes is None else f"they take {format_bytes(best.bytes)} on disk"
        elements = elements_per_epoch(analysis, pipeline, call)
        many = "The elements" if elements is None else f"The {format_many(elements, 'element')}"
        return self.finding(
            f"Store the result of {label(call)} once and load it in every run",
            f"{many} up to {label(call)} at {place(call)} are the same in every run of this code on these files; making them "
            f"causes {format_share(best.saved_share)} of the wait for input, and {size}. The predicted speedup is that of runs "
            f"that load them from a disk that reads {format_bytes(round(rate))} per second "
            f"({'measured on your files' if measured_rate else 'assumed'}).",
            call=call,
            prediction=best.prediction,
            code=storing_code(call),
            evidence=(
                Evidence("saved_blame_share", best.saved_share, "share"),
                *((Evidence("bytes_on_disk", best.bytes, "bytes"),) if best.bytes is not None else ()),
            ),
        )

    def _by_hand(self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator) -> Finding | None:
        """A function whose calls cost more than its ops, and that cannot be vectorised automatically."""
        call = next((candidate for candidate in iterator.calls if candidate.method == "map"), None)
        batched = batch_after(pipeline, iterator) if call is not None else None
        share = op_share(iterator)
        is_known = call is not None and call.function is not None and call.function.is_traced
        if call is None or not is_known or batched is None or share is None or share > self.max_op_share:
            return None
        obstacle = vectorizing_obstacle(analysis, call, batched)
        size = batched.arguments.get("batch_size")
        if obstacle is None or not isinstance(size, int):
            return None
        is_fused = any(fused.id == batched.id for fused in iterator.calls)
        calls = (iterator.elements or 0) * (size if is_fused else 1)
        if not calls:
            return None
        return self.finding(
            f"Rewrite {label(call)} for whole batches, by hand",
            f"{label(call)} at {place(call)} is called once per element, {format_ns(iterator.busy_ns / calls)} per call, of "
            f"which its ops take only {format_share(share)}. One call per batch of {size} after "
            f"{batched.method} at {place(batched)} would save most of the rest. It is not vectorised automatically: "
            f"{obstacle}.",
            call=call,
            iterator=iterator,
            evidence=(
                Evidence("blame_share", share_of_wait(pipeline, iterator), "share"),
                Evidence("time_per_call", iterator.busy_ns / calls, "ns"),
                Evidence("op_share", share, "share"),
            ),
        )

    def _smaller(self, pipeline: Pipeline, iterator: Iterator) -> Finding | None:
        """A function that mostly decodes or resizes images."""
        call = iterator.main_call
        spent = sum(op.total_ns for op in iterator.ops if op.op.startswith(DECODING))
        total = max(iterator.busy_ns, sum(op.total_ns for op in iterator.ops))
        if call is None or not total or spent < self.min_decoding_share * total:
            return None
        ops = [op.op for op in iterator.ops if op.op.startswith(DECODING)]
        size = iterator.element_bytes
        share = share_of_wait(pipeline, iterator)
        result = "" if size is None else f" The result of {iterator.name} takes {format_bytes(size)} per element."
        return self.finding(
            f"Store smaller images for {label(call)}",
            f"{', '.join(ops[:3])} take {format_share(spent / total)} of {label(call)} at {place(call)}, which causes "
            f"{format_share(share)} of the wait for input.{result} Images that are stored in the size that "
            "the training uses decode in proportion to their pixels; convert the files once.",
            call=call,
            iterator=iterator,
            evidence=(
                Evidence("blame_share", share_of_wait(pipeline, iterator), "share"),
                Evidence("decoding_share", spent / total, "share"),
            ),
        )

    def _handing_over(self, pipeline: Pipeline, iterator: Iterator | None) -> Finding | None:
        """Elements are ready, and taking them costs time."""
        steps, consumer = pipeline.steps, pipeline.consumer
        ready = next((it.buffered_elements for it in pipeline.iterators if it.is_async), None)
        if iterator is not None or steps is None or consumer is None or ready is None or ready < 1:
            return None
        wait = pipeline.wait_share * steps.mean_ns
        if wait > self.max_handing_ns:
            return None
        how = (
            "steps_per_execution= in model.compile"
            if consumer.kind.startswith("keras")
            else "a loop over the dataset inside a tf.function"
        )
        return self.finding(
            "Take several steps at a time",
            f"The pipeline keeps up: {ready:.1f} elements wait in its last buffer on average, and no iterator with work "
            f"causes {format_share(self.min_share)} of the wait. A step of {format_ns(steps.mean_ns)} spends {format_ns(wait)} "
            f"on taking an element. {how[0].upper()}{how[1:]} takes them without returning to Python in between.",
            site=consumer.site,
            evidence=(Evidence("wait_per_step", wait, "ns"), Evidence("step_time", steps.mean_ns, "ns")),
        )

    def _cheaper(self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator) -> Finding:
        """The most expensive op of the slowest function, or the work of a transformation without a function."""
        call, elements = iterator.main_call, iterator.elements or iterator.num_calls
        name = iterator.name if call is None else label(call)
        where = f" at {place(call)}" if call is not None and call.site is not None else ""
        per_element = f" {format_ns(iterator.busy_ns / elements)} per element it produces" if elements else ""
        worst = max(iterator.ops, key=lambda op: op.total_ns, default=None)
        total = sum(op.total_ns for op in iterator.ops)
        facts = (
            f" {catalog.written_op(worst.op)} takes {format_share(worst.total_ns / total)} of the time of its ops."
            if worst is not None and total
            else ""
        )
        size = iterator.element_bytes
        if worst is None and size is not None:
            facts = f" Each of its elements takes {format_bytes(size)}: smaller ones (`tf.uint8` instead of `tf.float32`, " \
                    "cropped or filtered earlier) cost less to read and to copy."  # fmt: skip
        title = f"Give {name} less work"
        if worst is not None:
            work = "the Python code" if worst.op in catalog.PYTHON_OPS else catalog.written_op(worst.op)
            title = f"Make {work} in {name} cheaper"
        return self.finding(
            title,
            f"{name}{where} causes {format_share(share_of_wait(pipeline, iterator))} of the wait for input: it works{per_element}"
            f"{rate_of(pipeline)}.{facts}{costliest_line(iterator)}{unrecorded(analysis)}",
            call=call,
            iterator=iterator,
            evidence=(
                Evidence("blame_share", share_of_wait(pipeline, iterator), "share"),
                *((Evidence("time_per_element", iterator.busy_ns / elements, "ns"),) if elements else ()),
            ),
        )

    def _unknown(self, analysis: Analysis, pipeline: Pipeline) -> Finding:
        """The wait belongs to no iterator with work."""
        steps = pipeline.steps
        waits = (
            ""
            if steps is None
            else f" Of a step of {format_ns(steps.mean_ns)}, {format_share(pipeline.wait_share)} is wait."
        )
        return self.finding(
            "Profile more steps" if analysis.recording is not None else "Run the script under advisor analyze",
            f"No iterator with work causes {format_share(self.min_share)} of the wait in the profile.{waits} "
            + (
                f"`advisor analyze --seconds 30 {target_of(analysis)}` measures a longer window."
                if analysis.recording is not None
                else unrecorded(analysis).strip()
            ),
            site=pipeline.consumer.site if pipeline.consumer else None,
        )

    def _more_cores(self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator | None) -> Finding | None:
        """The number of cores with which the CPU time of a step fits into the step."""
        use, needed = core_use(analysis, pipeline), cores_needed(analysis, pipeline)
        is_full = use is not None and use.is_full(self.min_free_cores, self.min_own_share, self.min_speedup)
        if needed is None or not is_full:
            return None
        return self.finding(
            f"Use a machine with at least {format_many(needed.needed, 'core')}",
            f"A step takes {format_ns(needed.cpu_ns)} of CPU time, of the pipeline and of the training together, and would "
            f"take {format_ns(needed.step_ns)} without its wait: that needs {format_many(needed.needed, 'core')} instead of "
            f"{needed.now:g}, if all of it runs in parallel. tf.data service (page: advisor explain offload) runs the "
            "pipeline on the cores of other machines instead.",
            iterator=iterator,
            site=pipeline.consumer.site if pipeline.consumer else None,
            evidence=(
                Evidence("cpu_time_per_step", needed.cpu_ns, "ns"),
                Evidence("cores_needed", needed.needed, "cores"),
                Evidence("cores", needed.now, "cores"),
            ),
        )


def storing_code(call: Call) -> str:
    """Code that stores the dataset of a call once and loads it afterwards."""
    return (
        f"dataset = ...  # as now, up to {label(call)} at {place(call)}\n"
        'dataset.save("stored_dataset")  # once\n'
        'dataset = tf.data.Dataset.load("stored_dataset")  # in every run, in place of all of the above'
    )


def rate_of(pipeline: Pipeline) -> str:
    """The rate of the steps, as the end of a sentence."""
    return f", and the consumer does {format_rate(pipeline.elements_per_s, 'steps')}" if pipeline.span_ns else ""


def target_of(analysis: Analysis) -> str:
    """The script and its arguments, as they were typed."""
    argv = analysis.recording.argv if analysis.recording is not None else ()
    return shlex.join(argv) or "the script"


def unrecorded(analysis: Analysis) -> str:
    """What else a run of the script would show; empty if the run was recorded."""
    if analysis.recording is not None or analysis.host is not None:
        return ""
    return (
        " The profile contains neither the functions nor the cores: `advisor analyze` of the script itself shows whether a "
        "cache or more parallel calls would help."
    )


_random_map = partial(map_, ops=("RandomStandardNormal", "Add", "Mul"), random=True, calls=AUTOTUNE)

EXAMPLES = (
    fires(pipeline(source(), _random_map("augment", ms=5), batch(32), prefetch(), consumer_ms=20, cores=4)),
    fires(pipeline(source(), _random_map("jitter", ms=2, op_share=0.2), batch(32), prefetch(), consumer_ms=8, cores=2)),
    fires(
        pipeline(
            source(elements=1_000),
            map_("decode", ms=20, op_shares={"DecodeJpeg": 0.8, "RandomUniform": 0.2}, random=True, calls=AUTOTUNE),
            batch(32),
            prefetch(),
            consumer_ms=20,
            cores=4,
        )
    ),
    fires(pipeline(source(), map_("decode", ms=5, bytes=10_000), batch(32), prefetch(), consumer_ms=10, cores=4)),
    silent(
        pipeline(source(), _random_map("augment", ms=0.5), batch(32), prefetch(), consumer_ms=100, cores=4),
        because="the consumer is slower than the pipeline",
    ),
    silent(
        pipeline(source(), batch(32), prefetch(), consumer_ms=1, cores=4),
        because="steps do not wait",
    ),
)
