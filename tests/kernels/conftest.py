"""Where there is no GPU, Triton's kernels are tested in its interpreter, to be chosen before Triton is imported."""

from lessons.lesson07_triton_kernel.language import settle

settle()
