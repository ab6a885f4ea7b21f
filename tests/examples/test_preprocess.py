"""From images to a model's input."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from argmaxable.core.errors import InputError
from argmaxable.examples.network import InputShape
from argmaxable.examples.preprocess import Preprocessing, preprocessing_for

LINES = InputShape("x", (None, 3, 48, None))
PHOTOS = InputShape("x", (None, 3, 224, 224))


def test_a_recogniser_gets_what_pp_ocr_expects() -> None:
    chosen = preprocessing_for(InputShape("x", (None, 3, None, None)), is_ctc=True)
    assert str(chosen) == (
        "ctc-line,height=48,width=320,channels=3,order=bgr,layout=nchw,mean=0.5,std=0.5,crop=1.0"
    )


def test_a_classifier_gets_imagenets_means() -> None:
    chosen = preprocessing_for(PHOTOS, is_ctc=False)
    assert (chosen.kind, chosen.mean, chosen.crop) == ("imagenet", (0.485, 0.456, 0.406), 0.875)


def test_channels_may_come_last() -> None:
    chosen = preprocessing_for(InputShape("x", (None, 96, 96, 3)), is_ctc=False)
    values, _ = chosen.array(Image.new("RGB", (200, 120)))
    assert (chosen.layout, values.shape) == ("nhwc", (96, 96, 3))


def test_what_is_shown_can_be_written_as_the_option() -> None:
    chosen = preprocessing_for(PHOTOS, is_ctc=False)
    assert preprocessing_for(LINES, is_ctc=True, text=str(chosen)) == chosen


def test_settings_override_what_the_graph_says() -> None:
    chosen = preprocessing_for(LINES, is_ctc=True, text="ctc-line,height=32,order=rgb,mean=0.1/0.2/0.3")
    assert (chosen.height, chosen.order, chosen.mean) == (32, "rgb", (0.1, 0.2, 0.3))


def test_a_line_is_scaled_to_the_height_and_padded_with_zeros() -> None:
    values, columns = preprocessing_for(LINES, is_ctc=True).array(Image.new("RGB", (200, 96), "white"))
    assert values.shape == (3, 48, 320)
    assert columns == 100
    assert (values[:, :, :100] == 1).all()
    assert (values[:, :, 100:] == 0).all()


def test_a_long_line_is_as_wide_as_it_is() -> None:
    values, columns = preprocessing_for(LINES, is_ctc=True).array(Image.new("RGB", (500, 48)))
    assert (values.shape[2], columns) == (500, 500)


def test_the_order_of_channels_is_as_asked() -> None:
    red = Image.new("RGB", (48, 48), (255, 0, 0))
    for order, place in (("rgb", 0), ("bgr", 2)):
        values, _ = preprocessing_for(LINES, is_ctc=True, text=f"ctc-line,order={order}").array(red)
        assert values[place, 0, 0] == 1
        assert values[1, 0, 0] == -1


def test_grey_models_get_one_channel() -> None:
    chosen = preprocessing_for(InputShape("x", (1, 1, 64, None)), is_ctc=True)
    assert chosen.array(Image.new("RGB", (64, 64)))[0].shape == (1, 64, 320)


def test_a_classifier_sees_the_middle_of_the_image() -> None:
    pixels = np.zeros((256, 256, 3), np.uint8)
    pixels[64:192, 64:192] = 255
    chosen = Preprocessing("imagenet", 128, 128, mean=(0.0,), std=(1.0,), crop=0.5)
    assert (chosen.array(Image.fromarray(pixels))[0] == 1).all()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("mnist", "'mnist' is not known"),
        ("ctc-line,heigth=48", "'heigth=48' is not a setting"),
        ("ctc-line,height=tall", "height=tall"),
        ("ctc-line,std=0", "std must not be 0"),
        ("ctc-line,order=gbr", "order must be rgb or bgr"),
        ("ctc-line,mean=0.1/0.2", "one for each channel"),
        ("ctc-line,height=0", "from 1 to 4096"),
        ("imagenet,crop=2", "crop must be in"),
    ],
)
def test_settings_that_make_no_sense_are_named(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        preprocessing_for(LINES, is_ctc=True, text=text)


def test_a_line_that_is_too_long_is_refused() -> None:
    with pytest.raises(InputError, match="too long"):
        preprocessing_for(LINES, is_ctc=True).array(Image.new("RGB", (9000, 48)))
