"""The findings of rules and the edits that fix them.

The set of `Edit`s is closed. Two interpreters apply them: `replay/replay.py` at run time and `rewrite/source.py` to the user's
file. `StepEdit`s, which change the training step, are applied to the file only.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum

from advisor.model.calls import Site


class Safety(StrEnum):
    """The effect of a fix on the data, ordered from harmless to harmful."""

    EXACT = "exact"
    """The same elements in the same order, bit for bit."""
    RERANDOMIZED = "rerandomized"
    """Random ops draw different numbers from the same distribution."""
    REORDERED = "reordered"
    """The same elements in a different order."""
    NUMERICS = "numerics"
    """The arithmetic or the schedule of the training changes."""
    CHANGES = "changes"
    """Different data: reported, but never applied."""


@dataclass(frozen=True, slots=True)
class Code:
    """An argument as source text (`tf.data.AUTOTUNE`). `tf` refers to TensorFlow, whatever name the file imports it as."""

    text: str


Value = Code | int | float | bool | str | None


@dataclass(frozen=True, slots=True)
class SetArgument:
    """Pass `name=value` in a call, replacing the present value."""

    call_id: str
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class InsertAfter:
    """Add `.method(arguments)` after a call."""

    call_id: str
    method: str
    arguments: tuple[tuple[str, Value], ...] = ()
    """(parameter, value) pairs; an empty parameter name means positional."""


@dataclass(frozen=True, slots=True)
class Remove:
    """Remove a call from its chain; its single input takes its place."""

    call_id: str


@dataclass(frozen=True, slots=True)
class MoveAfter:
    """Move a call to the position after another call of the same chain."""

    call_id: str
    after_id: str


@dataclass(frozen=True, slots=True)
class SetOption:
    """Set a dotted `tf.data.Options` field (`autotune.enabled`) after a call; None removes the user's value."""

    call_id: str
    option: str
    value: Value


@dataclass(frozen=True, slots=True)
class Vectorize:
    """Call the function of a `map` once per batch, through `tf.vectorized_map` without its fallback to a loop.

    The input of the `map` must be batches; a `MoveAfter` of the same fix puts the `map` after the `batch`.
    """

    call_id: str


VECTORIZED_MAP = "advisor_vectorized_map"
"""Stands for `tf.vectorized_map` in `VectorizeParts.text`."""


@dataclass(frozen=True, slots=True)
class VectorizeParts(Vectorize):
    """Like `Vectorize`, for a function of which one part takes batches as it is, and only the rest is vectorised.

    The edit contains the text of the function of batches that is written, and the proof compiles this text.
    """

    text: str
    """A definition in whole lines, indented as in the file, in which `VECTORIZED_MAP` stands for `tf.vectorized_map`."""
    name: str
    """The name of the new function."""
    original: str
    """The definition of the function of one element as it stands in the file, in whole lines."""
    line: int
    """Line in which that begins; the new one follows it."""


@dataclass(frozen=True, slots=True)
class VectorizeRagged(Vectorize):
    """Call the function of a `map` with batches as it is, and turn the ragged tensors among its results into padded ones."""

    results: int
    """Number of components of its result; 0 if it returns a single tensor instead of a tuple."""
    ragged: tuple[int, ...]
    """The components that are ragged tensors."""
    padding: int | float | str | None = None
    """What they are padded with; None for the default of their type."""
    rows: int | None = None
    """Rows of every batch, if the remainder is dropped, so that the padded results have that shape; None otherwise."""

    def expression(self, results: str) -> str:
        """Return the text of the padded results.

        Args:
            results: An expression for the results of the function; a name, if they are a tuple.
        """
        arguments = [] if self.padding is None else [f"default_value={self.padding!r}"]
        arguments += [] if self.rows is None else [f"shape=[{self.rows}, None]"]
        padded = f".to_tensor({', '.join(arguments)})"
        if not self.results:
            return f"{results}{padded}"
        parts = (f"{results}[{number}]{padded if number in self.ragged else ''}" for number in range(self.results))
        return ", ".join(parts) + ("," if self.results == 1 else "")


@dataclass(frozen=True, slots=True)
class SetFunction:
    """Pass another function to a `flat_map` or `map`. The edit contains the text, and the proof compiles this text."""

    call_id: str
    text: str
    """A lambda expression that reads nothing but its parameters and TensorFlow, as `tf`."""


@dataclass(frozen=True, slots=True)
class SplitFunction:
    """Split the function of a call in two. The edit contains the text that is written, and the proof compiles this text."""

    call_id: str
    first: str
    """The first function: a definition in whole lines, indented as in the file, or a lambda expression."""
    second: str
    """The second function, whose parameters are the values that the first one returns."""
    names: tuple[str, ...]
    """Names of these values."""
    first_name: str = ""
    """Empty for a lambda."""
    second_name: str = ""
    original: str = ""
    """The definition as written in the file, in whole lines; empty for a lambda."""
    line: int = 0
    """Line in which the definition begins."""
    is_replaced: bool = True
    """Whether the two functions take the place of the definition; otherwise they are added after it."""


@dataclass(frozen=True, slots=True)
class SplitMap(SplitFunction):
    """Split the function of a `map`: the `map` keeps the first half, and a second `map` directly after it gets the rest.

    An `InsertAfter` or `MoveAfter` that comes later in the same fix goes between the two.
    """


@dataclass(frozen=True, slots=True)
class SplitFlatMap(SplitFunction):
    """Split the function of a `flat_map` or `interleave`: a parallel `map` before it gets the first half, it keeps the rest."""


@dataclass(frozen=True, slots=True)
class BuildOnce:
    """Make the dataset that ends with a call once, before the loop in which the script makes it again.

    It leaves the dataset as it is: what it changes is how often the script makes it.
    """

    call_id: str
    reader: Site
    """Where the loop reads the dataset (`Consumer.site`)."""


Edit = (
    SetArgument
    | InsertAfter
    | Remove
    | MoveAfter
    | SetOption
    | Vectorize
    | VectorizeParts
    | VectorizeRagged
    | SetFunction
    | SplitMap
    | SplitFlatMap
    | BuildOnce
)


@dataclass(frozen=True, slots=True)
class SetCompileArgument:
    """Pass `name=value` in the call of `compile` that configures the trained Keras model, replacing a present value."""

    site: Site
    text: str
    """The call as recorded (`Call.text`)."""
    name: str
    value: Value

    @property
    def file(self) -> str:
        """The file to change."""
        return self.site.file


@dataclass(frozen=True, slots=True)
class SetFitArgument:
    """Pass `name=value` in the call of `fit`, which does not set it yet, because a dataset that it reads becomes endless.

    Nothing else may read that dataset, and `fit` may be called once: both must be plain from the text.
    """

    site: Site
    name: str
    value: Value
    dataset: Site
    """The call behind which the dataset is repeated."""
    method: str
    """The method of that call."""

    @property
    def file(self) -> str:
        """The file to change."""
        return self.site.file


@dataclass(frozen=True, slots=True)
class SetPolicy:
    """Call `keras.mixed_precision.set_global_policy(policy)` after the imports of a file."""

    file: str
    policy: str
    """`mixed_bfloat16`, `mixed_float16`."""


@dataclass(frozen=True, slots=True)
class SetFunctionArgument:
    """Pass `name=value` to the decorator `tf.function` of a function."""

    file: str
    function: str
    """Name of the function, which the file defines once."""
    name: str
    value: Value


@dataclass(frozen=True, slots=True)
class SetBatchSize:
    """Replace the number in a call of `batch`."""

    site: Site
    text: str
    """The call as recorded (`Call.text`)."""
    size: int

    @property
    def file(self) -> str:
        """The file to change."""
        return self.site.file


@dataclass(frozen=True, slots=True)
class DecorateFunction:
    """Decorate a function with `@tf.function`."""

    file: str
    function: str
    line: int
    """The line in which it begins, as recorded."""


StepEdit = SetCompileArgument | SetFitArgument | SetPolicy | SetFunctionArgument | SetBatchSize | DecorateFunction
"""Changes of the training step. No dataset can be made again with them: only the whole script can prove them."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A set of edits that are applied together."""

    edits: tuple[Edit, ...]
    safety: Safety
    is_auto: bool
    """Whether the fix is tried by default, provided that its safety level is allowed."""
    is_provable: bool = True
    """False if the fix makes nothing faster but saves memory or restores the intended behaviour. Its diff is shown but never
    applied, because only changes that are proved faster are applied."""
    assumptions: tuple[str, ...] = ()
    """Conditions for `safety` that no observation can establish, as clauses without a period. A fix with assumptions is tried
    only if its rule is named explicitly (`--only`), regardless of the allowed levels."""
    step_edits: tuple[StepEdit, ...] = ()
    """Changes of the training step. Only a move to workers has `edits` as well: of the pipeline, and of the call that trains."""

    @property
    def is_of_step(self) -> bool:
        """Whether the fix changes nothing but the training step, so that only the whole script can prove it."""
        return bool(self.step_edits) and not self.edits

    @property
    def changes(self) -> tuple[Edit | StepEdit, ...]:
        """Everything that the fix changes; two fixes with equal changes are the same."""
        return (*self.edits, *self.step_edits)


@dataclass(frozen=True, slots=True)
class Evidence:
    """One measured fact."""

    name: str
    value: float
    """With full precision."""
    unit: str = ""
    """`ns`, `bytes`, `share`, `elements/s`, `calls`, ...; empty for a plain number."""


@dataclass(frozen=True, slots=True)
class Effect:
    """The effect of a change on one iterator, as factors from 0 (removed) to 1 (unchanged)."""

    iterator_id: str
    cost: float
    """Factor for the time that others wait for it; parallel calls reduce this but not the work."""
    work: float = 1.0
    """Factor for the CPU work that remains."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """Predicted end-to-end speedup (ratio of step times; above 1 is faster) with its range."""

    value: float
    low: float
    high: float
    effects: tuple[Effect, ...] = field(default=(), compare=False)
    """The effects that it was predicted from, so that several changes can be combined; empty if they are unknown."""
    uncalibrated: tuple[str, ...] = field(default=(), compare=False)
    """Costs of the machine (fields of `Calibration`) that it was computed with, but that were not measured on that machine."""
    first_pass: float | None = field(default=None, compare=False)
    """Speedup of the first pass over the data, if it differs from that of later ones: 1 for a cache in memory, less for one that
    is written to disk."""

    @property
    def is_delayed(self) -> bool:
        """Whether only later passes over the data are faster than now."""
        return self.first_pass is not None


@dataclass(frozen=True, slots=True)
class RunGain:
    """The predicted effect of a change on a whole run of the script, which makes a number of passes over the data."""

    passes: float | None
    """Passes over the data in the run; None if unknown."""
    basis: str
    """How the number of passes is known, see `advisor.model.horizon.Horizon.basis`."""
    prediction: Prediction | None
    """Predicted speedup of all passes together; None if their number is unknown."""
    saved_ns: float
    """Time that the change saves: see `saved_per`."""
    saved_per: str
    """`run` if the number and the length of the passes are known, `pass` (a later one) if only their length is, else `step`."""
    break_even_pass: int | None = None
    """The pass in which a change that does not help the first one has saved time; None for other changes."""
    sentence: str = ""
    """The effect as text for the report; empty if it is that of a step."""


@dataclass(frozen=True, slots=True)
class Rejected:
    """A change that a rule considered and does not propose, with the measurement that speaks against it."""

    rule: str
    """The rule's id."""
    change: str
    """The change, as a finding would be titled: `Parallelise map(decode)`."""
    reason: str
    """What speaks against it, as a clause with figures: `the process uses 1.9 of 2 cores`."""
    evidence: tuple[Evidence, ...] = ()
    site: Site | None = None
    """The call that it would have changed; None if it is about no single call."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One result of a rule: what was measured and what to change."""

    rule: str
    """The rule's id (`serial-map`)."""
    title: str
    """The action, in a few words: `Parallelise map(decode)`."""
    because: str
    """The measurements behind it, in one or two sentences."""
    site: Site | None = None
    iterator_id: str | None = None
    call_id: str | None = None
    prediction: Prediction | None = None
    memory_bytes: int | None = None
    """Predicted additional memory of the change; 0 if negligible, None if unknown."""
    fix: Fix | None = None
    """None if the finding is advice only."""
    evidence: tuple[Evidence, ...] = ()
    diff: str | None = None
    """Unified one-hunk diff, filled in by the engine from the fix and the user's source."""
    code: str = ""
    """Code to start from, for advice that no edit of a call can express; of a hint, what to write, in one line."""
    trade: str = ""
    """What a change that gains about as much would cost, as a sentence for the result of a proof; empty if there is none."""
    over_run: RunGain | None = None
    """The effect on a whole run, filled in by the engine; None without a prediction."""
    prove_command: str = ""
    """The command that judges `diff`, read from stdin; filled in by the engine; empty without a diff, or if the run cannot be
    repeated."""
    fix_command: str = ""
    """The command that tries this fix alone, with the options that permit it; filled in by the engine; empty if `advisor fix`
    never tries it, or if the run cannot be repeated."""

    proposed: Fix | None = field(default=None, compare=False)
    """The fix as its rule proposed it, if the proof has replaced AUTOTUNE in `fix` by numbers (`advisor.prove.fixed_numbers`)."""
    otherwise: Finding | None = field(default=None, compare=False)
    """A finding about the same, reported instead if `fix` cannot be written into the text: the second best change."""

    @property
    def is_of_step(self) -> bool:
        """Whether its fix changes the training step."""
        return self.fix is not None and self.fix.is_of_step

    @property
    def as_proposed(self) -> Finding:
        """The finding as its rule made it."""
        return self if self.proposed is None else replace(self, fix=self.proposed, proposed=None)

    @property
    def gain(self) -> float:
        """The predicted speedup by which findings are ranked: of the whole run if its passes are counted, else of a step."""
        if self.over_run is not None and self.over_run.prediction is not None:
            return self.over_run.prediction.value
        return self.prediction.value if self.prediction is not None else 0.0

    @property
    def is_delayed(self) -> bool:
        """Whether the change does not help the first pass over the data."""
        return self.prediction is not None and self.prediction.is_delayed
