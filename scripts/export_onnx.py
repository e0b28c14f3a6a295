#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""Exports a BERT-family safetensors checkpoint to a model folder with an ONNX file.

Owns: the ONNX graph and the configuration files of a model folder. Needs only `onnx` and `numpy`:
the set-up must not pull in PyTorch to write two hundred nodes. The same checkpoint always gives the
same bytes, because the SHA-256 of `model.onnx` is how a database recognises its model.

  export_onnx.py CHECKPOINT OUT [--int8] [--heads N] [--eps E] [--window N] [--name NAME]

CHECKPOINT holds model.safetensors, tokenizer.json and usually config.json. Shapes are read from the
tensors; config.json or flags supply what shapes cannot tell (attention heads, epsilon).
A checkpoint with a `classifier` becomes a cross-encoder: its output is `logits`.
"""

import argparse
import json
import re
import shutil
import struct
import sys
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17  # the first with LayerNormalization
IR_VERSION = 8  # the one that belongs to opset 17; fixed so that newer onnx packages write the same bytes
DTYPES = {"F64": np.float64, "F32": np.float32, "F16": np.float16, "I64": np.int64, "I32": np.int32}

# Copied as they are when present: pooling, normalisation and prefixes are the checkpoint's to say.
COMPANIONS = [
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
    "modules.json",
    "1_Pooling/config.json",
]


def read_safetensors(path):
    """All floating-point tensors of a safetensors file as float32."""
    data = path.read_bytes()
    (header_len,) = struct.unpack("<Q", data[:8])
    header = json.loads(data[8 : 8 + header_len])
    base = 8 + header_len
    tensors = {}
    for name, info in header.items():
        if name == "__metadata__":
            continue
        start, end = info["data_offsets"]
        raw = data[base + start : base + end]
        if info["dtype"] == "BF16":  # the upper half of a float32
            array = (np.frombuffer(raw, np.uint16).astype(np.uint32) << 16).view(np.float32)
        elif info["dtype"] in DTYPES:
            array = np.frombuffer(raw, DTYPES[info["dtype"]])
        else:
            sys.exit(f"error: tensor {name} has the unsupported type {info['dtype']}")
        tensors[name] = array.reshape(info["shape"]).astype(np.float32)
    return tensors


def strip_prefix(tensors):
    """Names without the prefix that task-specific classes put before the encoder (`bert.`, `model.bert.`)."""
    anchor = "embeddings.word_embeddings.weight"
    found = [n for n in tensors if n.endswith(anchor)]
    if len(found) != 1:
        sys.exit(f"error: not a BERT checkpoint: {len(found)} tensors end in {anchor}")
    prefix = found[0][: -len(anchor)]
    return {(n[len(prefix) :] if n.startswith(prefix) else n): t for n, t in tensors.items()}


class Graph:
    """Collects nodes and weights; every method returns the name of what it made."""

    def __init__(self, int8):
        self.nodes, self.weights, self.int8 = [], [], int8
        self.quantised = {}  # activation → its quantised form, so that one input is quantised once

    def constant(self, name, array):
        self.weights.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def op(self, kind, inputs, name, outputs=None, **attributes):
        outputs = outputs or [name]
        self.nodes.append(helper.make_node(kind, inputs, outputs, name=name, **attributes))
        return outputs[0]

    def linear(self, x, weight, bias, name):
        """x · weightᵀ + bias. `weight` is [out, in], as PyTorch stores it."""
        matrix = np.ascontiguousarray(weight.T)
        if self.int8:
            product = self.int8_product(x, matrix, name)
        else:
            product = self.op("MatMul", [x, self.constant(f"{name}.weight", matrix)], f"{name}.matmul")
        return self.op("Add", [product, self.constant(f"{name}.bias", bias)], f"{name}.out")

    def int8_product(self, x, matrix, name):
        """Dynamic quantisation: activations per token at run time, weights per output channel here.

        Per token and not per tensor (as DynamicQuantizeLinear would): a text must get the same vector
        whatever else is in its batch. Weights use 7 bits (±63): on x86 without VNNI the sum of two 8-bit
        products saturates in 16 bits, and vectors would depend on the processor.
        """
        scale = np.maximum(np.abs(matrix).max(axis=0), 1e-12).astype(np.float32) / np.float32(63)
        weight = np.clip(np.rint(matrix / scale), -63, 63).astype(np.int8)
        if x not in self.quantised:
            largest = self.op("ReduceMax", [self.op("Abs", [x], f"{x}.abs")], f"{x}.max", axes=[-1], keepdims=1)
            largest = self.op("Max", [largest, "tiny"], f"{x}.largest")
            unit = self.op("Mul", [x, self.op("Div", ["levels", largest], f"{x}.inverse")], f"{x}.unit")
            # Casting cuts off, so adding half a level to the offset rounds.
            shifted = self.op("Add", [unit, "offset_and_half"], f"{x}.shifted")
            q = self.op("Cast", [shifted], f"{x}.q", to=TensorProto.UINT8)
            self.quantised[x] = q, self.op("Div", [largest, "levels"], f"{x}.q_scale")
        q, q_scale = self.quantised[x]
        acc = self.op("MatMulInteger", [q, self.constant(f"{name}.weight", weight), "offset"], f"{name}.matmul")
        acc = self.op("Cast", [acc], f"{name}.float", to=TensorProto.FLOAT)
        # One scale after the other. Multiplied with each other first, ONNX Runtime 1.23 would fuse them with the
        # product and the bias into MatMulIntegerToFloat, which adds the bias before a scale that is not a scalar.
        acc = self.op("Mul", [acc, self.constant(f"{name}.scale", scale)], f"{name}.by_channel")
        return self.op("Mul", [acc, q_scale], f"{name}.by_token")

    def layer_norm(self, x, scale, bias, eps, name):
        w, b = self.constant(f"{name}.weight", scale), self.constant(f"{name}.bias", bias)
        return self.op("LayerNormalization", [x, w, b], f"{name}.out", axis=-1, epsilon=eps)

    def gelu(self, x, name):
        """The exact (erf) form, in the node order that ONNX Runtime fuses."""
        scaled = self.op("Div", [x, "sqrt2"], f"{name}.div")
        erf = self.op("Erf", [scaled], f"{name}.erf")
        one_more = self.op("Add", [erf, "one"], f"{name}.add")
        product = self.op("Mul", [x, one_more], f"{name}.mul")
        return self.op("Mul", [product, "half"], f"{name}.out")


def embeddings(g, t, eps):
    g.constant("word_embeddings", t["embeddings.word_embeddings.weight"])
    g.constant("position_embeddings", t["embeddings.position_embeddings.weight"])
    g.constant("token_type_embeddings", t["embeddings.token_type_embeddings.weight"])
    g.op("Shape", ["input_ids"], "sequence_length", start=1, end=2)
    g.op("Slice", ["position_embeddings", "zero_1d", "sequence_length", "zero_1d"], "positions")
    words = g.op("Gather", ["word_embeddings", "input_ids"], "words")
    types = g.op("Gather", ["token_type_embeddings", "token_type_ids"], "types")
    total = g.op("Add", [g.op("Add", [words, types], "words_types"), "positions"], "embedded")
    return g.layer_norm(
        total, t["embeddings.LayerNorm.weight"], t["embeddings.LayerNorm.bias"], eps, "embeddings.norm"
    )


def attention_mask(g):
    """0 where a token is, the lowest float where padding is; shaped to be added to all heads' scores."""
    g.constant("mask_axes", np.array([1, 2], np.int64))
    g.constant("lowest", np.array(np.finfo(np.float32).min, np.float32))
    mask = g.op("Unsqueeze", ["attention_mask", "mask_axes"], "mask_4d")
    mask = g.op("Cast", [mask], "mask_float", to=TensorProto.FLOAT)
    return g.op("Mul", [g.op("Sub", ["one", mask], "padding"), "lowest"], "mask")


def layer(g, t, i, x, mask, heads, eps):
    p = f"encoder.layer.{i}"
    hidden = t[f"{p}.attention.self.query.weight"].shape[0]
    width = hidden // heads
    parts = [(t[f"{p}.attention.self.{n}.weight"], t[f"{p}.attention.self.{n}.bias"]) for n in ("query", "key", "value")]
    # The 1/√width of the scores goes into the query's weights: one operation less for each layer.
    shrink = np.float32(1 / np.sqrt(width))
    parts[0] = (parts[0][0] * shrink, parts[0][1] * shrink)
    # One product for query, key and value: one pass over the activations (and one quantisation of them).
    qkv = g.linear(x, np.concatenate([w for w, _ in parts]), np.concatenate([b for _, b in parts]), f"l{i}.qkv")
    qkv = g.op("Reshape", [qkv, "split_shape"], f"l{i}.qkv5")
    qkv = g.op("Transpose", [qkv], f"l{i}.qkv5t", perm=[2, 0, 3, 1, 4])
    names = [f"l{i}.{n}" for n in "qkv"]
    g.op("Split", [qkv, "three_ones"], f"l{i}.split", [n + "5" for n in names], axis=0)
    q, k, v = (g.op("Squeeze", [n + "5", "zero_1d"], n) for n in names)
    scores = g.op("MatMul", [q, g.op("Transpose", [k], f"l{i}.kt", perm=[0, 1, 3, 2])], f"l{i}.scores")
    probabilities = g.op("Softmax", [g.op("Add", [scores, mask], f"l{i}.masked")], f"l{i}.softmax", axis=-1)
    context = g.op("MatMul", [probabilities, v], f"l{i}.context")
    context = g.op("Transpose", [context], f"l{i}.context_t", perm=[0, 2, 1, 3])
    context = g.op("Reshape", [context, "merge_shape"], f"l{i}.context_3d")

    def dense_norm(source, residual, prefix, name):
        out = g.linear(source, t[f"{prefix}.dense.weight"], t[f"{prefix}.dense.bias"], f"l{i}.{name}")
        out = g.op("Add", [out, residual], f"l{i}.{name}.residual")
        norm = t[f"{prefix}.LayerNorm.weight"], t[f"{prefix}.LayerNorm.bias"]
        return g.layer_norm(out, *norm, eps, f"l{i}.{name}.norm")

    attended = dense_norm(context, x, f"{p}.attention.output", "attention")
    inner = g.linear(attended, t[f"{p}.intermediate.dense.weight"], t[f"{p}.intermediate.dense.bias"], f"l{i}.inner")
    return dense_norm(g.gelu(inner, f"l{i}.gelu"), attended, f"{p}.output", "outer")


def build(t, shape, eps, int8):
    g = Graph(int8)
    heads, width = shape["num_attention_heads"], shape["hidden_size"] // shape["num_attention_heads"]
    for name, value in (("one", 1.0), ("half", 0.5), ("sqrt2", np.sqrt(2.0))):
        g.constant(name, np.array(value, np.float32))
    if int8:
        for name, value in (("tiny", 1e-12), ("levels", 127), ("offset_and_half", 128.5)):
            g.constant(name, np.array(value, np.float32))
        g.constant("offset", np.array(128, np.uint8))
    g.constant("zero_1d", np.array([0], np.int64))
    g.constant("three_ones", np.array([1, 1, 1], np.int64))
    g.constant("split_shape", np.array([0, 0, 3, heads, width], np.int64))
    g.constant("merge_shape", np.array([0, 0, heads * width], np.int64))
    x, mask = embeddings(g, t, eps), attention_mask(g)
    for i in range(shape["num_hidden_layers"]):
        x = layer(g, t, i, x, mask, heads, eps)
    if "classifier.weight" in t:
        g.constant("first", np.array(0, np.int64))
        x = g.op("Gather", [x, "first"], "first_token", axis=1)
        pooled = g.op("Gemm", [x, g.constant("pooler.weight", t["pooler.dense.weight"]),
                               g.constant("pooler.bias", t["pooler.dense.bias"])], "pooler", transB=1)
        pooled = g.op("Tanh", [pooled], "pooled")
        g.op("Gemm", [pooled, g.constant("classifier.weight", t["classifier.weight"]),
                      g.constant("classifier.bias", t["classifier.bias"])], "logits", transB=1)
        outputs = [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", len(t["classifier.bias"])])]
    else:
        g.op("Identity", [x], "last_hidden_state")
        dims = ["batch", "sequence", shape["hidden_size"]]
        outputs = [helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, dims)]
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.INT64, ["batch", "sequence"])
        for n in ("input_ids", "attention_mask", "token_type_ids")
    ]
    graph = helper.make_graph(g.nodes, "bert", inputs, outputs, g.weights)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="export_onnx")


def infer_shape(t, config, args):
    """What a BERT config.json says, read from the tensors wherever they can tell."""
    vocab, hidden = t["embeddings.word_embeddings.weight"].shape
    layers = 1 + max(int(m[1]) for m in (re.match(r"encoder\.layer\.(\d+)\.", n) for n in t) if m)
    heads = args.heads or config.get("num_attention_heads")
    if not heads:
        sys.exit("error: config.json does not say how many attention heads there are; pass --heads")
    if hidden % heads:
        sys.exit(f"error: hidden size {hidden} is not a multiple of {heads} heads")
    if config.get("hidden_act", "gelu") != "gelu":
        sys.exit(f"error: activation {config['hidden_act']} is not supported, only the exact gelu")
    if config.get("position_embedding_type", "absolute") != "absolute":
        sys.exit(f"error: {config['position_embedding_type']} position embeddings are not supported")
    return {
        "hidden_size": hidden,
        "intermediate_size": t["encoder.layer.0.intermediate.dense.weight"].shape[0],
        "max_position_embeddings": t["embeddings.position_embeddings.weight"].shape[0],
        "num_attention_heads": heads,
        "num_hidden_layers": layers,
        "type_vocab_size": t["embeddings.token_type_embeddings.weight"].shape[0],
        "vocab_size": vocab,
    }


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def write_companions(source, out, config, shape, eps, args, cross_encoder):
    for name in COMPANIONS:
        if (source / name).is_file():
            (out / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source / name, out / name)
    keep = {k: config[k] for k in ("pad_token_id", "id2label", "label2id") if k in config}
    architecture = "BertForSequenceClassification" if cross_encoder else "BertModel"
    extra = {"architectures": [architecture], "model_type": "bert", "hidden_act": "gelu", "layer_norm_eps": eps}
    name = args.name or config.get("_name_or_path") or source.name
    write_json(out / "config.json", {"pad_token_id": 0, **keep, **extra, **shape, "_name_or_path": name})
    if cross_encoder:
        return
    window = args.window or shape["max_position_embeddings"]
    if args.window or not (out / "sentence_bert_config.json").exists():
        write_json(out / "sentence_bert_config.json", {"max_seq_length": window, "do_lower_case": False})
    if not (out / "1_Pooling/config.json").exists():
        pooling = {"word_embedding_dimension": shape["hidden_size"], "pooling_mode_cls_token": args.pooling == "cls",
                   "pooling_mode_mean_tokens": args.pooling == "mean"}
        write_json(out / "1_Pooling/config.json", pooling)
    if not (out / "modules.json").exists():
        steps = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
        write_json(out / "modules.json", [
            {"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
            for i, (path, kind) in enumerate(steps)
        ])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--int8", action="store_true", help="dynamic per-channel int8 products")
    parser.add_argument("--heads", type=int, help="attention heads, if config.json does not say")
    parser.add_argument("--eps", type=float, help="layer-norm epsilon (default: config.json, else 1e-12)")
    parser.add_argument("--window", type=int, help="tokens of one text (default: the checkpoint's, else all positions)")
    parser.add_argument("--pooling", choices=["mean", "cls"], default="mean", help="if the checkpoint does not say")
    parser.add_argument("--name", help="model name for config.json")
    args = parser.parse_args()
    config_file = args.checkpoint / "config.json"
    config = json.loads(config_file.read_text()) if config_file.is_file() else {}
    tensors = strip_prefix(read_safetensors(args.checkpoint / "model.safetensors"))
    shape = infer_shape(tensors, config, args)
    eps = args.eps or config.get("layer_norm_eps", 1e-12)
    model = build(tensors, shape, eps, args.int8)
    onnx.checker.check_model(model)
    args.out.mkdir(parents=True, exist_ok=True)
    write_companions(args.checkpoint, args.out, config, shape, eps, args, "classifier.weight" in tensors)
    # Last, and in one step: a folder with a model.onnx is a complete one.
    unfinished = args.out / "model.onnx.tmp"
    unfinished.write_bytes(model.SerializeToString(deterministic=True))
    unfinished.rename(args.out / "model.onnx")
    print(f"{args.out}: {shape['num_hidden_layers']} layers, {shape['hidden_size']} dimensions")


if __name__ == "__main__":
    main()
