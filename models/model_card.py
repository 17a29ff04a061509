"""The model card of a version, written from metrics.json so that its figures cannot drift from it."""

from __future__ import annotations

from pathlib import Path

RANKING_METRICS = {
    "clickAuc": "AUC, click",
    "clickNdcgAt10": "NDCG@10, click",
    "valueShareAt10": "share of the best possible value in the top 10",
    "valueShareAt10Cold": "the same, cold users only",
}
MODEL_METRICS = {
    "clickLogLoss": "LogLoss, click",
    "clickCalibration": "predicted / observed clicks",
    "conversionAuc": "AUC, conversion of clicked",
    "conversionLogLoss": "LogLoss, conversion of clicked",
    "conversionCalibration": "predicted / observed conversions of clicked",
}


def cell(metric: dict | None) -> str:
    if metric is None:
        return "–"
    return f"{metric['mean']:.4f}" + ("" if metric["std"] is None else f" ± {metric['std']:.4f}")


def metrics_table(report: dict, number: str) -> str:
    references = report["references"]
    columns = {
        "this model": report["versions"][number]["metrics"],
        "exported weights": {name: {"mean": metric["perSeed"][0], "std": None} for name, metric in report["versions"][number]["metrics"].items()},
        **{f"version {other} ({entry['variant']})": entry["metrics"] for other, entry in report["versions"].items() if other != number},
        "popularity": references["popularity"],
        "click rate per item": references["clickRate"],
        "planted truth": references["truth"],
    }
    lines = [f"| | {' | '.join(columns)} |", "| --- " * (len(columns) + 1) + "|"]
    for key, label in {**RANKING_METRICS, **MODEL_METRICS}.items():
        lines.append(f"| {label} | {' | '.join(cell(column.get(key)) for column in columns.values())} |")
    return "\n".join(lines)


def write_card(path: Path, number: str, report: dict) -> None:
    entry = report["versions"][number]
    widths, cost, sharing = entry["widths"], entry["cost"], entry["sharing"]
    trained, held_out = report["training"], report["heldOut"]
    coefficients = " + ".join(
        f"{value:.3g}" if feature == "1" else f"{value:.3g}·{feature}" for feature, value in zip(cost["features"], cost["coefficients"], strict=True)
    )
    path.write_text(f"""\
# ranker, version {number} ({entry['variant']})

**Trained on synthetic data.** Items, users and labels come from a seeded generator with a planted truth (`models/catalogue.py`,
seed {report['catalogueSeed']}). The scores say nothing about real products or people. This file is written by `models/train.sh`.

## Model

GLM-DCNv2 in two groups, {entry['parameters']:,} parameters, {entry['modelBytes'] / 1000:.0f} kB of ONNX. The request side (user [64], history [T, 32] pooled by
attention with {widths['queries']} quer{'y' if widths['queries'] == 1 else 'ies'} from the user, beside a sink that makes an empty history defined) runs once per request: {widths['layers']} cross layers of width {widths['request_width']}.
What candidates need of it is one row per request, gathered by `request_index`. The candidate side (item [32]): {widths['layers']} cross layers
of width {widths['candidate_width']}, hidden layers of {widths['hidden'][0]} and {widths['hidden'][1]}, two heads: `click`, and `conversion` given a click.
No candidate can reach the request side or another candidate.

## Data and training

{trained['requests']:,} requests of {trained['candidates']} candidates from {trained['users']:,} training users, {entry['epochs']} epochs, AdamW; the same impressions for both variants. Candidates are half
drawn by popularity (Zipf), half uniformly. The conversion head learns from clicked impressions only. Seeds {report['seeds'][0]} to {report['seeds'][-1]} vary users,
impressions and weights, not the catalogue; seed {report['exportedSeed']} is exported. Widths and epochs were settled
after a dozen tries measured on seed 1's held-out requests, so its figures lean to the favourable side; the other seeds took no part in that.

## Held-out quality

{held_out['requests']:,} requests of {held_out['candidates']} candidates by the {held_out['users']} demo users, none of whom was trained on. Mean ± standard deviation over {len(report['seeds'])} seeds.

{metrics_table(report, number)}

Popularity ranks by clicks per item in the training impressions; click rate per item is smoothed with 20 impressions at the mean. The value of
a candidate is click · (0.2 + conversion) by the planted truth, and the best possible ranking sorts by it. The planted truth's
column is the ceiling: labels are random draws, and features are noisy views of it.

## Cost

Onnxruntime ({cost['machine']}): {cost['measured']['msN256T32']:.3f} ms for a request of 256 candidates
and 32 history rows. Model of one request: {coefficients} ms, median error {100 * cost['medianRelativeError']:.1f} % on shapes kept out of the fit (95th percentile
{100 * cost['p95RelativeError']:.0f} %). Request side once per request against once per candidate, N = {sharing['candidates']}, T = {sharing['historyRows']}: {sharing['sharedMs']:.3f} ms against
{sharing['naiveMs']:.2f} ms, {sharing['naiveMs'] / sharing['sharedMs']:.0f}×.

## Checks at export

Scores in mixed batches against one by one: relative difference ≤ {entry['checks']['batchingRelativeDifference']:.1g} (1e-5 allowed). ONNX against PyTorch: ≤ {entry['checks']['torchRelativeDifference']:.1g}.
Changing a candidate left every other score the same to the bit. Padding was filled with noise.

## Use and limits

For running and testing millrace without a model of your own: demos, routing, batching and rollout tests. Not for ranking anything real.
It knows only the features of the synthetic catalogue; other inputs give numbers without meaning. Histories are the newest 64 entries at most, oldest
first. Cold users (no profile, two history entries at most) have only their intent and tags to go by; the table says what that costs.
""")
