"""What a profile lacks is said, with how to mend it; a profile that has everything says nothing."""

from __future__ import annotations

import pytest

from advisor.graph import analyse
from advisor.profile import read_trace
from tests.profile.made_profile import ProfileBuilder


def warnings_of(profile: ProfileBuilder, tmp_path) -> str:
    return " ".join(analyse(read_trace(profile.write(tmp_path / "h.xplane.pb")), None, "run").warnings)


def profile(gpus: tuple[int, ...] = (), host: bool = True) -> ProfileBuilder:
    """`gpus`: events of each."""
    made = ProfileBuilder()
    if host:
        line = made.host.line("python")
        for step in range(5):
            line.event("Iterator::Root", step * 10, step * 10 + 5, id=1)
    for number, events in enumerate(gpus):
        line = made.plane(f"/device:GPU:{number}").line("Stream #1")
        for place in range(events):
            line.event("kernel", place, place + 0.5)
    return made


@pytest.mark.parametrize(
    ("error", "said"),
    [
        ("Failed to load libcupti (is it installed and accessible?)", "extras/CUPTI/lib64 on LD_LIBRARY_PATH"),
        ("CUPTI_ERROR_INSUFFICIENT_PRIVILEGES", "NVreg_RestrictProfilingToAdminUsers=0"),
        ("failed with error insufficient privilege", "run as root"),
        ("CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED", "end the other profiler"),
        ("CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED", "virtual GPU"),
    ],
)
def test_the_profilers_own_errors_are_kept_and_mended(tmp_path, error, said):
    made = profile(gpus=(0,))
    made.message.errors.append(error.encode())
    text = warnings_of(made, tmp_path)
    assert error in text
    assert said in text
    assert "recorded no events" not in text, "one reason is enough"


def test_an_unknown_error_is_reported_verbatim(tmp_path):
    made = profile()
    made.message.errors.append(b"the sky fell down")
    assert warnings_of(made, tmp_path) == "the sky fell down"


def test_an_empty_device_without_an_error(tmp_path):
    assert "/device:GPU:0 recorded no events" in warnings_of(profile(gpus=(0,)), tmp_path)


def test_idle_devices(tmp_path):
    assert "Only 2 of 4 devices did work (/device:GPU:0, /device:GPU:2)" in warnings_of(
        profile(gpus=(500, 0, 400, 2)), tmp_path
    )


def test_devices_alone(tmp_path):
    assert "only device events" in warnings_of(profile(gpus=(10,), host=False), tmp_path)


def test_a_profile_of_jax_does_not_see_tf_data(tmp_path):
    made = profile(host=False)
    made.host.line("python").event("PjitFunction(step)", 0, 1)
    assert "JAX's profiler, which does not record tf.data" in warnings_of(made, tmp_path)


@pytest.mark.parametrize("gpus", [(), (100,), (100, 90)])
def test_a_complete_profile_causes_no_remark(tmp_path, gpus):
    assert warnings_of(profile(gpus), tmp_path) == ""
