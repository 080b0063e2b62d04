"""The edits of which fixes consist: changes of calls that make datasets (`Edit`), and of the training step (`StepEdit`).

Both sets are closed. Two interpreters apply `Edit`s: `replay/replay.py` at run time and `rewrite/source.py` to the user's file.
`StepEdit`s are applied to the file only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.model.calls import Site


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
    reader_id: str = field(default="", kw_only=True)
    """The call that takes the elements, if nothing else may: if anything else uses the dataset, the edit is not written."""


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


AUTOTUNE_OPTION = "autotune.enabled"
"""The option that turns AUTOTUNE on or off, for `SetOption`."""


@dataclass(frozen=True, slots=True)
class Vectorize:
    """Call the function of a `map` once per batch, through `tf.vectorized_map` without its fallback to a loop.

    The input of the `map` must be batches; a `MoveAfter` of the same fix puts the `map` after the `batch`.
    """

    call_id: str
    is_plain: bool = field(default=False, kw_only=True)
    """Whether the function needs no AutoGraph (`FunctionFacts.is_straight_code`). Otherwise it is called through a `tf.function`,
    which runs once more per batch, with a single element, if it draws random numbers."""


VECTORIZED_MAP = "advisor_vectorized_map"
RAGGED_RANGE = "advisor_ragged_range"
REDUCE_SUM = "advisor_reduce_sum"
FROM_ROW_LENGTHS = "advisor_from_row_lengths"
STANDING_FOR: Mapping[str, str] = {
    VECTORIZED_MAP: "tf.vectorized_map",
    RAGGED_RANGE: "tf.ragged.range",
    REDUCE_SUM: "tf.reduce_sum",
    FROM_ROW_LENGTHS: "tf.RaggedTensor.from_row_lengths",
}
"""Names in `VectorizeParts.text` -> the functions that they stand for. The proof puts others in their place where it compares the
function with that of one element."""


@dataclass(frozen=True, slots=True)
class VectorizeParts(Vectorize):
    """Like `Vectorize`, for a function of which one part takes batches as it is, and only the rest is vectorised.

    The edit contains the text of the function of batches that is written, and the proof compiles this text.
    """

    text: str
    """A definition in whole lines, indented as in the file, with names of `STANDING_FOR`."""
    name: str
    """The name of the new function."""
    original: str
    """The definition of the function of one element as it stands in the file, in whole lines."""
    line: int
    """Line in which that begins; the new one follows it."""
    argument: str = ""
    """What the call gets: `self.encode_batch`, `lambda word: encode_batch(word, size)`; empty if that is `name`."""
    called: str = ""
    """If it is a lambda: the function of one element as the present lambda names it, `encode` or `self.encode`; else empty."""
    file: str = ""
    """The file of the definition, if it is not that of the call."""
    beside: str = ""
    """The imported name after which the new one is imported there; empty if the call needs no import."""

    @property
    def joins_rows(self) -> bool:
        """Whether it computes the rows of all elements of a batch in one vector, which it cuts at the end."""
        return FROM_ROW_LENGTHS in self.text


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
    """A lambda expression, or a definition (`def name(...):`, indented by four spaces), that reads nothing but its parameters
    and TensorFlow, as `tf`."""


@dataclass(frozen=True, slots=True)
class Number:
    """A number that is passed to `WrapData.reader_id`. The expression there is written instead, where it means the same."""

    parameter: str
    """What it is passed as, which also stands for it in `WrapData.text`."""
    value: int


@dataclass(frozen=True, slots=True)
class WrapData:
    """Put an expression around the data that a source is called with. The edit contains its text, and the proof computes it."""

    call_id: str
    """A `from_tensor_slices` whose data is one tensor."""
    reader_id: str
    """The call that takes its elements. If anything else uses the dataset, the edit is not written."""
    text: str
    """The expression, with `tf` for TensorFlow, `DATA` for the data as it is written now, and the names of the numbers."""
    numbers: tuple[Number, ...] = ()


DATA = "data"
"""The name in `WrapData.text` that stands for the data."""


@dataclass(frozen=True, slots=True)
class WrappedHalves:
    """What the calls get if a method is split, or a function that is passed in a lambda or a `functools.partial`."""

    called: str
    """The name of the function; of a method, with its object: `self.load`."""
    first: str
    """The expression for the first half: `self.load_cached`, `lambda x: load_cached(x, size)`."""
    second: str
    """That for the second half; empty if this one is passed by its name."""
    bound: tuple[str, ...]
    """Parameters of the second half that `second` fills."""


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
    wrapped: WrappedHalves | None = None
    """None if the function is passed by its name, or as a lambda that is split itself."""
    file: str = ""
    """As in `VectorizeParts`."""
    beside: str = ""
    """As in `VectorizeParts`, for the names of both halves."""

    @property
    def first_argument(self) -> str:
        """The expression that a call gets for the first half."""
        return (self.wrapped.first if self.wrapped is not None else "") or self.first_name or self.first

    @property
    def second_argument(self) -> str:
        """The expression that a call gets for the second half."""
        return (self.wrapped.second if self.wrapped is not None else "") or self.second_name or self.second


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
    | WrapData
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
    """The call after which the dataset is repeated."""
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
    """Pass `name=value` to the `tf.function` that a function becomes, as a decorator or in a call."""

    file: str
    function: str
    """Name of the function, which the file defines once."""
    name: str
    value: bool
    line: int = 0
    """The line in which it begins, as recorded; 0 if unknown."""


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


def adds_cache(edit: Edit) -> bool:
    """Whether an edit adds a cache in memory."""
    return isinstance(edit, InsertAfter) and edit.method == "cache" and not edit.arguments


_ADDED = "_added"


def added_id(call_id: str, number: int) -> str:
    """Return the id of the call that an edit adds after another one.

    Args:
        call_id: The call after which it is added.
        number: Index of the edit among all, from 0.
    """
    return f"{call_id}{_ADDED}{number}"


def added_after(call_id: str) -> str:
    """Return the recorded call behind which a call was added; the id itself if it was not added."""
    return call_id.partition(_ADDED)[0]


def defined_name(text: str) -> str:
    """Return the name of the function that `SetFunction.text` defines; empty if it is a lambda expression."""
    return text.removeprefix("def ").partition("(")[0] if text.startswith("def ") else ""
