from __future__ import annotations

from advisor.model.text import message_of, one_line, printable, reason_of


def test_what_acts_on_a_terminal_is_an_escape():
    assert printable("a\x1b[31m\u202eb\ud800\x85\u2028") == "a\\x1b[31m\\u202eb\\ud800\\x85\\u2028"


def test_spaces_and_kept_characters_stay():
    assert printable("a\xa0b\u3000c é") == "a\xa0b\u3000c é"
    assert printable("a\nb\tc", keep="\n") == "a\nb\\tc"


def test_a_message_is_one_line_without_a_full_stop():
    assert message_of(ValueError("It failed:\n  too  long.")) == "It failed: too long"
    assert one_line(" It failed:\n  too  long. ") == "It failed: too long."


def test_a_reason_is_the_systems_the_message_or_the_type():
    assert reason_of(OSError(2, "No such file or directory", "a.py")) == "No such file or directory"
    assert reason_of(OSError("gone.\n")) == "gone"
    assert reason_of(ValueError("It failed.")) == "It failed"
    assert reason_of(ValueError()) == "ValueError"
