"""Chains in any formatting: after rewriting they make the edited pipeline, and every token and comment outside is still there."""

from __future__ import annotations

import ast
import io
import tokenize
from dataclasses import dataclass

from hypothesis import assume, event, given, settings
from hypothesis import strategies as st

from advisor.model.calls import Call, Site
from advisor.model.edits import Edit, InsertAfter, MoveAfter, Remove, SetArgument, Vectorize
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.source import rewritten
from tests.effort import examples

LINKS = {
    "map": ["parse", "lambda x: (x, 1)", "parse, num_parallel_calls=2", "parse, 3", "map_func=parse"],
    "shuffle": ["64", "buffer_size=64, seed=7", "n"],
    "batch": ["32", "batch_size = 32", "32, True", "(16 * 2)"],
    "filter": ["keep", "lambda x: x > 0"],
    "cache": ["", "'/tmp/#x'"],
    "take": ["n"],
    "repeat": ["", "2"],
}
PARAMETER = {"map": "num_parallel_calls", "shuffle": "seed", "batch": "drop_remainder", "repeat": "count"}
NOISE = ["pass", "print( 'x' )  # noise", "n = 4", "y = [1,2 , 3]", "# a comment of its own", ""]


@dataclass(frozen=True)
class Script:
    text: str
    noise: tuple[str, ...]


@st.composite
def scripts(draw):
    """One chain over one or more statements, in a function or not, each statement formatted in its own way."""
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    indent = draw(st.sampled_from(["", "    ", "\t"]))
    methods = draw(st.lists(st.sampled_from(sorted(LINKS)), min_size=1, max_size=6))
    links = [
        f"{method}({draw(formatted(draw(st.sampled_from(LINKS[method])), newline, indent))})" for method in methods
    ]
    lines, noise = ["import tensorflow as tf", "n = 3"], []
    if indent:
        lines.append("def make(files):")
    head, name = "tf.data.TFRecordDataset(files)", "ds"
    while True:
        count = draw(st.integers(1, len(links))) if links else 0
        step, links = links[:count], links[count:]
        target = draw(st.sampled_from([name, name, name + "x"]))
        lines.append(indent + statement(draw, target, head, step, newline, indent))
        if draw(st.booleans()):
            noise.append(draw(st.sampled_from(NOISE)))
            lines.append(indent + noise[-1] if noise[-1] else "")
        head = name = target
        if not links:
            break
    lines.append(f"{indent}return {name}" if indent else f"print({name})")
    return Script(newline.join(lines) + draw(st.sampled_from(["", newline])), tuple(noise))


def formatted(arguments: str, newline: str, indent: str):
    """Arguments on the line of the call, or one a line."""
    if not arguments or "lambda" in arguments or "(" in arguments:
        return st.just(arguments)
    pieces = arguments.split(", ")
    split = f",{newline}{indent}    ".join(pieces)
    return st.sampled_from([
        arguments, f" {arguments} ", f"{arguments},", f"{newline}{indent}    {split},{newline}{indent}",
        f"{newline}{indent}    {split}  # last{newline}{indent}",
    ])  # fmt: skip


def statement(draw, target: str, head: str, links: list[str], newline: str, indent: str) -> str:
    style = draw(st.sampled_from(["line", "parentheses", "backslashes", "hugging"]))
    if style == "line" or not links:
        return f"{target} = " + ".".join([head, *links]) + draw(st.sampled_from(["", "  # all", ";"]))
    if style == "backslashes":
        return f"{target} = {head}" + "".join(f" \\{newline}{indent}        .{link}" for link in links)
    comments = [draw(st.sampled_from(["", f"  # c{number}"])) for number in range(len(links) + 1)]
    if style == "hugging":
        rows = [
            f"({head}{comments[0]}",
            *(f"      .{link}{comment}" for link, comment in zip(links, comments[1:], strict=True)),
        ]
        return f"{target} = " + f"{newline}{indent}".join(rows) + (f"{newline}{indent})" if comments[-1] else ")")
    above = draw(st.sampled_from([[], ["    # above"]]))
    rows = [f"    {head}{comments[0]}"]
    for link, comment in zip(links, comments[1:], strict=True):
        rows += [*above, f"    .{link}{comment}"]
    return f"{newline}{indent}".join([f"{target} = (", *rows, ")"])


def recorded(text: str) -> dict[str, Call]:
    """The calls of the chain in the order in which they run: c0 is the source."""
    lines = text.splitlines(keepends=True)
    sites = []
    for node in ast.walk(ast.parse(text)):
        function = getattr(node, "func", None)
        if isinstance(function, ast.Attribute) and (function.attr in LINKS or function.attr == "TFRecordDataset"):
            start = function.end_col_offset - len(function.attr)
            site = Site("t.py", function.end_lineno, start + 1, node.end_lineno, node.end_col_offset + 1)
            sites.append(((function.end_lineno, start), function.attr, site))
    sites.sort()
    assert lines
    return {f"c{number}": Call(f"c{number}", method, site) for number, (_, method, site) in enumerate(sites)}


Link = tuple[str, tuple[str, ...], dict[str, str]]


def pipeline(text: str) -> list[Link]:
    """What the script makes: the calls that the last dataset comes through, with their arguments."""
    values: dict[str, list[Link]] = {}

    def evaluate(node: ast.expr) -> list[Link]:
        if isinstance(node, ast.Name):
            return list(values.get(node.id, []))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            return [*evaluate(node.func.value), (node.func.attr, tuple(map(ast.unparse, node.args)), keywords)]
        return []

    name = ""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call | ast.Name):
            name = node.targets[0].id
            if name.startswith("ds"):
                values[name] = evaluate(node.value)
    return next(values[name] for name in reversed(list(values)) if name == last_name(text))


def last_name(text: str) -> str:
    last = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Return | ast.Call)]
    returned = next((node.value.id for node in last if isinstance(node, ast.Return)), None)
    return returned or ast.parse(text).body[-1].value.args[0].id


def edited(links: list[Link], edits: list[Edit]) -> list[Link]:
    """The same edits on the list of calls."""
    ids: list[tuple[str, Link]] = [(f"c{number}", link) for number, link in enumerate(links)]

    def find(call_id: str) -> int:
        return next(i for i, (known_id, _) in enumerate(ids) if known_id == call_id)

    for edit in edits:
        place = find(edit.call_id)
        match edit:
            case SetArgument():
                method, args, keywords = ids[place][1]
                if (method == "map" and len(args) > 1) or (method == "batch" and len(args) > 1):
                    args = (args[0], repr(edit.value))
                elif method == "repeat" and args:
                    args = (repr(edit.value),)
                else:
                    keywords = keywords | {edit.name: repr(edit.value)}
                ids[place] = (edit.call_id, (method, args, keywords))
            case InsertAfter():
                ids.insert(place + 1, ("new", (edit.method, ("9",), {})))
            case Remove():
                del ids[place]
            case MoveAfter():
                moved = ids.pop(place)
                ids.insert(find(edit.after_id) + 1, moved)
            case Vectorize():
                method, args, keywords = ids[place][1]
                function = args[0] if args else keywords["map_func"]
                per_row = f"lambda row: tf.function({function})(*row)"
                text = f"lambda *rows: tf.vectorized_map({per_row}, rows, fallback_to_while_loop=False)"
                new = ast.unparse(ast.parse(text))
                changed = (method, (new, *args[1:]), keywords) if args else (method, args, keywords | {"map_func": new})
                ids[place] = (edit.call_id, changed)
    return [link for _, link in ids]


def tokens(text: str, kinds: tuple[int, ...]) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text, newline="").readline)
    return [token.string for token in tokens if token.type in kinds and token.string.strip()]


CODE = (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING)


@settings(max_examples=examples(150))
@given(scripts(), st.data())
def test_what_is_added_is_all_that_changes(script, data):
    calls = recorded(script.text)
    edits: list[Edit] = []
    for call_id, call in calls.items():
        if call.method in PARAMETER and data.draw(st.booleans()):
            edits.append(SetArgument(call_id, PARAMETER[call.method], 8))
        for method in data.draw(st.lists(st.sampled_from(["prefetch", "skip"]), unique=True)):
            edits.append(InsertAfter(call_id, method, (("", 9),)))
    after = rewritten(script.text, edits, calls)
    assert pipeline(after) == edited(pipeline(script.text), edits)
    check_rest(script, after)
    if not any(isinstance(edit, SetArgument) for edit in edits):
        is_in_order(tokens(script.text, CODE), tokens(after, CODE))


@settings(max_examples=examples(150))
@given(scripts(), st.data())
def test_what_is_taken_out_or_moved_is_all_that_goes(script, data):
    calls = recorded(script.text)
    links = [call_id for call_id in calls if call_id != "c0"]
    gone = data.draw(st.lists(st.sampled_from(links), unique=True, max_size=2))
    edits: list[Edit] = [Remove(call_id) for call_id in gone]
    later = [(a, b) for i, a in enumerate(links) for b in links[i + 1 :] if a not in gone and b not in gone]
    if later and data.draw(st.booleans()):
        edits.append(MoveAfter(*data.draw(st.sampled_from(later))))
    assume(edits)
    try:
        after = rewritten(script.text, edits, calls)
    except CannotRewriteError as error:
        assert any(isinstance(edit, MoveAfter) for edit in edits), error
        event("not plain")
        return
    event("moved" if isinstance(edits[-1], MoveAfter) else "removed")
    assert pipeline(after) == edited(pipeline(script.text), edits)
    for line in script.noise:
        assert line in after
    if not gone:
        assert sorted(tokens(after, (tokenize.COMMENT,))) == sorted(tokens(script.text, (tokenize.COMMENT,)))


@settings(max_examples=examples(150))
@given(scripts(), st.data())
def test_a_vectorised_function_is_all_that_differs_from_a_moved_one(script, data):
    calls = recorded(script.text)
    links = list(calls)
    later = [(a, b) for i, a in enumerate(links) for b in links[i + 1 :] if calls[a].method == "map"]
    assume(later)
    one, other = data.draw(st.sampled_from(later))
    edits: list[Edit] = [MoveAfter(one, other), Vectorize(one)]
    try:
        after = rewritten(script.text, edits, calls)
    except CannotRewriteError as error:
        event(f"refused: {str(error)[:30]}")
        return
    event("vectorised")
    assert pipeline(after) == edited(pipeline(script.text), edits)
    for line in script.noise:
        assert line in after


def check_rest(script: Script, after: str) -> None:
    assert tokens(after, (tokenize.COMMENT,)) == tokens(script.text, (tokenize.COMMENT,))
    assert after.count("\r") == after.count("\r\n")
    assert ("\r\n" in after) == ("\r\n" in script.text)
    for line in script.noise:
        assert line in after


def is_in_order(some: list[str], all_of_them: list[str]) -> None:
    rest = iter(all_of_them)
    assert all(any(text == other for other in rest) for text in some)
