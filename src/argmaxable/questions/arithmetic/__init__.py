"""What bf16, fp16 and float32 leave of the verdicts, and heads stored in fewer bits (docs/arithmetic.md)."""
