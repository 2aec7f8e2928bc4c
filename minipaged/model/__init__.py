"""Weights, KV cache, sampler, tokenizer. Knows nothing of requests, scheduling or who owns a block."""
