"""What capture records about the calls that create datasets: where they are written, what they take, and what their functions do.

A `Recording` (`advisor.model.recording`) holds them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.model.state import CapturedResource

INFINITE_CARDINALITY = -1
"""`tf.data.INFINITE_CARDINALITY`."""
UNKNOWN_CARDINALITY = -2
"""`tf.data.UNKNOWN_CARDINALITY`."""
AUTOTUNE = -1
"""`tf.data.AUTOTUNE`."""
Scalar = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Site:
    """A span of the user's source. Lines and columns count from 1, columns are in characters, `end_column` is exclusive.

    The span starts at the method name of the call, which identifies it in a chain over several lines, and ends at the end of the
    call.
    """

    file: str
    line: int
    column: int
    end_line: int
    end_column: int


def line_note(site: Site | None) -> str:
    """Return ` (line 12)` for the sentence that names a call; empty if its place is unknown."""
    return "" if site is None else f" (line {site.line})"


@dataclass(frozen=True, slots=True)
class CodeLine:
    """A line inside a function of a pipeline."""

    file: str
    line: int
    function: str = ""
    """Name of the Python function that contains it."""
    text: str = ""
    """The line when it was recorded, at most 200 characters."""
    via: int = 0
    """The line of the pipeline's own function that led there, if the line is in another function; 0 otherwise."""


@dataclass(frozen=True, slots=True)
class OpLine:
    """The ops that one line of a function creates."""

    at: CodeLine
    ops: tuple[str, ...]
    """Names of the ops: names in nested functions follow the name of the calling op (`PartitionedCall/sort/TopKV2`), and, for
    control flow, the branch (`cond/then/cond/MatMul`), as TensorFlow names inlined ops."""


@dataclass(frozen=True, slots=True)
class FunctionLine:
    """The ops that one line in the body of a function makes, directly or through one of the functions that it calls."""

    line: int
    called: str
    """Name of the function called in this line that makes the ops (`decode`); empty for the operators of the line itself."""
    ops: dict[str, int]
    """Op type -> number of ops, nested functions included."""
    is_random: bool
    """Whether one of the ops draws a random number."""
    bytes_before: int | None = None
    """Size of the values that exist before the first of these ops and are used by it or later; None if a shape is unknown."""


@dataclass(frozen=True, slots=True)
class BatchLine:
    """What the ops that one line in the body of a function makes do to a batch, directly or through a function that it calls."""

    line: int
    called: str
    """Name of the function called in this line that makes the ops, as TensorFlow exports it (`resize`, not `resize_images_v2`);
    empty for the operators of the line itself."""
    ops: dict[str, int]
    """Op type -> number of ops, nested functions included."""
    takes_batches: bool
    """Whether all of them treat a batch like each of its elements."""
    has_constants: bool = False
    """Whether a call in this line uses a result of another call in it that does not depend on the element."""


@dataclass(frozen=True, slots=True)
class CalledFunction:
    """The only function or method of the user's code that a lambda names."""

    site: Site
    """Where it is defined: in the file of the lambda, or in one that it imports."""
    lines: tuple[FunctionLine, ...]
    """What each line of its body does, as in `FunctionFacts.lines`; empty if the lambda draws random numbers itself."""
    batch_lines: tuple[BatchLine, ...] = ()
    """What each line of its body does to a batch, as in `FunctionFacts.batch_lines`; empty if the lambda computes something."""


@dataclass(frozen=True, slots=True)
class FunctionFacts:
    """Facts about the Python function passed to a transformation, from the graph that TensorFlow traced."""

    name: str
    site: Site | None
    is_stateful: bool
    """Whether TensorFlow considers the function stateful; it does not parallelize stateful functions automatically."""
    random_ops: tuple[str, ...] = ()
    """Types of the ops that draw random numbers, nested functions included."""
    python_ops: tuple[str, ...] = ()
    """Types of the ops that run Python code (`PyFunc`, `EagerPyFunc`, ...) and therefore hold the GIL."""
    ops: dict[str, int] = field(default_factory=dict)
    """Op type -> number of such nodes, nested functions included."""
    captured: tuple[str, ...] = ()
    """Types of captured resources (`HashTableV2`, `VarHandleOp`, ...)."""
    resources: tuple[CapturedResource, ...] = ()
    """The captured resources and datasets, each identified by the object that owns it."""
    stateful_ops: tuple[str, ...] | None = None
    """Types of the ops that TensorFlow's registry marks as stateful or does not contain, nested functions included; None in
    recordings of earlier versions, which did not check."""
    is_seeded: bool = False
    """Whether a random op in it has an op or global seed, or draws from a `tf.random.Generator`, which may have one."""
    is_elementwise: bool | None = None
    """Whether a call on a batch returns the batch of the results for each element; None if not checked."""
    flow: tuple[tuple[str, str], ...] = ()
    """Distinct (op type, type of an op that consumes its result)."""
    fixed_ops: dict[str, int] = field(default_factory=dict)
    """Op type -> number of ops that do not depend on a random number; empty if none is drawn."""
    random_site: Site | None = None
    """The user's line that first draws a random number."""
    lines: tuple[FunctionLine, ...] = ()
    """What each line of its body does, in the order of execution; empty if no random number is drawn or if it is unknown."""
    called: CalledFunction | None = None
    """The function that it calls, if it is a lambda that draws random numbers, makes datasets, or may be called with batches in
    parts or with other calls in it; None if that is unknown."""
    unchanged: tuple[tuple[int, int], ...] = ()
    """(component of the result, component of the element) pairs that are passed through unchanged; components are numbered as by
    `tf.nest.flatten`."""
    used_inputs: tuple[int, ...] | None = None
    """Components of the element that the function reads; None if not checked."""
    is_traced: bool = True
    """False if the function was only read in a script that was not run (`--source`), so that its behaviour is unknown."""
    op_lines: tuple[OpLine, ...] = ()
    """The lines that create its ops, nested functions included; empty in recordings of earlier versions."""
    op_lines_omitted: int = 0
    """Number of ops without a line because the function, or the recording, has too many."""
    python_functions: tuple[Site, ...] = ()
    """The Python functions that its ops call, or the generator."""
    uses_enclosing: bool | None = None
    """Whether it reads tensors of the function inside which its call is made, such as the file name that an `interleave` passes;
    None if not checked."""
    batch_lines: tuple[BatchLine, ...] = ()
    """What each line of its body does to a batch, in the order of execution; empty if the whole function takes batches or may be
    vectorised, or if that is unknown."""
    ragged_results: tuple[int, ...] = ()
    """Components of the result that become ragged tensors if the function, which splits texts, is called with a batch; empty if
    it splits none or computes something else of a batch."""
    parses_batches: bool = False
    """Whether a function that parses records does the same with a batch of them if `parse_example` takes the place of
    `parse_single_example`: features of varying length are then padded like by a `padded_batch`. False if that is unknown."""
    row_length: int | None = None
    """The component of the element that is the length of all rows that the function makes, if it computes each of their values in
    the same way from its position in the row, random numbers and constants; None if there is none or if that is unknown."""
    keeps_padding: bool | None = None
    """Whether an element-wise function makes the default padding (0, False, the empty string) of the default padding in every
    dimension of unknown size, so that padding its results is the same as applying it to padded elements; None if not checked."""
    varying_parameters: tuple[str, ...] = ()
    """Types of the ops of which an input depends on the element or on a random number, although `tf.vectorized_map` requires it
    to be the same for all elements of a batch: a random `delta` of `AdjustHue`."""
    batch_layers: tuple[str, ...] = ()
    """Classes of the Keras layers in it that take a batch as they take one element, whatever their ops; `is_elementwise` counts
    on that."""
    is_python_row_wise: bool = False
    """Whether all Python functions that its ops call compute for a batch of rows what they compute for each row, as far as NumPy
    is concerned; False if that is unknown."""
    is_straight_code: bool = False
    """Whether it calls TensorFlow's functions one after the other and contains nothing that AutoGraph converts; False if that is
    unknown."""


@dataclass(frozen=True, slots=True)
class Call:
    """One public tf.data call that created a dataset."""

    id: str
    """A unique Python identifier. It is also the `name=` that TensorFlow writes into the profile, unless `user_name` is set."""
    method: str
    """`map`, `batch`, `TFRecordDataset`, `from_tensor_slices`, ..."""
    site: Site | None
    """The user's call; for a call made by a library, the user's call of that library."""
    inputs: tuple[str, ...] = ()
    """Ids of the calls whose datasets it consumes, in order."""
    arguments: dict[str, Scalar] = field(default_factory=dict)
    """Bound arguments by parameter name. Values that are not scalars are described, as in `<function augment>`."""
    explicit: tuple[str, ...] = ()
    """Names of the parameters that the caller passed."""
    function: FunctionFacts | None = None
    user_name: str | None = None
    library: str | None = None
    """Top-level package of the code that made the call (`keras`, `tensorflow_datasets`, ...); None for the user's code."""
    made_by: str | None = None
    """Id of the public call inside which this one was made (`from_generator` makes a `flat_map`)."""
    nested_in: str | None = None
    """Id of the call whose function made this one (`map` inside an `interleave` function)."""
    cardinality: int | None = None
    """Elements per epoch; INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, or None if it was not determined."""
    element_spec: str = ""
    element_bytes: int | None = None
    """Size of one element in bytes, if the shapes and types of the spec determine it."""
    file_bytes: int | None = None
    """Estimated size in bytes of all files passed by name, from a sample of them; None if no file names are passed."""
    options: dict[str, Scalar] = field(default_factory=dict)
    """For `with_options`: dotted option -> value, for the options that the user set (`autotune.enabled`)."""
    unrecorded: tuple[str, ...] = ()
    """Classes of datasets between this call and its recorded inputs (or in place of an input) without a recorded call; of an
    `apply`, also the class of the dataset that it makes."""
    text: str = ""
    """The call as written (`.map(augment)`), at most 200 characters."""
    made_ns: int | None = None
    """Duration of the call: mostly the tracing of its function. None in recordings of earlier versions."""
    identity: str = ""
    """Digest of its arguments, functions and their outside values included; equal for two calls if nothing that was compared
    differs. Of large arrays the beginning is compared. Empty if it was not computed."""
