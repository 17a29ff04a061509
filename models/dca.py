"""Deep Cross Attention: both sides look at the request's history, at every layer, under the mask."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from dcn import TOKEN_WIDTH, Tokens, Trunk
from layers import Compression, GroupLinear, Groups, Perceptron
from request_features import RequestFeatures, ages, recency

PADDING_LOGIT = -1e9


class SequenceEncoder(nn.Module):
    """Enc_i, on each row by itself: S_i = S_{i-1} + relu(norm(S_{i-1})·U)·V. [B, T, width] -> the same."""

    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.widen = nn.Linear(width, 2 * width)
        self.narrow = nn.Linear(2 * width, width)

    def forward(self, sequence: Tensor) -> Tensor:
        return sequence + self.narrow(torch.relu(self.widen(self.norm(sequence))))


class CrossAttention(nn.Module):
    """A = Attn(Q, S·W_K, S·W_V) with several heads: query [B·candidates, width], sequence [B, T, width], mask [B, 1, 1, T] -> [B·candidates, width]."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads, self.each = heads, width // heads
        self.key = nn.Linear(width, width, bias=False)
        self.value = nn.Linear(width, width, bias=False)

    def forward(self, query: Tensor, sequence: Tensor, mask: Tensor, candidates: int) -> Tensor:
        queries = query.unflatten(0, (-1, candidates)).unflatten(2, (self.heads, self.each)).transpose(1, 2)
        keys = self.key(sequence).unflatten(2, (self.heads, self.each)).permute(0, 2, 3, 1)
        values = self.value(sequence).unflatten(2, (self.heads, self.each)).transpose(1, 2)
        weights = torch.softmax(queries @ keys / math.sqrt(self.each) + mask, dim=3)
        return (weights @ values).transpose(1, 2).flatten(2).flatten(0, 1)


class CrossAttentionLayer(nn.Module):
    """[Q^R; Q^C] = MLP(LCB([Y^R; Y^C])) under the mask, and A^g = Attn(Q^g, S·W_K^g, S·W_V^g) for both groups g; Q^g and S normalised."""

    def __init__(self, tokens: Groups, kept: Groups, width: int, heads: int):
        super().__init__()
        self.width = width
        self.encoder = SequenceEncoder(width)
        self.compression = Compression(tokens, kept, masked=True)
        both = Groups(width, width)
        self.perceptron = Perceptron([kept.times(TOKEN_WIDTH), both], masked=True)
        self.query = GroupLinear(both, both, masked=True)
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.request = CrossAttention(width, heads)
        self.candidate = CrossAttention(width, heads)

    def forward(self, tokens: Tensor, sequence: Tensor, mask: Tensor, candidates: int) -> list[Tensor]:
        """Q^R, A^R, Q^C, A^C [N, width each] from Y [N, tokens.total, TOKEN_WIDTH] and S_i [B, T, width]."""
        queries = self.query(self.perceptron(self.compression(tokens).flatten(1)))
        of_request, of_candidate = self.norms[0](queries[:, : self.width]), self.norms[1](queries[:, self.width :])
        sequence = self.norms[2](sequence)
        return [
            of_request, self.request(of_request, sequence, mask, candidates),
            of_candidate, self.candidate(of_candidate, sequence, mask, candidates),
        ]


class Dca(nn.Module):
    """Logits [B·candidates, heads] from user [B, U], history [B, T, I], history_length [B] and item [B·candidates, I].

    S_0 holds the history's rows, the same by their sign, and their recency; before them a row of the request itself, so that an empty history is defined. A layer's
    Y_i are the tokens of both sides with that layer's queries and what they found beside them; the last ones go through the DCN's trunk.
    """

    def __init__(
        self, user_width: int, item_width: int, tokens: Groups, kept: Groups, layers: int, hidden: list[Groups], heads: int,
        attention_layers: int, attention_width: int, attention_heads: int, asked: Groups,
    ):
        super().__init__()
        self.groups = tokens
        self.features = RequestFeatures(user_width, item_width)
        self.tokens = Tokens(self.features.width, item_width, tokens)
        self.first_row = nn.Linear(self.features.width, attention_width)
        self.rows = nn.Linear(2 * item_width + 1, attention_width)
        found = 2 * attention_width // TOKEN_WIDTH
        widened = Groups(tokens.request + found, tokens.candidate + found)
        sizes = [tokens] + [widened] * (attention_layers - 1)
        self.attention = nn.ModuleList(CrossAttentionLayer(size, asked, attention_width, attention_heads) for size in sizes)
        self.trunk = Trunk(widened, kept, layers, hidden, heads, masked=True)

    def sequence(self, request: Tensor, history: Tensor, history_length: Tensor) -> tuple[Tensor, Tensor]:
        """S_0 [B, 1 + T, attention width], and the mask that is added to logits [B, 1, 1, 1 + T]."""
        age, _ = ages(history, history_length)
        rows = self.rows(torch.cat([history, history * history[:, :, -1:], recency(age)[:, :, None]], dim=2))
        sequence = torch.cat([self.first_row(request)[:, None, :], rows], dim=1)
        steps = torch.arange(sequence.shape[1], device=history.device)
        mask = (steps[None, :] > history_length[:, None]).to(history.dtype) * PADDING_LOGIT
        return sequence, mask[:, None, None, :]

    def forward(self, user: Tensor, history: Tensor, history_length: Tensor, item: Tensor, candidates: int = 1) -> Tensor:
        request = self.features(user, history, history_length)
        sequence, mask = self.sequence(request, history, history_length)
        first = self.tokens(request, item, candidates)
        of_request, of_candidate = first[:, : self.groups.request], first[:, self.groups.request :]
        tokens = first
        for layer in self.attention:
            sequence = layer.encoder(sequence)
            found = [part.unflatten(1, (-1, TOKEN_WIDTH)) for part in layer(tokens, sequence, mask, candidates)]
            tokens = torch.cat([of_request, *found[:2], of_candidate, *found[2:]], dim=1)
        return self.trunk(tokens)
