"""Which functions may be called once per batch: only those of which everything is known."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.model.calls import Call, FunctionFacts, Site
from advisor.model.edits import Code, InsertAfter, MoveAfter, Remove, Vectorize
from advisor.model.finding import Safety
from advisor.model.state import CapturedResource
from advisor.predict import edits_to_batch_first, padding_obstacle, vectorized_bytes, vectorizing_fix
from advisor.testing import batch, map_, pipeline, shuffle, source

ROW = "TensorSpec(shape=(8,), dtype=tf.float32, name=None)"
MEAN = FunctionFacts("center", None, False, ops={"Mean": 1, "Sub": 1}, stateful_ops=())
MADE = pipeline(source(), map_("center", ms=1), batch(32), consumer_ms=1).analysis


def edits_of(*links: str, function: FunctionFacts | None = MEAN, spec: str = ROW, **changes: object):
    """The edits proposed for `range`, then these methods in a line."""
    calls = [Call("range", "range", None, element_spec=spec)]
    for link in links:
        call = Call(link, link, None, (calls[-1].id,), function=function if link == "map" else None)
        calls.append(dataclasses.replace(call, **changes) if link == "map" else call)
    fix = fix_of(calls)
    return fix.edits if fix is not None else None


def fix_of(calls: list[Call]):
    by_id = {call.id: call for call in calls}
    return vectorizing_fix(dataclasses.replace(MADE, calls=tuple(calls)), by_id["map"], by_id["batch"])


def safety_of(function: FunctionFacts) -> Safety:
    calls = [Call("range", "range", None, element_spec=ROW)]
    calls += [Call("map", "map", None, ("range",), function=function), Call("batch", "batch", None, ("map",))]
    return fix_of(calls).safety


def test_the_map_goes_behind_the_batch_whatever_moves_elements_between():
    edits = (MoveAfter("map", "batch"), Vectorize("map"))
    assert edits_of("map", "batch") == edits
    assert edits_of("map", "shuffle", "prefetch", "batch") == edits
    assert edits_of("shuffle", "map", "batch") is None  # what the shuffle yields was not recorded
    assert edits_of("map", "batch", "prefetch") == edits


@pytest.mark.parametrize(
    "function",
    [
        None,
        dataclasses.replace(MEAN, ops={}),
        dataclasses.replace(MEAN, ops={"Mean": 1, "UnheardOf": 1}),
        dataclasses.replace(MEAN, ops={"Mean": 1, "Where": 1}),
        dataclasses.replace(MEAN, ops={"Mean": 1, "RandomGamma": 1}, random_ops=("RandomGamma",)),
        dataclasses.replace(MEAN, stateful_ops=("RandomShuffle",), random_ops=("RandomShuffle",)),
        dataclasses.replace(MEAN, python_ops=("EagerPyFunc",)),
        dataclasses.replace(MEAN, stateful_ops=None),
        dataclasses.replace(MEAN, stateful_ops=("ReadVariableOp",)),
        dataclasses.replace(MEAN, resources=(CapturedResource("static table", "words"),)),
        dataclasses.replace(MEAN, captured=("VarHandleOp",)),
        dataclasses.replace(MEAN, is_traced=False),
    ],
)
def test_a_function_of_which_anything_is_unknown_or_has_state_is_left_alone(function):
    assert edits_of("map", "batch", function=function) is None


def test_only_straight_code_without_assertions_is_called_without_autograph():
    straight = dataclasses.replace(MEAN, is_straight_code=True)
    asserting = dataclasses.replace(straight, ops={"Mean": 1, "Assert": 1}, stateful_ops=("Assert",))
    assert edits_of("map", "batch", function=straight) == (MoveAfter("map", "batch"), Vectorize("map", is_plain=True))
    assert edits_of("map", "batch", function=asserting) == (MoveAfter("map", "batch"), Vectorize("map"))


def test_a_function_that_draws_random_numbers_draws_others():
    draws = dataclasses.replace(
        MEAN,
        ops={"Mean": 1, "RandomUniform": 1},
        random_ops=("RandomUniform",),
        stateful_ops=("RandomUniform",),
        is_stateful=True,
    )
    assert edits_of("map", "batch", function=draws) == (MoveAfter("map", "batch"), Vectorize("map"))
    assert safety_of(draws) is Safety.RERANDOMIZED and safety_of(MEAN) is Safety.EXACT


@pytest.mark.parametrize(
    "spec",
    [
        "",
        "TensorSpec(shape=(None,), dtype=tf.float32, name=None)",
        "TensorSpec(shape=<unknown>, dtype=tf.float32, name=None)",
        "RaggedTensorSpec(TensorShape([2, 2]), tf.float32, 1, tf.int64)",
        "SparseTensorSpec(TensorShape([2, 2]), tf.float32)",
        f"({ROW}, {ROW}, TensorSpec(sha…",
    ],
)
def test_elements_that_may_differ_in_shape_are_not_batched_before_the_map(spec):
    assert edits_of("map", "batch", spec=spec) is None


def test_what_the_order_or_an_error_would_change_is_left_alone():
    assert edits_of("map", "batch", arguments={"deterministic": False}) is None
    assert edits_of("map", "batch", nested_in="interleave") is None
    assert edits_of("map", "batch", "ignore_errors") is None
    assert edits_of("map", "batch", function=dataclasses.replace(MEAN, stateful_ops=("Assert",))) is not None


def test_a_function_with_branches_is_tried_only_on_request():
    calls = [Call("range", "range", None, element_spec=ROW), Call("map", "map", None, ("range",), function=MEAN)]
    calls.append(Call("batch", "batch", None, ("map",)))
    branching = dataclasses.replace(MEAN, ops={**MEAN.ops, "StatelessIf": 1})
    for function, is_auto in ((MEAN, True), (branching, False)):
        calls[1] = dataclasses.replace(calls[1], function=function)
        fix = vectorizing_fix(dataclasses.replace(MADE, calls=tuple(calls)), calls[1], calls[2])
        assert fix is not None
        assert (fix.safety, fix.is_auto) == (Safety.EXACT, is_auto)


FOUR = "TensorSpec(shape=(4,), dtype=tf.float32, name=None)"


def padded_edits(*between: str, results: str = FOUR, batches: str | None = None, **arguments: object):
    """The edits proposed for a `map` with these results, these links, and a `padded_batch`."""
    calls = [
        Call("range", "range", None, element_spec=ROW),
        Call("map", "map", None, ("range",), function=MEAN, element_spec=results),
    ]
    for link in between:
        calls.append(Call(link, link, None, (calls[-1].id,), element_spec=results))
    spec = results.replace("shape=(", "shape=(None, ") if batches is None else batches
    arguments = {"batch_size": 32, **arguments}
    calls.append(Call("padded", "padded_batch", None, (calls[-1].id,), arguments=arguments, element_spec=spec))
    fix = vectorizing_fix(dataclasses.replace(MADE, calls=tuple(calls)), calls[1], calls[-1])
    return fix.edits if fix is not None else None


def test_a_padded_batch_that_pads_nothing_is_a_batch():
    assert padded_edits() == (MoveAfter("map", "padded"), Vectorize("map"))
    assert padded_edits("shuffle", drop_remainder=True) == (MoveAfter("map", "padded"), Vectorize("map"))
    named = f"{{'a': {FOUR}, 'b': TensorSpec(shape=(), dtype=tf.string, name=None)}}"
    both = named.replace("(4,)", "(32, 4)").replace("()", "(32,)")
    assert padded_edits(results=named, batches=both) == (MoveAfter("map", "padded"), Vectorize("map"))
    scalar = "TensorSpec(shape=(), dtype=tf.string, name=None)"
    assert padded_edits(results=scalar, batches=scalar.replace("()", "(None,)")) is not None


def test_a_padded_batch_whose_arguments_describe_the_results_is_replaced():
    batch_ = InsertAfter("range", "batch", (("", 32),))
    assert padded_edits(padded_shapes="<list of 1>") == (batch_, Remove("padded"), Vectorize("map"))
    dropping = InsertAfter("shuffle", "batch", (("", 32), ("drop_remainder", Code("True"))))
    assert padded_edits("shuffle", padding_values=1.0, drop_remainder=True) == (
        MoveAfter("map", "shuffle"),
        dropping,
        Remove("padded"),
        Vectorize("map"),
    )
    assert padded_edits(padded_shapes="<list of 1>", batch_size="<tensor>") is None
    assert padded_edits(padded_shapes="<list of 1>", drop_remainder="<tensor>") is None


@pytest.mark.parametrize(
    ("results", "batches"),
    [
        (FOUR, FOUR.replace("(4,)", "(None, 6)")),  # padded to a fixed length
        (FOUR, FOUR.replace("(4,)", "(None, None)")),
        (FOUR.replace("4", "None"), None),
        (FOUR, ""),
        ("", FOUR),
        (FOUR, FOUR + "…"),
        (FOUR.replace("TensorSpec", "RaggedTensorSpec"), None),
        (FOUR, f"({FOUR}, {FOUR})"),
    ],
)
def test_a_padded_batch_that_may_pad_something_stays_where_it_is(results: str, batches: str | None):
    assert padded_edits(results=results, batches=batches) is None


ROWS = "TensorSpec(shape=(None,), dtype=tf.uint8, name=None)"
FLOATS = ROWS.replace("uint8", "float32")
SCALE = FunctionFacts(
    "scale", None, False, ops={"Cast": 1, "RealDiv": 1}, stateful_ops=(), is_elementwise=True, keeps_padding=True
)


def open_edits(
    function: FunctionFacts = SCALE, elements: str = ROWS, results: str = FLOATS, batches: str = "", **arguments: object
):
    """The edits for a `map` of rows of any length and a `padded_batch`, and the reason why there are none."""
    calls = [
        Call("range", "range", None, element_spec=elements),
        Call("map", "map", None, ("range",), function=function, element_spec=results),
    ]
    spec = batches or results.replace("shape=(", "shape=(None, ")
    at = Site("train.py", 9, 1, 9, 30)
    calls.append(
        Call("padded", "padded_batch", at, ("map",), arguments={"batch_size": 32, **arguments}, element_spec=spec)
    )
    analysis = dataclasses.replace(MADE, calls=tuple(calls))
    return edits_to_batch_first(analysis, calls[1], calls[2]), padding_obstacle(analysis, calls[1], calls[2])


def test_a_function_that_makes_padding_of_padding_moves_behind_a_batch_that_pads():
    moved = (MoveAfter("map", "padded"),), None
    assert open_edits() == moved
    assert open_edits(batches=FLOATS.replace("(None,)", "(None, 100)")) == moved  # to a fixed length
    assert open_edits(drop_remainder=True) == moved
    assert open_edits(padded_shapes="<list of 1>") == moved  # they describe the elements as well as the results
    pair = f"({ROWS}, TensorSpec(shape=(), dtype=tf.int64, name=None))"
    both = f"({FLOATS.replace('(None,)', '(None, None)')}, TensorSpec(shape=(None,), dtype=tf.int64, name=None))"
    assert (
        open_edits(elements=pair, results=pair.replace("uint8", "float32"), batches=both, padded_shapes="<tuple of 2>")
        == moved
    )


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"function": dataclasses.replace(SCALE, keeps_padding=False)}, "makes something else of a zero"),
        ({"function": dataclasses.replace(SCALE, keeps_padding=None)}, "it is not known that its function"),
        ({"function": dataclasses.replace(SCALE, is_elementwise=False)}, "only element-wise functions"),
        ({"function": dataclasses.replace(SCALE, ops={"Cast": 1, "OneHot": 1})}, "only element-wise functions"),
        ({"function": dataclasses.replace(SCALE, captured=("HashTableV2",))}, "reads more than its element"),
        ({"padding_values": 1.0}, "padding_values of its own"),
        ({"elements": f"({ROWS}, {ROWS})", "padded_shapes": "<list of 1>"}, "it is not known that its function"),
        ({"elements": ROWS.replace("TensorSpec", "RaggedTensorSpec")}, "it is not known that its function"),
        ({"elements": ROWS.replace("None", "8"), "results": FLOATS.replace("None", "8"),
          "batches": FLOATS.replace("(None,)", "(None, 10)")}, "it is not known that its function"),
    ],
)  # fmt: skip
def test_what_may_change_the_padding_stays_before_it(changes: dict[str, object], reason: str):
    edits, obstacle = open_edits(**changes)
    assert edits is None
    assert obstacle.startswith("padded_batch at line 9 pads its results") and reason in obstacle


def test_elements_that_only_the_function_makes_equal_cannot_be_batched_before_it():
    calls = [
        Call("range", "range", None, element_spec=ROW.replace("8", "None, None, 3")),
        Call("map", "map", None, ("range",), function=MEAN, element_spec=ROW),
        Call("batch", "batch", None, ("map",)),
    ]
    analysis = dataclasses.replace(MADE, calls=tuple(calls))
    assert edits_to_batch_first(analysis, calls[1], calls[2]) is None
    calls[0] = dataclasses.replace(calls[0], element_spec=ROW)
    analysis = dataclasses.replace(MADE, calls=tuple(calls))
    assert edits_to_batch_first(analysis, calls[1], calls[2]) == (MoveAfter("map", "batch"),)


def inner_edits(method: str = "interleave", nested: tuple[str, ...] = ("map",), **changes: object):
    """The edits proposed for a `map` in the function of this call, with these links there, before a `batch`."""
    calls = [
        Call("files", "list_files", None),
        Call("read", "TFRecordDataset", None, nested_in="outer", element_spec=ROW),
    ]
    for link in nested:
        function = MEAN if link == "map" else None
        calls.append(Call(link, link, None, (calls[-1].id,), nested_in="outer", function=function, element_spec=ROW))
    calls.append(Call("outer", method, None, ("files",)))
    calls += [Call("shuffle", "shuffle", None, ("outer",)), Call("batch", "batch", None, ("shuffle",))]
    calls = [dataclasses.replace(call, **changes) if call.id == "outer" else call for call in calls]
    by_id = {call.id: call for call in calls}
    fix = vectorizing_fix(dataclasses.replace(MADE, calls=tuple(calls)), by_id["map"], by_id["batch"])
    return fix.edits if fix is not None else None


def test_a_map_at_the_end_of_the_function_of_an_interleave_leaves_it():
    assert inner_edits() == (MoveAfter("map", "batch"), Vectorize("map"))
    assert inner_edits("flat_map") == (MoveAfter("map", "batch"), Vectorize("map"))
    assert inner_edits("window") is None
    assert inner_edits(nested=("map", "take")) is None
    assert inner_edits(nested_in="another") is None
    assert inner_edits(method="padded_batch") is None


def test_a_shuffle_is_not_brought_together_with_its_repeat():
    """TensorFlow fuses them, and the fused one shuffles otherwise from the second epoch on."""
    calls = [Call("range", "range", None), Call("shuffle", "shuffle", None, ("range",), element_spec=ROW)]
    for link in ("map", "repeat", "batch"):
        calls.append(Call(link, link, None, (calls[-1].id,), function=MEAN if link == "map" else None))
    analysis = dataclasses.replace(MADE, calls=tuple(calls))
    assert vectorizing_fix(analysis, calls[2], calls[4]) is None
    apart = (
        *calls[:3],
        Call("take", "take", None, ("map",)),
        dataclasses.replace(calls[3], inputs=("take",)),
        calls[4],
    )
    assert vectorizing_fix(dataclasses.replace(MADE, calls=apart), calls[2], calls[4]) is not None
    without = (calls[0], calls[1], calls[2], dataclasses.replace(calls[4], inputs=("map",)))
    assert vectorizing_fix(dataclasses.replace(MADE, calls=without), without[2], without[3]) is not None


def test_memory_counts_the_batches_in_work_and_a_shuffle_that_now_holds_larger_elements():
    made = pipeline(
        source(bytes=4_000, elements=5_000), map_("shrink", ms=1, bytes=1_000, calls=4), shuffle(1_000), batch(32),
        consumer_ms=1, cores=4,
    )  # fmt: skip
    analysis = made.analysis
    pipeline_ = analysis.main
    assert pipeline_ is not None
    call, batched = (next(c for c in analysis.calls if c.method == method) for method in ("map", "batch"))
    iterator = next(it for it in pipeline_.iterators if any(c.id == call.id for c in it.calls))
    expected = (iterator.parallelism or 1) * 32 * (4_000 + 2 * 1_000) + 1_000 * 3_000
    assert vectorized_bytes(analysis, pipeline_, iterator, call, batched, 32) == expected


WINDOW = "TensorSpec(shape=(None, 8), dtype=tf.float32, name=None)"
FULL = {"size": 20, "shift": 1, "drop_remainder": True}


def window_edits(
    windows: dict[str, object], inner: tuple[str, ...] = ("batch",), size: int = 20, results: str = WINDOW, spec=WINDOW
):
    """The edits proposed for a map over `window(...).flat_map(lambda window: window.batch(size))`."""
    rows = dataclasses.replace(MEAN, ops={"BatchDatasetV2": 1})
    calls = [
        Call("range", "range", None, element_spec=ROW),
        Call("window", "window", None, ("range",), arguments=windows),
        Call("flat_map", "flat_map", None, ("window",), function=rows, element_spec=spec),
        *(Call(f"in{n}", m, None, nested_in="flat_map", arguments={"batch_size": size}) for n, m in enumerate(inner)),
        Call("map", "map", None, ("flat_map",), function=MEAN, element_spec=results),
        Call("batch", "batch", None, ("map",)),
    ]
    fix = fix_of(calls)
    return fix.edits if fix is not None else None


def test_full_windows_have_equal_shapes_although_their_spec_does_not_say_so():
    edits = (MoveAfter("map", "batch"), Vectorize("map"))
    assert window_edits(FULL) == edits
    assert window_edits(FULL, results=ROW) == edits


@pytest.mark.parametrize(
    "changed",
    [
        {"windows": {"size": 20, "shift": 1}},
        {"windows": FULL | {"drop_remainder": False}},
        {"windows": FULL | {"drop_remainder": "<tensor bool ()>"}},
        {"windows": FULL | {"size": "<tensor int64 ()>"}},
        {"size": 16},
        {"inner": ("take", "batch")},
        {"inner": ("batch", "batch")},
        {"inner": ("padded_batch",)},
        {"spec": WINDOW.replace("8", "None")},
    ],
)
def test_other_windows_may_differ_in_shape(changed):
    assert window_edits(**{"windows": FULL, **changed}) is None
