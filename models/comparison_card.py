"""The model card of a compared architecture, written from `results/` so that its figures cannot drift from them. As a script: all of them."""

from __future__ import annotations

import json
from pathlib import Path

RESULTS = Path(__file__).parent / "results"
REPOSITORY = Path(__file__).parent / "repository"
FORMS = {"naive": "as exported, a copy of the request per candidate (a)", "copies": "request side once, copies where candidates meet it (b)", "shared": "compiled (c), what is served", "candidate": "compiled, the request's artefact at hand (d)"}
METRICS = {
    "logLoss": "LogLoss, click", "auc": "AUC, click", "ndcgAt10": "NDCG@10, click", "regretAt10": "regret: value lost in the ten best",
    "conversionLogLoss": "LogLoss, conversion of clicked",
}
WHAT = {
    "dcn": """DCNv2 (Wang et al. 2021), small: both sides' features as tokens of 8 numbers (8 of the request, 6 of the candidate), linear compression to 3 + 5 of them,
two cross layers over all 64 numbers, hidden layers of 32 and 16, two heads: `click`, and `conversion` given a click. Nothing is masked: candidates reach every
column, so the compiler can share the request's features and its part of the first layer, and no more. It is the yardstick.""",
    "glm": """The baseline's layers, size for size, under Generalized Layer Masking: in every layer (linear compression, cross layers, MLP) an output of the request's group sees
inputs of the request's group only (M_ij = 1 for j ≤ i). It is trained so, not cut afterwards. The compiler finds the zeros and computes the request's share of every
layer once per request.""",
    "dca": """Deep Cross Attention in front of a wider GLM-DCNv2, which the table has alone too, to tell what attention adds from what width adds. S_0 are the history's rows, the same by their sign, and
their recency, and before them one row of the request itself, so that an empty history is defined. In each of two layers the request alone encodes S_i = Enc_i(S_{i−1}); queries of both groups come from [Q^R; Q^C] = MLP(LCB([Y^R; Y^C])) under the mask; and each
group looks at the history, A^g = Attn(Q^g, S_i·W_K^g, S_i·W_V^g), two heads, width 32. Queries and what they found are the next layer's tokens beside the first
ones. Keys and values are never copied per candidate: compiled, candidates lie in tiles of one request.""",
    "two-tower": """A vector of the request (hidden 96, width 32) times a vector of the item (hidden 96, width 32), plus a bias of the item's own. One head, `click`. For choosing
the few hundred candidates that a ranker scores: request and item meet in one product only.""",
}


def read(name: str) -> dict | None:
    file = RESULTS / f"{name}.json"
    return json.loads(file.read_text()) if file.exists() else None


def cell(metric: dict | None, digits: int = 4) -> str:
    return "–" if metric is None else f"{metric['mean']:.{digits}f}" + ("" if metric["std"] is None else f" ± {metric['std']:.{digits}f}")


def quality_table(report: dict, name: str) -> str:
    own = report["architectures"][name]
    others = {key: entry for key, entry in report["architectures"].items() if key != name}
    lines = [f"| | this model | {' | '.join(entry['title'] for entry in others.values())} |", "| --- " * (len(others) + 2) + "|"]
    for key, label in METRICS.items():
        if key in own["metrics"]:
            lines.append(f"| {label} | {cell(own['metrics'][key])} | {' | '.join(cell(entry['metrics'].get(key)) for entry in others.values())} |")
    return "\n".join(lines)


def against(report: dict, name: str) -> str:
    found = report["architectures"][name].get("againstDcn")
    if found is None:
        return ""
    difference = found["logLoss"]
    spread = "" if difference["std"] is None else f" ± {100 * difference['std']:.2f}"
    return f"LogLoss against the unmasked DCNv2 of the same seed: {100 * difference['mean']:+.2f}{spread} % (below 0 is better).\n"


def throughput_table(entry: dict) -> str:
    rows = entry["throughput"]
    cells = [["requests/s", *(f"N = {row['candidates']}" for row in rows)], ["---"] * (len(rows) + 1)]
    cells += [[label, *(f"{row[form]:.0f}" for row in rows)] for form, label in FORMS.items()]
    cells.append(["(c) / (a)", *(f"{row['shared'] / row['naive']:.1f} ×" for row in rows)])
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def formula(cost: dict) -> str:
    terms = zip(cost["features"], cost["coefficients"], strict=True)
    return " + ".join(f"{value:.3g}" if feature == "1" else f"{value:.3g}·{feature}" for feature, value in terms)


def public_check(name: str) -> str:
    """The table of MovieLens-100k, where it was run."""
    lines = ["| split | LogLoss | against DCNv2 | AUC |", "| --- | --- | --- | --- |"]
    for kind, label in (("per-user", "the last fifth of each user's ratings held out"), ("global", "the last fifth of all ratings held out")):
        report = read(f"movielens-{kind}")
        if report is None:
            continue
        entry = report["architectures"][name]
        difference = entry.get("againstDcn")
        compared = "–" if difference is None else f"{100 * difference['logLoss']['mean']:+.2f} ± {100 * (difference['logLoss']['std'] or 0):.2f} %"
        lines.append(f"| {label} | {cell(entry['metrics']['logLoss'])} | {compared} | {cell(entry['metrics']['auc'])} |")
    if len(lines) == 2:
        return ""
    return f"""
## Public check

The same architecture on MovieLens-100k (F. M. Harper, J. A. Konstan 2015; research use, so neither the data nor a model of it is here): will a film be rated 4 or more, given
the last 30 that the user rated, with their signs. Users and films have embeddings; the epoch is chosen on later ratings than those trained on.

{chr(10).join(lines)}
"""


def write_card(name: str) -> None:
    """README.md beside the version's config.yaml."""
    report, measured = read("synthetic"), read("throughput")
    if report is None or measured is None:
        raise FileNotFoundError("results/synthetic.json and results/throughput.json come first")
    entry = measured["architectures"][name]
    own, trained, held_out = report["architectures"][name], report["training"], report["heldOut"]
    cost = entry["cost"]
    family, number = entry["family"], entry["version"]
    (REPOSITORY / family / str(number) / "README.md").write_text(f"""\
# {family}, version {number} ({own['title']}, {entry['variant']})

**Trained on synthetic data.** Items, users and labels come from a seeded generator with a planted truth (`models/catalogue.py`, seed
{report['catalogueSeed']}). The scores say nothing about real products or people. This file is written by `models/train.sh`.

## Model

{WHAT[name]}

{own['parameters']:,} parameters, {entry['modelBytes'] / 1000:.0f} kB of ONNX. All compared models take the same inputs: the user [64], the history [T, 32] with signs, its length, the item [32]. Each is given
the history in three pools (liked, skipped, all by sign and recency){'; this one also looks at its rows' if name == 'dca' else ''}.

## Data and training

{trained['requests']:,} requests of {trained['candidates']} candidates from {trained['users']:,} training users, {report['epochs']} epoch{'s' if report['epochs'] > 1 else ''}, AdamW, the same impressions for all models of a seed. Seeds {report['seeds'][0]} to {report['seeds'][-1]}
vary users, impressions and weights, not the catalogue; seed {measured['seed']} is the one committed. Sizes, the learning rate and the layer norms of the attention
were settled after some ten tries measured on seed 1's held-out requests, so its figures lean to the favourable side.

## Held-out quality

{held_out['requests']:,} requests of {held_out['candidates']} candidates by the {held_out['users']} demo users, none of whom was trained on. Mean ± standard deviation over {len(report['seeds'])} seeds. The planted truth itself
gets LogLoss {report['truth']['logLoss']:.4f} and AUC {report['truth']['auc']:.4f} on such draws. Regret is the share of the true expected value (click · (0.2 + conversion)) that the ten best by score lose
against the ten best by the truth.

{quality_table(report, name)}

{against(report, name)}{public_check(name)}
## Speed

Requests per second of one thread, onnxruntime on the CPU ({measured['historyRows']} history rows), the forms in turn, by `millrace model compile`. The machine was busy: of two runs the faster is given, and single figures can be off by much.

{throughput_table(entry)}

Compiled: {entry['nodes']['request']} nodes once per request, {entry['nodes']['candidate']} per candidate (of {entry['nodes']['given']} per candidate); largest difference to the exported graph {entry['verified']['difference']:.1g} of the largest
score, on {entry['verified']['batches']} made-up batches. Cost model: {formula(entry['cost'])} ms, median error {100 * cost['medianRelativeError']:.0f} % on
shapes kept out of the fit.

## Use and limits

For running and testing millrace without a model of your own. Not for ranking anything real. It knows only the features of the synthetic catalogue; other inputs give numbers without meaning. Histories
are the newest 64 entries at most, oldest first. Licence: Apache-2.0, as the repository.
""")


def main() -> None:
    measured = read("throughput")
    for name in measured["architectures"] if measured else []:
        write_card(name)


if __name__ == "__main__":
    main()
