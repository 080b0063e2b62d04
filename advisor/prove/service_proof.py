"""What a script gained from a running tf.data service, as a result with one sentence.

In: what the held script read from the service, and the alternating runs of the whole script.  Out: `ServiceProof`. Pure
arithmetic and words.
"""

from __future__ import annotations

from advisor.model.offload_result import ServedMeasurement, ServiceProof
from advisor.model.proof_result import NOT_MEASURED, UNDECIDED
from advisor.model.units import format_many, format_ns, format_range, format_ratio, format_share
from advisor.offload.dispatcher import PROTOCOL, listed
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.outcomes import sides_of, training_verdict
from advisor.prove.trial.trial_result import BROKEN, FASTER, SAME, SLOWER

_WORDS = {FASTER: "faster", SAME: "neither faster nor slower", SLOWER: "slower"}


def proof_of(
    address: str,
    served: ServedMeasurement,
    predicted: float | None,
    whole: EndToEnd | None,
    lost: tuple[str, ...] = (),
    why_not: str = "",
) -> ServiceProof:
    """Return the result.

    Args:
        address: The dispatcher, `grpc://HOST:PORT`.
        served: What the held script read.
        predicted: The gain that the delivered rate promises; None if unknown.
        whole: The alternating runs; None if there were none.
        lost: Workers that ended until the end of these runs.
        why_not: Why there were no runs, in one sentence.
    """
    before, after = sides_of(None, whole)
    verdict = training_verdict(whole)
    lost = tuple(dict.fromkeys((*served.lost, *lost)))
    sentence = _sentence(address, served.workers, verdict, whole, predicted, why_not)
    if lost:
        sentence += (
            f" {format_many(len(lost), 'worker')} ended meanwhile or can no longer be reached ({listed(lost)}), so these are not "
            f"the figures of {format_many(served.workers, 'worker')}."
        )
    return ServiceProof(
        address=address,
        verdict=verdict,
        sentence=sentence,
        workers=served.workers,
        lost_workers=lost,
        delivered_per_s=served.delivered_per_s,
        client_cpu_s=served.client_cpu_s,
        predicted_speedup=predicted,
        speedup=whole.speedup if whole is not None else None,
        turns=min(len(whole.before), len(whole.after)) if whole is not None else 0,
        before=before,
        after=after,
    )


def _sentence(
    address: str, workers: int, verdict: str, whole: EndToEnd | None, predicted: float | None, why_not: str
) -> str:
    where = f"With {format_many(workers, 'worker')} at {address.removeprefix(PROTOCOL)}"
    if whole is None or verdict == NOT_MEASURED:
        why = why_not or (whole.note if whole is not None else "") or "see the notes"
        return f"The training was not measured with the service: {why[:1].lower()}{why[1:].rstrip('.')}."
    if verdict == BROKEN or whole.speedup is None:
        return f"{where}, the script fails: {whole.note.removeprefix('With the changes: ').rstrip('.')}."
    ratio = format_range(whole.speedup.value, whole.speedup.low, whole.speedup.high)
    if whole.is_out_of_time:
        return f"{where}, it is undecided whether the training is faster. {whole.note}"
    if verdict == UNDECIDED:
        return f"{where}, it is undecided whether the training is faster: {ratio}; the runs vary by more than the gain."
    before, after = sides_of(None, whole)
    steps = ""
    if before.step_ns is not None and after.step_ns is not None:
        steps = f"; a step takes {format_ns(after.step_ns)} instead of {format_ns(before.step_ns)}"
    waits = ""
    if before.wait_share is not None and after.wait_share is not None:
        waits = f", and waits for input {format_share(after.wait_share)} of the time instead of {format_share(before.wait_share)}"
    promise = (
        ""
        if predicted is None
        else f" {format_ratio(predicted)} was predicted from the rate at which the workers deliver."
    )
    return f"{where}, the training is {_WORDS[verdict]}: {ratio}{steps}{waits}.{promise}"
