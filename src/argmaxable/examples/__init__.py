"""Inputs as a model sees them: text rendered in fonts, or images, run through an ONNX model up to its
output layer.

`network` runs the model, `preprocess` turns images into its input. `faces`, `printing`, `lines` and
`corpus` make lines of text for recognisers; `images` reads folders of them. All end in
`core.examples.Examples`: `recognised` for lines that were printed, `labelled` for images that were found.
"""
