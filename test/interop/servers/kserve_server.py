"""Serves the graphs with KServe's own model server: https://github.com/kserve/kserve"""

from __future__ import annotations

import graphs

GIVEN = graphs.arguments()

import grpc.aio._server  # noqa: E402
import kserve  # noqa: E402
import uvicorn  # noqa: E402


class Loopback(uvicorn.Config):
    """KServe listens on every address, and has no setting for it."""

    def __init__(self, app: str, **options: object) -> None:
        super().__init__(app, **{**options, "host": "127.0.0.1"})


uvicorn.Config = Loopback


class LoopbackGrpc(grpc.aio._server.Server):
    def add_insecure_port(self, address: str) -> int:
        return super().add_insecure_port(address.replace("[::]", "127.0.0.1"))


grpc.aio._server.Server = LoopbackGrpc


class OnnxModel(kserve.Model):
    def __init__(self, name: str, graph: graphs.Graph) -> None:
        super().__init__(name)
        self.graph = graph
        self.ready = True

    async def get_input_types(self) -> list[dict]:
        return [vars(one) for one in self.graph.inputs]

    async def get_output_types(self) -> list[dict]:
        return [vars(one) for one in self.graph.outputs]

    def predict(self, payload: kserve.InferRequest, *_headers: dict[str, str] | None) -> kserve.InferResponse:
        answer = self.graph.run({one.name: one.as_numpy() for one in payload.inputs})
        as_bytes = payload.use_binary_outputs
        outputs = []
        for described in self.graph.outputs:
            values = answer[described.name]
            output = kserve.InferOutput(described.name, list(values.shape), described.datatype)
            output.set_data_from_numpy(values, binary_data=as_bytes)
            outputs.append(output)
        # Its id is the request's, as it comes: KServe answers HTTP 500 where there is none.
        return kserve.InferResponse(
            response_id=payload.id,
            model_name=self.name,
            infer_outputs=outputs,
            use_binary_outputs=as_bytes,
            requested_outputs=payload.request_outputs,
        )


if __name__ == "__main__":
    # KServe's server has no versions: one name for each.
    models = [OnnxModel(f"{family}-{version}", graph) for (family, version), graph in graphs.load(GIVEN.models).items()]
    kserve.ModelServer(http_port=GIVEN.http_port, grpc_port=GIVEN.grpc_port, workers=1).start(models)
