"""`steps_per_epoch` is passed to a call of `fit` whose data become endless, if the text shows that nothing else reads them."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model.calls import Site
from advisor.model.edits import InsertAfter, SetFitArgument
from advisor.model.finding import Fix, Safety
from advisor.rewrite.apply.undo import undo
from advisor.rewrite.apply.write import write_patch
from advisor.rewrite.cannot_rewrite import CannotRewrite
from advisor.rewrite.combined_edits import combine
from advisor.rewrite.patch import Patch, patch_for
from tests.rewrite.source_text import calls_in

DATA = "ds = tf.data.Dataset.range(100).map(f)\nds = ds.batch(8)\n"


def site_of(text: str, method: str, file: str) -> Site:
    site = calls_in(text, file)[method].site
    assert site is not None
    return site


def steps(text: str, file: str, count: int = 13) -> SetFitArgument:
    return SetFitArgument(
        site_of(text, "fit", file), "steps_per_epoch", count, site_of(text, "map", file), method="map"
    )


def after(text: str, folder: Path) -> str:
    """The changed text, or why there is none."""
    path = folder / "train.py"
    path.write_bytes(text.encode())
    calls = calls_in(text, str(path))
    patch = patch_for([InsertAfter("map", "repeat")], calls, folder, step_edits=[steps(text, str(path))])
    return patch.reason if isinstance(patch, CannotRewrite) else patch.files[path][1].decode()


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        ("model.fit(ds)", "model.fit(ds, steps_per_epoch=13)"),
        ("model.fit(x=ds, epochs=3)", "model.fit(x=ds, epochs=3, steps_per_epoch=13)"),
        ("model.fit(ds, steps_per_epoch=None)", "model.fit(ds, steps_per_epoch=13)"),
        ("model.fit(ds, None, None, 3)", "model.fit(ds, None, None, 3, steps_per_epoch=13)"),
        ("model.fit(ds.prefetch(2), epochs=3)", "model.fit(ds.prefetch(2), epochs=3, steps_per_epoch=13)"),
        ("model.fit(ds, validation_data=val)", "model.fit(ds, validation_data=val, steps_per_epoch=13)"),
        ("h = model.fit(ds)\nprint(h, ds.element_spec)", "h = model.fit(ds, steps_per_epoch=13)\nprint(h, ds.element_spec)"),
        (
            "model.fit(\n    ds,  # all\n    epochs=3,\n)",
            "model.fit(\n    ds,  # all\n    epochs=3,\n    steps_per_epoch=13,\n)",
        ),
    ],
)  # fmt: skip
def test_the_argument_is_added(call, changed, tmp_path):
    text = f"{DATA}{call}\n"
    assert after(text, tmp_path) == text.replace(call, changed).replace(".map(f)", ".map(f).repeat()")


def test_the_way_leads_through_functions_that_are_called_once(tmp_path):
    text = (
        "def data():\n    ds = tf.data.Dataset.range(100).map(f)\n    return ds.batch(8)\n\n\n"
        "def main():\n    train = data().prefetch(2)\n    model.fit(train, epochs=3)\n\n\n"
        'if __name__ == "__main__":\n    main()\n'
    )
    assert after(text, tmp_path) == text.replace("epochs=3", "epochs=3, steps_per_epoch=13").replace(
        ".map(f)", ".map(f).repeat()"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"{DATA}model.fit(ds, steps_per_epoch=5)\n", "fit already sets steps_per_epoch (line 3)"),
        (f"{DATA}model.fit(ds, **settings)\n", "* or **, which may contain steps_per_epoch"),
        (f"{DATA}model.fit(ds, None, 8, 3, 0, [], 0, val, True, None, None, 0, 5)\n", "passed by position"),
        (f"{DATA}model.evaluate(ds)\nmodel.fit(ds)\n", "Line 3 also uses the dataset that fit reads"),
        (f"{DATA}model.fit(ds)\nfor batch in ds:\n    show(batch)\n", "Line 4 also uses"),
        (f"{DATA}model.fit(ds, validation_data=ds.take(3))\n", "Line 3 also uses"),
        (f"{DATA}val = ds.take(3)\nmodel.fit(ds, validation_data=val)\n", "Line 4 also uses"),
        (f"{DATA}model.fit(ds)\nprint(len(ds))\n", "Line 4 also uses"),
        (f"{DATA}train(ds)\nmodel.fit(ds)\n", "Line 3 also uses"),
        (f"{DATA}self.ds = ds\nmodel.fit(self.ds)\n", "Line 3 also uses"),
        (f"{DATA}if short:\n    ds = other.batch(8)\nmodel.fit(ds)\n", "ds may hold another dataset (line 4)"),
        (f"{DATA}model.fit(ds if long else other)\n", "Line 3 also uses"),
        ("def data():\n    if short:\n        return other\n    return range(9).map(f)\n\n\nmodel.fit(data())\n", "also uses"),
        (f"{DATA}model.fit(other)\n", "does not show that fit in line 3 reads the dataset"),
        (f"{DATA}for fold in range(3):\n    model.fit(ds)\n", "Line 4 may be executed more than once"),
        (f"{DATA}[model.fit(ds) for _ in range(3)]\n", "Line 3 may be executed more than once"),
        ("def data():\n    return range(9).map(f)\n\n\na, b = data(), data()\nmodel.fit(a)\n", "show that data is called once"),
        ("def main():\n    ds = range(9).map(f)\n    model.fit(ds)\n\n\nrun(main)\n", "show that main is called once"),
        ("def main():\n    ds = range(9).map(f)\n    model.fit(ds)\n    main()\n", "show that main is called once"),
        ("@twice\ndef main():\n    ds = range(9).map(f)\n    model.fit(ds)\n\n\nmain()\n", "show that main is called once"),
        ("class A:\n    def main(self):\n        ds = range(9).map(f)\n        model.fit(ds)\n", "show that main is called once"),
        ("def data():\n    return range(9).map(f)\n\n\nfor _ in range(2):\n    model.fit(data())\n",
         "Line 6 may be executed more than once"),
    ],
)  # fmt: skip
def test_what_is_not_plain_is_refused(text, says, tmp_path):
    assert says in after(text, tmp_path)


def test_a_dataset_of_another_file_is_refused(tmp_path):
    text = f"{DATA}model.fit(ds)\n"
    path = tmp_path / "train.py"
    path.write_text(text)
    other = SetFitArgument(
        site_of(text, "fit", str(path)), "steps_per_epoch", 13, site_of(text, "map", "data.py"), method="map"
    )
    patch = patch_for([], {}, tmp_path, step_edits=[other])
    assert isinstance(patch, CannotRewrite) and "another file" in patch.reason


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_undo_restores_every_byte(newline, script, run_folder):
    text = f"{DATA}model.fit(\n    ds,  # ü\n)\n".replace("\n", newline)
    script.write_bytes(text.encode())
    calls = calls_in(text, str(script))
    patch = patch_for([InsertAfter("map", "repeat")], calls, script.parent, step_edits=[steps(text, str(script))])
    assert isinstance(patch, Patch), patch
    write_patch(patch, run_folder)
    assert b"steps_per_epoch=13" in script.read_bytes() and b".repeat()" in script.read_bytes()
    undo(script)
    assert script.read_bytes() == text.encode()


def test_two_numbers_of_steps_conflict():
    text = f"{DATA}model.fit(ds)\n"
    one, two = (
        Fix((), Safety.NUMERICS, is_auto=False, step_edits=(steps(text, "train.py", count),)) for count in (13, 14)
    )
    with pytest.raises(ValueError, match="both set the same argument"):
        combine([one, two])
