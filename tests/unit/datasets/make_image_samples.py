#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes image_samples.inc: small JPEG and PNG files of every kind, each with its size and the FNV-1a
hash of the pixels that Pillow (12 or older: later ones resize in another order) makes of it."""

import base64
import io
import struct
import zlib

import numpy as np
from PIL import Image

rng = np.random.default_rng(20)


def fnv(data):
    value = 14695981039346656037
    for byte in data:
        value = (value ^ byte) * 1099511628211 % 2**64
    return value


def scene(height, width, channels):
    """Smooth colours with an edge and some noise, so that DCT, subsampling and filters all matter."""
    y, x = np.mgrid[0:height, 0:width]
    planes = [120 + 100 * np.sin((c + 2) * x / width * 3 + y / height * (c + 1)) for c in range(channels)]
    image = np.stack(planes, -1) + 60 * (x > y)[..., None] + rng.normal(0, 8, (height, width, channels))
    return np.clip(image, 0, 255).astype(np.uint8)


def jpeg(height, width, mode="RGB", **options):
    pixels = scene(height, width, {"L": 1, "RGB": 3, "CMYK": 4}[mode])
    out = io.BytesIO()
    Image.fromarray(pixels.squeeze(-1) if mode == "L" else pixels, mode).save(out, "JPEG", **options)
    return out.getvalue()


def ycck(cmyk):
    """The same samples, said to be luminance and chrominance: Adobe's marker ends in what they are."""
    data = bytearray(cmyk)
    data[data.index(b"Adobe") + 11] = 2
    return bytes(data)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, rows, depth, colour, extra=b""):
    header = struct.pack(">IIBBBBB", width, len(rows), depth, colour, 0, 0, 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + extra
            + chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row for row in rows), 9)) + chunk(b"IEND", b""))


def noise_png(height, width, depth, colour, extra=b"", most=255):
    samples = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    row_bytes = (width * samples * depth + 7) // 8
    rows = [bytes(rng.integers(0, most + 1, row_bytes, dtype=np.uint8)) for _ in range(height)]
    return png(width, rows, depth, colour, extra)


def pixels_of(image):
    """Pillow clips 16-bit grey at 255, which leaves little to see; we take the upper 8 bits."""
    if image.mode == "I;16":
        image = Image.fromarray((np.asarray(image) >> 8).astype(np.uint8))
    return image.convert("RGB").tobytes()


def interlaced_png():
    """Adam7 written by hand: seven small images, each of every so many pixels."""
    pixels = scene(9, 11, 3)
    rows = b""
    for y0, x0, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)):
        part = pixels[y0::dy, x0::dx]
        if part.size:
            rows += b"".join(b"\0" + row.tobytes() for row in part)
    header = struct.pack(">IIBBBBB", 11, 9, 8, 2, 0, 0, 1)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b""))


palette = chunk(b"PLTE", bytes(rng.integers(0, 256, 16 * 3, dtype=np.uint8)))
files = {
    "jpeg_420": jpeg(21, 35, quality=80, subsampling="4:2:0"),
    "jpeg_422": jpeg(17, 18, quality=85, subsampling="4:2:2"),
    "jpeg_444": jpeg(9, 16, quality=90, subsampling="4:4:4"),
    "jpeg_grey": jpeg(13, 10, "L", quality=75),
    "jpeg_progressive": jpeg(20, 19, quality=70, progressive=True),
    "jpeg_cmyk": jpeg(8, 12, "CMYK", quality=90),
    "jpeg_ycck": ycck(jpeg(8, 8, "CMYK", quality=85)),
    "jpeg_one_pixel": jpeg(1, 1),
    "png_rgb": noise_png(5, 7, 8, 2),
    "png_rgb_16": noise_png(3, 4, 16, 2),
    "png_rgba": noise_png(4, 5, 8, 6),
    "png_rgba_16": noise_png(2, 3, 16, 6),
    "png_grey": noise_png(6, 3, 8, 0),
    "png_grey_1": noise_png(5, 11, 1, 0),
    "png_grey_2": noise_png(3, 9, 2, 0),
    "png_grey_4": noise_png(4, 7, 4, 0),
    "png_grey_16": noise_png(3, 5, 16, 0),
    "png_grey_alpha": noise_png(3, 3, 8, 4),
    "png_palette": noise_png(4, 6, 8, 3, palette, most=15),
    "png_palette_4_clear": noise_png(4, 6, 4, 3, palette + chunk(b"tRNS", bytes([0, 90, 255, 7]))),
    "png_rgb_clear_colour": noise_png(2, 2, 8, 2, chunk(b"tRNS", bytes(6))),
    "png_interlaced": interlaced_png(),
    "png_one_pixel": noise_png(1, 1, 8, 2),
}

with open("image_samples.inc", "w", encoding="utf-8") as out:
    out.write("// Written by make_image_samples.py.\n")
    for name, data in files.items():
        image = Image.open(io.BytesIO(data))
        text = base64.b64encode(data).decode()
        lines = "\n     ".join(f'"{text[i:i + 90]}"' for i in range(0, len(text), 90))
        out.write(f'{{"{name}", {image.height}, {image.width}, {fnv(pixels_of(image))}u,\n     {lines}}},\n')
