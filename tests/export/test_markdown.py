"""Markdown: short, with the proof, and texts of the run take no effect."""

from __future__ import annotations

import re

from advisor.export.markdown import code, fenced, plain, report_to_markdown
from tests.report.html.samples import hostile, proved, real_report

FENCE = re.compile(r"^(`{3,})(?:diff|python)$(.*?)^\1$", re.MULTILINE | re.DOTALL)


def test_says_verdict_proof_and_change():
    text = report_to_markdown(proved())
    assert text.startswith("### tf.data: ")
    assert "| input pipeline | 10 elements/s | 25 elements/s | 2.5x (2.4x to 2.6x) |" in text
    assert "+ds.map(decode, num_parallel_calls=4)" in text
    assert "| 1 | Parallelise map&#40;decode&#41; |" in text


def test_real_run_names_its_bottleneck():
    assert "**Bottleneck:** `scripts/interleave_map.py:14` `.map(heavy)`, 93.5 % of the wait" in report_to_markdown(
        real_report("interleave_map")
    )


def test_hostile_texts_take_no_effect():
    report = hostile()
    report["findings"][0]["title"] += " @everyone [x](http://a) | cell \n# heading"
    report["findings"][0]["diff"] = "+a\n```\n</details><script>alert(1)</script>\n````\n"
    text = report_to_markdown(report)
    assert len(text) < 100_000
    outside = re.sub(r"(`+)[^`].*?\1", "", FENCE.sub("", text))
    assert "<script" not in outside
    assert "@everyone" not in outside
    assert "](http" not in outside
    assert not re.search(r"^# heading", outside, re.MULTILINE)
    assert text.count("<details>") == text.count("</details>") - text.count("</details><script>")
    table = [line for line in text.splitlines() if line.startswith("| 1 |")]
    assert len(re.findall(r"(?<!\\)\|", table[0])) == 7


def test_code_and_blocks_hold_any_text():
    assert code("a`b``c") == "```a`b``c```"
    assert code("`a`") == "`` `a` ``"
    assert code("") == ""
    assert fenced("a\n````\n", "diff").startswith("`````diff\n")
    assert plain("<b>*_[") == "&#60;b&#62;&#42;&#95;&#91;"


def test_bare_text_becomes_no_link_list_or_rule():
    assert plain("see https://a.example or www.a.example") == "see https&#58;//a.example or www&#46;a.example"
    assert plain("train.py:42 takes 3.5 s") == "train.py:42 takes 3.5 s"
    assert [plain(text)[:5] for text in ("- a", "=== a", "--- a")] == ["&#45;", "&#61;", "&#45;"]
    assert (plain("1. a"), plain("12) a"), plain("1.5 a")) == ("1&#46; a", "12&#41; a", "1.5 a")
