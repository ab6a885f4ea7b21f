"""PaddlePaddle's inference models: a program (.pdmodel) and its parameters (.pdiparams)."""
