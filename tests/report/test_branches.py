"""Rows of a table that would read the same name the branch of the pipeline in which they are."""

from __future__ import annotations

from advisor.report.branches import Row, name_branches


def branches_of(*rows: Row) -> dict[str, str]:
    return name_branches(rows, {row.id for row in rows})


def test_rows_that_differ_name_no_branch() -> None:
    zipped = Row("z", None, "Zip", "zip")
    assert branches_of(zipped, Row("a", "z", "Map", "map"), Row("b", "z", "Map", "other map")) == {}
    assert branches_of(zipped, Row("a", "z", "Map", "map"), Row("b", "z", "ParallelMapV2", "map")) == {}


def test_a_dataset_with_two_consumers_names_both() -> None:
    """`zip((a, a.map(f)))`: the second copy of `a` is fed to the map, which is the second input of the zip."""
    zipped, mapped = Row("z", None, "Zip", "zip"), Row("m", "z", "Map", "map(f)")
    copies = (Row("a", "z", "Map", "map"), Row("b", "m", "Map", "map"))
    assert branches_of(zipped, copies[0], mapped, copies[1]) == {"a": "input 1 of Zip", "b": "input 2 of Zip"}


def test_a_branch_of_a_branch_names_as_many_junctions_as_tell_them_apart() -> None:
    rows = [Row("z", None, "Zip", "zip"), Row("y", "z", "Concatenate", "c"), Row("x", "z", "Concatenate", "c")]
    rows += [Row(f"{above}{number}", above, "Map", "map") for above in "yx" for number in (1, 2)]
    branches = branches_of(*rows)
    assert branches["y2"] == "input 2 of Concatenate, input 1 of Zip"
    assert len({branches[row.id] for row in rows if row.type == "Map"}) == 4
    assert branches["y"] == "input 1 of Zip"


def test_only_what_is_in_the_table_counts() -> None:
    rows = (Row("z", None, "Zip", "zip"), Row("a", "z", "Map", "map"), Row("b", "z", "Map", "map"))
    assert name_branches(rows, {"z", "a"}) == {}


def test_iterators_that_name_each_other_as_parents_end() -> None:
    rows = (Row("a", "b", "Map", "map"), Row("b", "a", "Map", "map"))
    assert branches_of(*rows) == {}
