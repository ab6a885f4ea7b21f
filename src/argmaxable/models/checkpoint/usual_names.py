"""What output layers, embeddings and the parts of a model are usually called, whatever family it is of.

`argmaxable.models.checkpoint.families` says where the known families keep their heads. These lists are for
the rest: files without a configuration, and models nobody has added to that table.
"""

from __future__ import annotations

# Prefixes of a whole model inside a larger one, or left by training tools; and of its body inside a
# model that also sees or hears.
WRAPPERS = ("", "language_model.", "decoder.", "model.", "module.")
INNER_BODIES = ("", "model.language_model.", "language_model.", "model.text_model.")
# Under which names a configuration describes the language model inside a larger one.
INNER_CONFIGS = ("text_config", "decoder", "llm_config", "language_config")

# Names that output layers and embeddings have in most models, for those the table does not know.
USUAL_HEADS = (
    "lm_head.weight",
    "lm_head.decoder.weight",
    "cls.predictions.decoder.weight",
    "predictions.decoder.weight",
    "vocab_projector.weight",
    "generator_lm_head.weight",
    "lm_loss.weight",
    "pred_layer.proj.weight",
    "output.weight",
    "output_projection.weight",
    "embed_out.weight",
    "embed_out",
    "encoder.lm_head.weight",
    "classifier.weight",
    "classifier.out_proj.weight",
    "classification_head.out_proj.weight",
    "score.weight",
    "head.weight",
    "head.fc.weight",
    "heads.head.weight",
    "fc.weight",
    "fc_out.weight",
    "generator.proj.weight",
)
USUAL_EMBEDDINGS = (
    "embed_tokens.weight",
    "wte.weight",
    "word_embeddings.weight",
    "embeddings.word_embeddings.weight",
    "tok_embeddings.weight",
    "shared.weight",
    "token_embedding.weight",
    "word_embedding.weight",
    "tokens_embed.weight",
    "embed_in.weight",
)
USUAL_BODIES = ("", "model.", "transformer.", "decoder.", "model.decoder.", "backbone.")
# Parts of names that only the body of a large model has. Its head goes by a usual name, or is not there:
# whatever layer comes last otherwise pools, projects or compares.
BODY_PARTS = ("attention", "attn", "pooler")

# Model types whose head is not one stored matrix: the tensor that looks like it would be wrong.
NOT_A_MATRIX = {
    "mobilebert": "joins two matrices to its output layer",
    "baichuan": "normalises the rows of its output layer when it is used",
    "distilled deit": "takes the mean of two output layers' answers",
    "sentence-transformers dense": "makes a text's features, which are compared, not classes",
}
# Tensors by which such a model is told when there is no configuration: it has all of them.
MARKS_OF_NO_MATRIX = {
    "mobilebert": ("mobilebert.embeddings.word_embeddings.weight", "cls.predictions.bias"),
    "baichuan": ("model.layers.0.self_attn.W_pack.weight", "lm_head.weight"),
    "distilled deit": ("head.weight", "head_dist.weight"),
}
# The configuration of a layer that sentence-transformers puts behind a model, which names no model type.
DENSE_SETTINGS = ("in_features", "out_features", "activation_function")
# Endings of architectures whose last layer scores something else than classes.
NOT_CLASSES = {
    "ForQuestionAnswering": "scores positions in a text, as start and as end of the answer",
    "ForMultipleChoice": "scores each answer by itself",
}
