"""The public surface, pinned: a change here is a change for users."""

import pytest

import nearfuture
from nearfuture import laws
from nearfuture.cli import app

FLAGS = {
    "budget": {
        "--preset",
        "--budget",
        "--heads",
        "--rate",
        "--window-ms",
        "--hop-ms",
        "--mel-bins",
        "--stack",
        "--conv",
        "--causal-conv",
        "--projection",
        "--no-projection",
        "--cell",
        "--hidden",
        "--layers",
        "--biases",
        "--bidirectional",
        "--merge",
        "--share-input",
        "--block",
        "--attention-heads",
        "--chunk",
        "--left-chunks",
        "--right-context",
        "--expansion",
        "--kernel",
        "--batch-norm",
        "--no-batch-norm",
        "--layer-norm",
        "--no-layer-norm",
        "--mixing",
        "--output-hidden",
        "--no-output-hidden",
        "--outputs",
        "--resampler-ms",
        "--quantum-wait-ms",
        "--json",
    },
    "transcribe": {
        "FILES",
        "--model",
        "--budget",
        "--grammar",
        "--threshold",
        "--format",
        "--out",
        "--quiet",
        "--live",
    },
    "train": {
        "--data",
        "--preset",
        "--from",
        "--rate",
        "--heads",
        "--models",
        "--steps",
        "--epochs",
        "--batch-seconds",
        "--bfloat16",
        "--longest",
        "--learning-rate",
        "--regularise",
        "--no-regularise",
        "--distill",
        "--shifts",
        "--delay-penalty",
        "--seed",
        "--processes",
        "--threads",
        "--out",
    },
    "export": {"RUN", "--out"},
    "align": {
        "FILES",
        "--text",
        "--data",
        "--model",
        "--format",
        "--out",
        "--segment",
        "--silence-ms",
        "--max-s",
        "--max-cost",
        "--min-confidence",
        "--max-cer",
        "--late",
    },
    "evaluate": {
        "--model",
        "--twin",
        "--data",
        "--split",
        "--budgets",
        "--limit",
        "--by",
        "--speakers",
        "--json",
        "--plot",
    },
    "data import": {
        "SOURCE",
        "--out",
        "--split-by",
        "--dev",
        "--test",
        "--seed",
        "--copy",
        "--speaker-folders",
    },
    "data check": {
        "SOURCE",
        "--vocabulary",
        "--longest",
        "--frame-ms",
        "--speaker-folders",
        "--all",
        "--json",
    },
    "data list": {"--to"},
    "data fetch": {"NAME", "--to", "--mirror"},
    "audit": {
        "TARGET",
        "--shape",
        "--example",
        "--dtype",
        "--tokens",
        "--lengths",
        "--at-most",
        "--frame-ms",
        "--layout",
        "--output",
        "--output-layout",
        "--takes",
        "--keyword",
        "--frame-samples",
        "--step",
        "--start",
        "--finish",
        "--chunks",
        "--first-chunk",
        "--padding",
        "--stride",
        "--observed",
        "--torch",
        "--train",
        "--lookahead-only",
        "--seed",
        "--out",
        "--json",
    },
    "serve": {
        "--model",
        "--budget",
        "--host",
        "--port",
        "--listen",
        "--precision",
        "--threads",
        "--silence-ms",
        "--longest-ms",
        "--allow-origin",
        "--api-key-file",
        "--tls-cert",
        "--tls-key",
        "--max-load",
        "--max-streams",
        "--max-connections",
        "--max-idle-sockets",
        "--max-stream-seconds",
        "--max-message-bytes",
        "--max-file-bytes",
        "--max-upload-seconds",
        "--max-waiting-seconds",
        "--max-unread",
        "--headers-seconds",
        "--idle-seconds",
        "--drain-seconds",
        "--final-results-seconds",
        "--log",
        "--log-text",
    },
    "lab": {
        "--port",
        "--browser",
        "--no-browser",
        "--language",
        "--export",
        "--onnxruntime-web",
    },
    "quantize": {
        "MODEL",
        "--precision",
        "--data",
        "--limit",
        "--to",
    },
    "listen": {
        "--model",
        "--budget",
        "--device",
        "--list-devices",
        "--file",
        "--wav-out",
    },
    "stream": {
        "FILE",
        "--url",
        "--protocol",
        "--real-time",
        "--fast",
        "--budget",
        "--model",
        "--api-key",
        "--json",
    },
    "measure": {
        "URL",
        "FILES",
        "--protocol",
        "--data",
        "--limit",
        "--words",
        "--connections",
        "--seconds",
        "--chunk-ms",
        "--finish-timeout-s",
        "--budget",
        "--model",
        "--api-key",
        "--json",
    },
    "phrases": {"FILES", "--intents", "--model", "--sample", "--seed", "--words", "--json"},
    "lm build": {"TEXTS", "--out", "--order"},
    "demo": set(),
}


def test_top_level() -> None:
    assert nearfuture.__all__ == [
        "NearfutureError",
        "ReceptiveField",
        "Serial",
        "StreamingLayer",
        "__version__",
        "load",
    ]


def test_the_laws() -> None:
    assert laws.__all__ == [
        "ALL",
        "DTYPES",
        "EXAMPLES",
        "PROBES",
        "TOLERANCE",
        "Law",
        "LawBroken",
        "LayerOrFactory",
        "Partition",
        "any_dtype_and_device",
        "any_partition",
        "check",
        "declared_is_measured",
        "dependency_matrix",
        "emission_schedule",
        "gradients_agree",
        "padding_is_ignored",
        "partition_free_state",
        "partitions",
        "prefill_then_step",
        "reset_equals_new_stream",
        "rows_are_independent",
        "snapshot_round_trip",
    ]


@pytest.mark.parametrize("name", nearfuture.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(nearfuture, name) is not None
    assert name in dir(nearfuture)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="forecast"):
        _ = nearfuture.forecast  # type: ignore[attr-defined]


def test_commands() -> None:
    flags = {"-h", "--help", "--version"}
    known = {command.split()[0] for command in FLAGS}
    assert set(app) - flags == known
    assert set(app["data"]) - flags == {"import", "check", "list", "fetch"}
    assert set(app["lm"]) - flags == {"build"}


@pytest.mark.parametrize("command", FLAGS)
def test_flags(command: str) -> None:
    called = app
    for word in command.split():
        called = called[word]
    arguments = called.assemble_argument_collection()
    names = {name for argument in arguments if argument.parse for name in argument.names}
    assert names - {"*"} == FLAGS[command]  # * is a dataclass whose fields are flags
