"""What serving is like under load: the real scheduler and the real memory, recorded or made traffic, and a cost model
in the place of the model. No tensors here, and no picture: figures go out.
"""
