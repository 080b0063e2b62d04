"""Functions in lambdas and partials, and methods: what stays around both halves, and why others are not split."""

from __future__ import annotations

import textwrap

import pytest

from advisor.splitting import CannotSplitError
from tests.splitting.test_split import TWO, split

LOAD = """
        def load(file, label, size, training=True):
            image = resize(decode(file), size)
            if training:
                image = flip(image)
            return crop(image, size), label
        """


@pytest.mark.parametrize(
    ("passed", "first", "second"),
    [
        (
            "lambda x, y: load(x, y, args.size)",
            "lambda x, y: load_cached(x, y, args.size)",
            "lambda label, image: load(label, image, size=args.size)",
        ),
        (
            "lambda y, x: load(x, training=flags.train, label=y, size=(WIDTH, 64))",
            "lambda y, x: load_cached(x, training=flags.train, label=y, size=(WIDTH, 64))",
            "lambda label, image: load(label, image, training=flags.train, size=(WIDTH, 64))",
        ),
        (
            "functools.partial(load, size=args.size)",
            "functools.partial(load_cached, size=args.size)",
            "functools.partial(load, size=args.size)",
        ),
        (
            "partial(load, training=False, size=224)",
            "partial(load_cached, training=False, size=224)",
            "partial(load, training=False, size=224)",
        ),
    ],
)
def test_a_lambda_or_partial_that_only_calls_a_function_stays_around_both_halves(passed, first, second):
    halves = split(f"{LOAD}ds = ds.map({passed}, num_parallel_calls=8)\n".replace("\n        ", "\n"), spec=TWO)
    assert halves.texts.wrapped is not None and halves.names == ("label", "image")
    assert (halves.texts.wrapped.first, halves.texts.wrapped.second) == (first, second)
    assert halves.texts.first == textwrap.dedent("""\
        def load_cached(file, label, size, training=True):
            image = resize(decode(file), size)
            return label, image
        """)
    arguments = {"size", "training"} & set(halves.texts.wrapped.bound)
    default = "" if "training" in arguments else ", training=True"
    assert halves.texts.second.startswith(
        f"def load(label, image, {', '.join(halves.texts.wrapped.bound)}{default}):\n"
    )


CLASS = """
class Loader:
    side = 64

    def load(self, file, scale=2.0):
        side = self.side
        image = resize(decode(file), side)
        image = flip(image)
        return crop(image, side) * scale

    def dataset(self, ds, args):
        return ds.map({passed}, num_parallel_calls=8)
"""


@pytest.mark.parametrize(
    ("passed", "first", "second", "parameters"),
    [
        ("self.load", "self.load_cached", "self.load_random", "self, image, scale=2.0"),
        (
            "lambda x: self.load(x, args.scale)",
            "lambda x: self.load_cached(x, args.scale)",
            "lambda image: self.load_random(image, scale=args.scale)",
            "self, image, scale",
        ),
        (
            "partial(self.load, scale=3.0)",
            "partial(self.load_cached, scale=3.0)",
            "partial(self.load_random, scale=3.0)",
            "self, image, scale",
        ),
    ],
)
def test_a_method_stays_and_gets_two_others_beside_it(passed, first, second, parameters):
    halves = split(CLASS.format(passed=passed))
    assert halves.texts.wrapped is not None and not halves.texts.is_replaced and not halves.assumptions
    elsewhere = split(CLASS.format(passed=passed), is_script=False)
    assert elsewhere.assumptions == ("no class in another file overrides `load`",)
    assert (halves.texts.wrapped.first, halves.texts.wrapped.second) == (first, second)
    assert halves.texts.first == textwrap.indent(textwrap.dedent("""\
        def load_cached(self, file, scale=2.0):
            side = self.side
            image = resize(decode(file), side)
            return image
        """), "    ")  # fmt: skip
    assert halves.texts.second == textwrap.indent(textwrap.dedent(f"""\
        def load_random({parameters}):
            side = self.side
            image = flip(image)
            return crop(image, side) * scale
        """), "    ")  # fmt: skip


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ("class Other(Loader):\n    def load(self, file):\n        return file\n", "`load` has more than one meaning"),
        ("def set(loader):\n    loader.load = len\n", "`load` has more than one meaning"),
    ],
)
def test_methods_that_may_be_others_are_not_split(more, reason):
    with pytest.raises(CannotSplitError, match=reason):
        split(more + CLASS.format(passed="self.load"))


def test_a_method_that_names_itself_or_assigns_its_object_is_not_split():
    with pytest.raises(CannotSplitError, match="it calls itself"):
        split(CLASS.format(passed="self.load").replace("decode(file)", "decode(self.load(file))"))
    with pytest.raises(CannotSplitError, match="it assigns `self`"):
        split(CLASS.format(passed="self.load").replace("side = self.side", "self = file"))


def test_a_second_half_that_needs_no_argument_of_the_wrapper_is_passed_by_its_name():
    halves = split("""
        def load(size, file):
            image = resize(decode(file), size)
            return flip(image)
        ds = ds.map(partial(load, 224))
        """)  # fmt: skip
    assert halves.texts.wrapped is not None
    assert (halves.texts.wrapped.first, halves.texts.wrapped.second) == ("partial(load_cached, 224)", "")
    assert halves.texts.second == "def load(image):\n    return flip(image)\n"


def test_an_argument_that_the_first_half_changes_is_passed_on():
    halves = split("""
        def load(file, seen):
            image = decode(file)
            seen = seen + image
            return flip(image) + seen
        ds = ds.map(lambda x: load(x, 3))
        """)  # fmt: skip
    assert halves.names == ("seen", "image") and halves.texts.wrapped is not None
    assert halves.texts.wrapped.second == ""


@pytest.mark.parametrize(
    ("passed", "reason"),
    [
        ("lambda x: load(x, *sizes)", "does not show which parameters it fills"),
        ("lambda x: load(x, 3, 4)", "does not show which parameters it fills"),
        ("partial(load, **options)", "does not show which parameters it fills"),
        ("lambda x, n=3: load(x, n)", "the traced graph does not show"),
        ("lambda x: load(x, make())", "computes an argument that both halves need"),
        ("partial(load, size=make())", "computes an argument that both halves need"),
        ("lambda x: load(x, image)", "`image` is also the name of a value"),
        ("lambda x: load(decode(x), 3)", "the traced graph does not show"),
        ("lambda x: load(x, x)", "the traced graph does not show"),
        ("partial(load,  # decodes\n    size=3)", "contains a comment"),
    ],
)
def test_wrappers_that_are_not_written_again(passed, reason):
    text = "def load(file, size):\n    image = decode(file)\n    return crop(flip(image), size)\n"
    with pytest.raises(CannotSplitError, match=reason):
        split(f"{text}ds = ds.map({passed})\n")
