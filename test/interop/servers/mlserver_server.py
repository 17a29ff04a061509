"""Serves the graphs with MLServer: https://github.com/SeldonIO/MLServer"""

from __future__ import annotations

import asyncio
from pathlib import Path

from mlserver import MLModel, MLServer, ModelSettings, Settings
from mlserver.codecs import NumpyCodec
from mlserver.settings import ModelParameters
from mlserver.types import InferenceRequest, InferenceResponse, MetadataTensor

import graphs


class OnnxModel(MLModel):
    async def load(self) -> bool:
        self.graph = graphs.Graph(Path(self.settings.parameters.uri))
        self.inputs = [MetadataTensor(**vars(one)) for one in self.graph.inputs]
        self.outputs = [MetadataTensor(**vars(one)) for one in self.graph.outputs]
        return True

    async def predict(self, payload: InferenceRequest) -> InferenceResponse:
        tensors = {one.name: NumpyCodec.decode_input(one) for one in payload.inputs}
        answer = await asyncio.to_thread(self.graph.run, tensors)
        outputs = [NumpyCodec.encode_output(name, values) for name, values in answer.items()]
        return InferenceResponse(id=payload.id, model_name=self.name, model_version=self.version, outputs=outputs)


async def main() -> None:
    given = graphs.arguments()
    settings = Settings(
        host="127.0.0.1",
        http_port=given.http_port,
        grpc_port=given.grpc_port,
        metrics_port=given.metrics_port,
        metrics_dir=str(given.work),
        parallel_workers=0,
    )
    models = [
        ModelSettings(name=file.parts[-3], implementation=OnnxModel, parameters=ModelParameters(version=file.parts[-2], uri=str(file)))
        for file in sorted(given.models.glob("*/*/model.onnx"))
    ]
    await MLServer(settings).start(models)


if __name__ == "__main__":
    asyncio.run(main())
