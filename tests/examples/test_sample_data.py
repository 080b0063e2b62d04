"""The sample data are what they claim to be: real JPEGs and text, the same every time, all or nothing."""

import io
import itertools

import pytest


@pytest.mark.long
def test_image_folder_holds_a_folder_per_class(sample_data, tmp_path):
    folder = sample_data.image_folder(count=16, data_dir=tmp_path)
    assert sorted(entry.name for entry in folder.iterdir()) == list(sample_data.CLASS_NAMES)
    assert len(list(folder.glob("*/*.jpg"))) == 16
    assert [entry.name for entry in tmp_path.iterdir()] == [folder.name], "nothing unfinished is left"


@pytest.mark.long
def test_jpegs_are_varied_photographs(sample_data):
    from PIL import Image

    sizes, labels = set(), []
    for label, jpeg in sample_data.varied_jpegs(16):
        image = Image.open(io.BytesIO(jpeg))
        assert image.format == "JPEG" and image.mode == "RGB"
        assert all(sample_data.SHORTEST_SIDE <= side <= sample_data.LONGEST_SIDE for side in image.size)
        sizes.add(image.size)
        labels.append(label)
    assert len(sizes) > 12
    assert labels == list(sample_data.CLASS_NAMES) * 2


@pytest.mark.long
def test_same_arguments_make_the_same_bytes(sample_data):
    assert list(sample_data.varied_jpegs(3, seed=4)) == list(sample_data.varied_jpegs(3, seed=4))
    assert list(sample_data.varied_jpegs(3, seed=4)) != list(sample_data.varied_jpegs(3, seed=5))


@pytest.mark.long
def test_made_once(sample_data, tmp_path):
    made = []

    def make(folder):
        made.append(folder)
        (folder / "file").write_text("content")

    for _ in range(2):
        assert (sample_data.make_once(tmp_path / "data", make) / "file").read_text() == "content"
    assert len(made) == 1


def test_interrupted_making_leaves_nothing(sample_data, tmp_path):
    def make(folder):
        (folder / "half").write_text("")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        sample_data.make_once(tmp_path / "data", make)
    assert list(tmp_path.iterdir()) == []


def test_a_faster_run_wins(sample_data, tmp_path):
    def make(folder):
        (tmp_path / "data").mkdir()
        (tmp_path / "data" / "file").write_text("of the other run")
        (folder / "file").write_text("ours")

    assert (sample_data.make_once(tmp_path / "data", make) / "file").read_text() == "of the other run"
    assert [entry.name for entry in tmp_path.iterdir()] == ["data"]


@pytest.mark.long
def test_paragraphs_are_labelled_text(sample_data):
    texts = list(itertools.islice(sample_data.paragraphs(), 300))
    assert len(texts) == 300
    for label, text in texts:
        assert label in (0, 1)
        assert sample_data.SMALLEST_PARAGRAPH <= len(text) <= sample_data.LARGEST_PARAGRAPH
        assert "\n" not in text and "\t" not in text


@pytest.mark.long
def test_text_folder_has_a_label_and_a_paragraph_a_line(sample_data, tmp_path):
    files = sorted(sample_data.text_folder(files=3, data_dir=tmp_path).iterdir())
    assert len(files) == 3
    assert sum(file.stat().st_size for file in files) > 2_000_000
    for line in files[0].read_text(encoding="utf-8").splitlines():
        label, text = line.split("\t")
        assert label in "01" and text


@pytest.mark.long
@pytest.mark.tensorflow
def test_flowers_like_loads_offline(sample_data, tmp_path, monkeypatch):
    tfds = pytest.importorskip("tensorflow_datasets")
    import flowers_like_dataset

    monkeypatch.setattr(flowers_like_dataset, "TRAIN_EXAMPLES", 16)
    monkeypatch.setattr(flowers_like_dataset, "VALIDATION_EXAMPLES", 8)
    train, info = tfds.load("flowers_like", split="train", data_dir=tmp_path, as_supervised=True, with_info=True)
    assert info.splits["train"].num_examples == 16 and info.splits["validation"].num_examples == 8
    assert info.features["label"].names == list(sample_data.CLASS_NAMES)
    labels = []
    for image, label in train.as_numpy_iterator():
        assert image.shape[2] == 3 and min(image.shape[:2]) >= sample_data.SHORTEST_SIDE
        labels.append(int(label))
    assert sorted(labels) == sorted(list(range(8)) * 2)
