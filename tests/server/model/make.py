#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
"""Writes model.onnx beside it: an embedding model that costs nothing, for tests that are about anything but meaning.

A token's vector is the sine of its id at eight frequencies. The file is written field by field, so that nothing but Python is
needed; the field numbers are those of ONNX.
"""
import os
import struct

INT, FLOAT, INT64 = 2, 1, 7
WIDTH = 8


def varint(n):
    out = b""
    while n > 127:
        out, n = out + bytes([n & 127 | 128]), n >> 7
    return out + bytes([n])


def number(field, n):
    return varint(field << 3) + varint(n)


def data(field, content):
    content = content.encode() if isinstance(content, str) else content
    return varint(field << 3 | 2) + varint(len(content)) + content


def node(kind, inputs, output, *attributes):
    return data(1, b"".join(data(1, i) for i in inputs) + data(2, output) + data(4, kind)
                + b"".join(data(5, data(1, name) + number(3, value) + number(20, INT)) for name, value in attributes))


def tensor(name, kind, dims, raw):
    return data(5, b"".join(number(1, d) for d in dims) + number(2, kind) + data(8, name) + data(9, raw))


def value(field, name, kind, *dims):
    shape = b"".join(data(1, number(1, d) if isinstance(d, int) else data(2, d)) for d in dims)
    return data(field, data(1, name) + data(2, data(1, number(1, kind) + data(2, shape))))


frequencies = struct.pack(f"<{WIDTH}f", *(1.0 / 3**n for n in range(WIDTH)))
graph = (
    node("Cast", ["input_ids"], "ids", ("to", FLOAT)) + node("Unsqueeze", ["ids", "last"], "column")
    + node("Mul", ["column", "frequencies"], "angles") + node("Sin", ["angles"], "last_hidden_state")
    + data(2, "stand-in") + tensor("last", INT64, [1], struct.pack("<q", -1))
    + tensor("frequencies", FLOAT, [WIDTH], frequencies) + value(11, "input_ids", INT64, "batch", "length")
    + value(12, "last_hidden_state", FLOAT, "batch", "length", WIDTH)
)
model = number(1, 8) + data(7, graph) + data(8, data(1, "") + number(2, 17))
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "model.onnx"), "wb") as file:
    file.write(model)
