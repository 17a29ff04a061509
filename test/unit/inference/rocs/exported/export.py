"""Writes the models of this folder as PyTorch's exporter writes them: `<python with torch and onnx> export.py`. Untrained, seeded, a row per candidate.

They are small and their weights mean nothing: what matters is which nodes an exporter makes of common layers.
"""

from pathlib import Path

import torch
from torch import nn

FOLDER = Path(__file__).parent
ROWS, STEPS = 5, 7


class CrossNetwork(nn.Module):
    """DCNv2 whose request columns see request columns only, then an MLP with a layer norm."""

    def __init__(self, request: int, candidate: int, layers: int):
        super().__init__()
        width = request + candidate
        mask = torch.ones(width, width)
        mask[:request, request:] = 0
        self.cross = nn.ModuleList(nn.Linear(width, width) for _ in range(layers))
        for layer in self.cross:
            layer.weight.data *= mask
        self.top = nn.Sequential(nn.Linear(width, 16), nn.LayerNorm(16), nn.GELU(), nn.Linear(16, 1))

    def forward(self, user, item):
        first = torch.cat([user, item], dim=1)
        x = first
        for layer in self.cross:
            x = first * layer(x) + x
        return torch.sigmoid(self.top(x).squeeze(-1))


class CrossAttention(nn.Module):
    """Candidates look at the request's masked history with several heads, layer upon layer."""

    def __init__(self, width: int, heads: int, layers: int):
        super().__init__()
        self.heads, self.width = heads, width
        make = lambda inputs: nn.ModuleList(nn.Linear(inputs, width) for _ in range(layers))
        self.query, self.key, self.value, self.encode, self.mix = make(width), make(width), make(width), make(width), make(3 * width)
        self.norm = nn.ModuleList(nn.LayerNorm(width) for _ in range(layers))
        self.out = nn.Linear(width, 1)

    def split(self, x):
        return x.unflatten(-1, (self.heads, self.width // self.heads)).transpose(1, 2)

    def forward(self, user, history, history_length, item):
        mask = torch.arange(history.shape[1], device=history.device)[None, :] < history_length[:, None]
        sequence, state = history, item
        for query, key, value, encode, mix, norm in zip(self.query, self.key, self.value, self.encode, self.mix, self.norm):
            sequence = torch.relu(encode(sequence))
            pooled = nn.functional.scaled_dot_product_attention(
                self.split(query(state).unsqueeze(1)), self.split(key(sequence)), self.split(value(sequence)), attn_mask=mask[:, None, None, :]
            )
            pooled = pooled.transpose(1, 2).flatten(2).squeeze(1)
            state = norm(torch.relu(mix(torch.cat([user, pooled, state], dim=1))))
        return self.out(state).squeeze(-1)


class Embeddings(nn.Module):
    """Ids on both sides, and batch norm as it is at inference."""

    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(30, 8), nn.Embedding(50, 8)
        self.top = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.BatchNorm1d(16), nn.Dropout(), nn.Linear(16, 1))

    def forward(self, user, item):
        return self.top(torch.cat([self.user(user), self.item(item)], dim=-1)).squeeze(-1)


def write(name: str, model: nn.Module, inputs: dict[str, torch.Tensor], sequences: tuple[str, ...] = ()) -> None:
    free = torch.export.Dim.DYNAMIC
    shapes = tuple({0: free, 1: free} if key in sequences else {0: free} for key in inputs)
    program = torch.onnx.export(
        model.eval(), tuple(inputs.values()), dynamo=True, opset_version=20, input_names=list(inputs), output_names=["score"], verbose=False,
        dynamic_shapes=shapes,
    )
    proto = program.model_proto
    for part in [proto, proto.graph, *proto.graph.node, *proto.graph.input, *proto.graph.output, *proto.graph.initializer]:
        part.ClearField("metadata_props")
        part.ClearField("doc_string")
    proto.graph.ClearField("value_info")
    (FOLDER / f"{name}.onnx").write_bytes(proto.SerializeToString(deterministic=True))


if __name__ == "__main__":
    torch.manual_seed(1)
    length = torch.randint(1, STEPS, (ROWS,))
    write("cross-network", CrossNetwork(24, 8, 3), {"user": torch.randn(ROWS, 24), "item": torch.randn(ROWS, 8)})
    write(
        "cross-attention",
        CrossAttention(16, 4, 2),
        {"user": torch.randn(ROWS, 16), "history": torch.randn(ROWS, STEPS, 16), "history_length": length, "item": torch.randn(ROWS, 16)},
        ("history",),
    )
    write("embeddings", Embeddings(), {"user": torch.randint(0, 30, (ROWS,)), "item": torch.randint(0, 50, (ROWS,))})
