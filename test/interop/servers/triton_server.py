"""Serves the graphs with a Triton Inference Server, by NVIDIA's PyTriton: https://github.com/triton-inference-server/pytriton"""

from __future__ import annotations

import signal
import sys

from pytriton.model_config import ModelConfig, Tensor
from pytriton.triton import Triton, TritonConfig

import graphs


def tensors(values: list[graphs.Value]) -> list[Tensor]:
    return [Tensor(name=one.name, dtype=graphs.ELEMENT[one.datatype], shape=tuple(one.shape)) for one in values]


def bind(triton: Triton, name: str, version: str, graph: graphs.Graph) -> None:
    def infer(requests):  # noqa: ANN001, ANN202
        return [graph.run(request.data) for request in requests]

    # No batches of its own: our worker makes them.
    config = ModelConfig(batching=False)
    triton.bind(name, infer, tensors(graph.inputs), tensors(graph.outputs), model_version=int(version), config=config)


if __name__ == "__main__":
    given = graphs.arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    config = TritonConfig(
        http_address="127.0.0.1",
        http_port=given.http_port,
        grpc_address="127.0.0.1",
        grpc_port=given.grpc_port,
        metrics_address="127.0.0.1",
        metrics_port=given.metrics_port,
    )
    with Triton(config=config, workspace=given.work) as triton:
        for (family, version), graph in graphs.load(given.models).items():
            bind(triton, family, version, graph)
        triton.serve()
