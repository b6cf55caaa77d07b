#!/usr/bin/env python3
"""Draws an asciinema cast as an animated GIF, for pages that cannot play one.

    scripts/recording-picture.py CAST OUT.gif

Needs the Python packages pyte and pillow, and the fonts DejaVu Sans Mono and Noto Sans CJK (Debian: fonts-dejavu-core,
fonts-noto-cjk).
"""

import json
import sys
from pathlib import Path

import pyte
from PIL import Image, ImageDraw, ImageFont

SIZE = 13
PLAIN = "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf"
CJK = "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc"
# Changes within this time are one frame.
FRAME = 0.12
LAST = 4.0
BACK, FRONT = (24, 26, 31), (214, 216, 220)
COLOURS = {
    "green": (126, 196, 120), "red": (224, 108, 108), "brown": (222, 184, 104), "yellow": (222, 184, 104),
    "blue": (106, 160, 224), "cyan": (98, 190, 190), "magenta": (190, 130, 210), "black": (110, 114, 122),
}


def main():
    source, out = map(Path, sys.argv[1:])
    head, *events = map(json.loads, source.read_text().splitlines())
    screen = pyte.Screen(head["width"], head["height"])
    stream = pyte.Stream(screen)
    plain = ImageFont.truetype(PLAIN, SIZE)
    wide = ImageFont.truetype(CJK, SIZE)
    width, height = round(plain.getlength("m")), SIZE + 5
    palette = Image.new("P", (1, 1))
    shades = [BACK, *[tuple(round(back + (front - back) * part) for back, front in zip(BACK, colour))
                      for colour in [FRONT, *COLOURS.values()] for part in (0.35, 0.7, 1.0)]]
    palette.putpalette([part for shade in shades for part in shade] + [0] * (768 - 3 * len(shades)))

    def frame():
        image = Image.new("RGB", (head["width"] * width + 16, head["height"] * height + 16), BACK)
        draw = ImageDraw.Draw(image)
        for row in range(head["height"]):
            for column in range(head["width"]):
                cell = screen.buffer[row][column]
                if cell.data.strip():
                    font = wide if ord(cell.data[0]) > 0x2E80 else plain
                    draw.text((8 + column * width, 8 + row * height), cell.data, COLOURS.get(cell.fg, FRONT), font)
        return image.quantize(palette=palette, dither=Image.Dither.NONE)

    frames, times, shown = [], [], 0.0
    for at, (when, _, text) in enumerate(events):
        stream.feed(text)
        following = events[at + 1][0] if at + 1 < len(events) else when + LAST
        if following - shown >= FRAME:
            frames.append(frame())
            times.append(round((following - shown) * 1000))
            shown = following
    frames[0].save(out, save_all=True, append_images=frames[1:], duration=times, loop=0, optimize=False, disposal=1)
    print(f"recording: {out}: {len(frames)} frames, {sum(times) / 1000:.0f} s, {out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
