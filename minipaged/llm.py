"""LLM: prompts in, texts out. It puts the house together and is the only part that knows text.

Whoever asks for a result steps the engine, and thereby everyone's requests: `generate` until its own are done, a stream
until its own next piece is there. Nothing runs in the background.
"""

from __future__ import annotations

import logging
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Set
from collections.abc import Sequence as Items
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, SupportsIndex

import torch
from minipaged_kernels import backends

from minipaged.answer_writer import AnswerWriter, Piece
from minipaged.config import EngineConfig
from minipaged.engine import Engine
from minipaged.model.kv_cache import KVCache
from minipaged.model.loader import load_model, resolve_model
from minipaged.model.packed_linear import pack_linears
from minipaged.model.sampler import Sampler
from minipaged.model.tokenizer import Tokenizer
from minipaged.parts import Parts
from minipaged.pool_size import choose_host_blocks, choose_pool_size, describe_pool, free_host_bytes
from minipaged.progress import ProgressBar
from minipaged.request import Completion, Request, RequestOutput
from minipaged.runner import AttentionBackend, TorchRunner
from minipaged.sampling_params import SamplingParams

logger = logging.getLogger("minipaged")

Prompt = str | Items[int]  # text, or token ids


class LLM:
    """A model ready to answer, as vLLM's `LLM`.

    With `MINIPAGED_DEBUG=1` in the environment the books are checked after every step and freed blocks hold NaN.

    Args:
        model: "tiny-gpt", which is shipped, or a folder in the Hugging Face GPT-2 format.
        parts: parts of your own in the place of ours.
        **options: the fields of `EngineConfig`: num_blocks, block_size, dtype, device …

    Raises:
        ValueError: an unknown option, an impossible value, or a folder that cannot be loaded. One line.
    """

    def __init__(self, model: str | Path = "tiny-gpt", *, parts: Parts | None = None, **options: Any) -> None:
        parts = parts or Parts()
        self.config = EngineConfig.from_dict(options)
        device = _device(self.config.device)
        folder = resolve_model(model)
        self.model_config, self.model = load_model(folder, self.config.dtype, device)
        self.tokenizer = Tokenizer.from_folder(folder)
        parameters = sum(weight.numel() for weight in self.model.parameters())
        self.backend = backends.choose(self.config.attention, device.type)
        _compile_kernels(self.backend, self.model.dtype)
        pack_linears(self.model, own_kernel=self.backend.name == "cpu")
        attention = parts.attention or self.backend

        itemsize, block_size = self.model.dtype.itemsize, self.config.block_size
        size = choose_pool_size(self.config, self.model_config, itemsize, _free_bytes(device))
        host_blocks = choose_host_blocks(self.config, self.model_config, itemsize, free_host_bytes())
        self.kv_cache = KVCache(
            self.model_config,
            size.num_blocks,
            block_size,
            self.model.dtype,
            device,
            num_host_blocks=host_blocks,
            copy_blocks=getattr(attention, "copy_blocks", self.backend.copy_blocks),
        )
        #: One line: the model, and the pool with the reason for its size.
        self.description = (
            f"{folder.name}: {parameters / 1e6:.1f} M parameters, {self.config.dtype} on {device}, "
            f"{_name(attention)} attention. " + describe_pool(size, host_blocks, block_size, self.kv_cache.block_bytes)
        )
        logger.info(self.description)

        debug = os.environ.get("MINIPAGED_DEBUG") == "1"
        memory = parts.memory(
            parts.pool(size.num_blocks),
            parts.tree(block_size),
            parts.swap(host_blocks) if host_blocks else None,
            table=parts.table,
            share_prefixes=self.config.share_prefixes,
            block_bytes=self.kv_cache.block_bytes,
            poison_freed=debug,
        )
        scheduler = parts.scheduler(
            memory,
            max_batch_tokens=self.config.max_batch_tokens,
            max_sequences=self.config.max_sequences,
            max_chunk_tokens=self.config.max_chunk_tokens,
            max_positions=self.model_config.max_positions,
            watermark_slots=int(self.config.watermark * memory.total_slots),
            order=parts.order,
        )
        runner = TorchRunner(self.model, self.kv_cache, Sampler(), attention, inputs=parts.inputs)
        self.engine = Engine(scheduler, runner, self.model_config, seed=self.config.seed)
        if debug:
            self.engine.listeners.append(lambda record: memory.check())
        self._writers: dict[
            int, AnswerWriter
        ] = {}  # sequence id -> the text being written; of requests still being read

    # Asking ----------------------------------------------------------------------------------------------------------

    def generate(
        self,
        prompts: Prompt | Items[Prompt],
        sampling_params: SamplingParams | Items[SamplingParams] | None = None,
        *,
        progress: bool | None = None,
        cache_salt: str | None = None,
    ) -> list[RequestOutput]:
        """Answer prompts together.

        Args:
            prompts: texts or lists of token ids; one alone counts as a list of one.
            sampling_params: for all prompts, or one for each; the defaults when None.
            progress: a bar on standard error; None shows it on a terminal when the work takes over a second.
            cache_salt: what these prompts compute is shared only with requests of the same salt.

        Returns:
            One output per prompt, in their order. One whose forward pass failed has `finish_reason` "error".

        Raises:
            ValueError: a prompt is refused; the message says which and why, and none of them has been run.
        """
        prompts = _as_list(prompts)
        if sampling_params is None or isinstance(sampling_params, SamplingParams):
            sampling_params = [sampling_params or SamplingParams()] * len(prompts)
        if isinstance(sampling_params, (str, Mapping)) or not isinstance(sampling_params, Items):
            name = type(sampling_params).__name__
            raise ValueError(f"sampling_params are a {name}; they must be SamplingParams, or a list of them")
        if len(sampling_params) != len(prompts):
            raise ValueError(
                f"LLM.generate: {len(prompts)} prompts, {len(sampling_params)} sampling params; give one for each"
            )
        jobs: list[_Job] = []
        bar: AbstractContextManager[Any] = nullcontext() if progress is False else ProgressBar(progress)
        try:
            for number, (prompt, params) in enumerate(zip(prompts, sampling_params, strict=True)):
                try:
                    jobs.append(self._submit(prompt, params, cache_salt))
                except ValueError as error:
                    raise ValueError(f"prompt {number}: {error}" if len(prompts) > 1 else str(error)) from None
            with bar as shown:
                for job in jobs:
                    while not job.request.finished:
                        self.step()
                        if shown is not None and shown.is_due():
                            done = sum(job.request.finished for job in jobs)
                            shown.update(done, len(jobs), sum(job.num_tokens for job in jobs))
            return [job.output() for job in jobs]
        finally:  # forgets the writers; cancels what an interruption or a later prompt's refusal left unfinished
            for job in jobs:
                self._drop(job)

    def stream(
        self, prompt: Prompt, sampling_params: SamplingParams | None = None, *, cache_salt: str | None = None
    ) -> Stream:
        """Answer one prompt piece by piece.

        Args:
            prompt: a text or a list of token ids.
            sampling_params: how to sample; the defaults when None.
            cache_salt: what this prompt computes is shared only with requests of the same salt.

        Returns:
            An iterator of `Piece`. Closing it, or letting it go, cancels the request.

        Raises:
            ValueError: the prompt is refused.
        """
        params = SamplingParams() if sampling_params is None else sampling_params
        return Stream(self, self._submit(prompt, params, cache_salt))

    def step(self) -> None:
        """One step of the engine for everyone, and the text that it brought.

        `generate` and a stream call it themselves; whoever has requests of several streams open may call it too.
        """
        for sequence in self.engine.step():
            writer = self._writers.get(sequence.id)
            if writer is not None:
                writer.read()
                if writer.stopped:
                    self.engine.finish(sequence, "stop")

    # Within ----------------------------------------------------------------------------------------------------------

    def _submit(self, prompt: Prompt, params: SamplingParams, cache_salt: str | None) -> _Job:
        if not isinstance(params, SamplingParams):
            raise ValueError(f"sampling_params has a {type(params).__name__}; it must be SamplingParams")
        text = prompt if isinstance(prompt, str) else None
        if self.tokenizer is None and (text is not None or params.stop):
            what = "a text prompt" if text is not None else "stop strings"
            raise ValueError(f"this model has no tokenizer.json, so {what} cannot be used; give token ids")
        if isinstance(prompt, str):
            assert self.tokenizer is not None
            try:
                prompt.encode()
            except UnicodeEncodeError:
                raise ValueError("the prompt has a lone surrogate, which is no character") from None
            prompt = self.tokenizer.encode(prompt)
        request = self.engine.add_request(prompt, params, cache_salt=cache_salt)
        writers = [AnswerWriter(self.tokenizer, sequence) for sequence in request.sequences]
        self._writers.update((sequence.id, writer) for sequence, writer in zip(request.sequences, writers, strict=True))
        return _Job(text, request, writers)

    def _drop(self, job: _Job) -> None:
        self.engine.cancel(job.request)
        for sequence in job.request.sequences:
            self._writers.pop(sequence.id, None)


class Stream(Iterator[Piece]):
    """The pieces of one request, in the order in which they are written. Made by `LLM.stream`."""

    def __init__(self, llm: LLM, job: _Job) -> None:
        self._llm = llm
        self._job = job
        self._closed = False
        self._ready: deque[Piece] = deque()

    @property
    def request(self) -> Request:
        """The request, for those who want more than text."""
        return self._job.request

    def __next__(self) -> Piece:
        while not self._ready:
            if self._closed:
                raise StopIteration
            if self._job.request.finished:
                self.close()
            else:
                self._llm.step()
            self._ready.extend(piece for writer in self._job.writers for piece in writer.take())
        return self._ready.popleft()

    def close(self) -> None:
        """Stop listening. A request that has not ended is cancelled; pieces that are ready can still be read."""
        if not self._closed:
            self._closed = True
            self._llm._drop(self._job)

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()


@dataclass(slots=True)
class _Job:
    """A request with the text of its answers."""

    prompt: str | None
    request: Request
    writers: list[AnswerWriter]

    @property
    def num_tokens(self) -> int:
        return sum(len(sequence.draws) for sequence in self.request.sequences)

    def output(self) -> RequestOutput:
        """What the user gets back."""
        wants_logprobs = self.request.params.logprobs is not None
        completions = []
        for writer in self.writers:
            writer.read()
            sequence = writer.sequence
            completions.append(
                Completion(
                    index=sequence.index,
                    text=writer.text,
                    token_ids=tuple(sequence.output_token_ids),
                    finish_reason=writer.finish_reason,
                    cumulative_logprob=sum(draw.logprob for draw in sequence.draws),
                    logprobs=tuple(sequence.draws) if wants_logprobs else None,
                )
            )
        return RequestOutput(
            self.request.id,
            self.prompt,
            self.request.prompt_token_ids,
            tuple(completions),
            self.request.finished,
            self.request.error,
        )


def _as_list(prompts: Prompt | Items[Prompt]) -> list[Prompt]:
    """One prompt alone, text or token ids, becomes a list of one."""
    if isinstance(prompts, str):
        return [prompts]
    if isinstance(prompts, (bytes, Mapping, Set)) or not isinstance(prompts, Iterable):
        raise ValueError(f"prompts are a {type(prompts).__name__}; they must be text, token ids, or a list of either")
    items: list[Any] = list(prompts)
    return [items] if items and isinstance(items[0], SupportsIndex) else items


def _device(name: str) -> torch.device:
    name = str(name)
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name.startswith("cuda") and not torch.cuda.is_available():
        raise ValueError(f"device is {name!r}, but torch {torch.__version__} sees no CUDA device; use device='cpu'")
    try:
        return torch.device(name)
    except RuntimeError as error:
        raise ValueError(f"device is {name!r}: {str(error).splitlines()[0]}") from None


def _name(attention: AttentionBackend) -> str:
    """A backend's own name, a module's, or a class's."""
    return str(getattr(attention, "name", None) or getattr(attention, "__name__", type(attention).__name__))


def _compile_kernels(backend: backends.Backend, dtype: torch.dtype) -> None:
    """Compile now what the first step would otherwise wait for, and say so; a compiled kernel is kept on disk."""
    if backend.name != "cpu":
        return
    from minipaged_kernels import cpu

    if not cpu.is_compiled(dtype):
        name = str(dtype).removeprefix("torch.")
        print(f"minipaged: compiling the CPU kernels for {name}, once; it takes some 20 seconds …", file=sys.stderr)
    cpu.warm_up(dtype)


def _free_bytes(device: torch.device) -> int:
    return torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else free_host_bytes()
