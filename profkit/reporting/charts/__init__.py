"""Charts as inline SVG: pure functions of plain data, one chart per file.

Every chart has the same width in its own units and grows with its container; letters are placed as large as they
are on the narrowest screen, so what does not overlap there overlaps nowhere. Colours stand in `style.css`.
"""
