"""Paged attention, the writing of K and V, and the copying of blocks: tensors in, tensors out.

One module per backend, the same three functions in each: `paged_attention`, `write_kv`, `copy_blocks`. `reference` is
plain torch and the oracle of the others. Nothing here knows of sequences' owners, requests or models, and nothing is
imported until it is asked for.
"""
