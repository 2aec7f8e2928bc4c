"""Who owns which block. No tensors here: a block is a number, and its content is somebody else's business."""
