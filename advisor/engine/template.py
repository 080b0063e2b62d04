"""A starting point for a new rule: a working rule file whose examples hold, and a script that it applies to.

In: a rule id and a folder. Out: the two files. Used by `advisor rules new`.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from advisor.model.errors import AdvisorError
from advisor.model.run_folder import write_whole

_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")

_RULE = '''"""{id}: the problem in a few words."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule, label, place, predict_speedup
from advisor.testing import batch, fires, map_, pipeline, prefetch, silent, source
from advisor.model.units import format_share


@dataclass(frozen=True)
class {cls}(Rule):
    """The problem in one sentence.

    ## Why it is slow
    What tf.data does, and why it takes time.

    ## What the fix does
    What changes, and the effect on the elements.

    ## When not to
    When it does not help, or has disadvantages.

    ## What tf.data already does
    What tf.data does automatically.
    """

    min_blame_share: float = 0.5
    """Share of the consumer's wait that the call causes. Explain this value here."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each map that causes most of the wait."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = iterator.main_call
            if call is None or call.method != "map" or iterator.blame_share < self.min_blame_share:
                continue
            yield self.finding(
                f"Look at {{label(call)}}",
                f"{{label(call)}} at {{place(call)}} causes {{format_share(iterator.blame_share)}} of the wait for input.",
                call=call,
                iterator=iterator,
                prediction=predict_speedup(analysis, pipeline, {{iterator.id: 0.5}}, {{iterator.id: 0.5}}),
                evidence=(Evidence("blame_share", iterator.blame_share, "share"),),
            )


EXAMPLES = (
    fires(pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5, cores=4)),
    silent(
        pipeline(source(), map_("decode", ms=0.1), batch(32), prefetch(), consumer_ms=50, cores=4),
        because="the consumer does not wait",
    ),
    silent(
        pipeline(source(ms=5), map_("decode", ms=0.1), batch(32), consumer_ms=5, cores=4),
        because="the consumer waits for the records",
    ),
)
'''

_SCRIPT = '''"""{id}: a script that is slow for this reason. The responsible call is marked."""

import tensorflow as tf


def slow(index):
    return tf.reduce_sum(tf.sort(tf.random.normal((200, 200)), axis=1)) + tf.cast(index, tf.float32)


dataset = tf.data.Dataset.range(20_000)
dataset = dataset.map(slow)  # <- {id}
dataset = dataset.batch(32)

total = tf.Variable(0.0)
for values in dataset:
    total.assign_add(tf.reduce_sum(values))
print(total.numpy())
'''


def write_rule(rule_id: str, folder: Path, taken: Collection[str]) -> tuple[Path, Path]:
    """Write `<folder>/<rule_id>.py` and `<folder>/examples/<rule_id>.py`.

    Args:
        rule_id: Lower-case words joined by dashes.
        folder: The folder to write to.
        taken: Ids that are already in use.

    Returns: The paths of the rule file and of the script.

    Raises:
        AdvisorError: The id is invalid or taken, or a file already exists.
    """
    name = rule_id.replace("_", "-")
    if not _ID.fullmatch(name):
        raise AdvisorError(
            f"{rule_id!r} is not a rule id: use lower-case words joined by dashes, such as slow-cat-decoding."
        )
    if name in taken:
        raise AdvisorError(f"There is a rule {name} already; choose another name.")
    rule = folder / f"{name.replace('-', '_')}.py"
    script = folder / "examples" / rule.name
    for path in (rule, script):
        if path.exists():
            raise AdvisorError(f"{path} already exists; nothing was written.")
    words = {"id": name, "cls": "".join(word.capitalize() for word in name.split("-"))}
    try:
        script.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise AdvisorError(f"Cannot create the folder {script.parent}: {error.strerror or error}.") from None
    write_whole(rule, _RULE.format(**words).encode())
    write_whole(script, _SCRIPT.format(**words).encode())
    return rule, script
