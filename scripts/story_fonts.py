"""The fonts of docs/stories/ocr.md: Debian's where they are installed, else those inside three PyPI packages.

Both sets hold out whole designs: nothing that is measured with was learned from. Debian's has more of them, a
brush face among them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from argmaxable.models.fetch.pypi import resolve

DEBIAN, PYPI = "Debian", "PyPI"
DEBIAN_PACKAGES = (
    "fonts-wqy-zenhei", "fonts-wqy-microhei", "fonts-arphic-uming", "fonts-arphic-ukai",
    "fonts-arphic-gbsn00lp", "fonts-babelstone-han", "fonts-noto-cjk",
)  # fmt: skip
_LEARNED = (
    "truetype/wqy/wqy-zenhei.ttc", "truetype/wqy/wqy-microhei.ttc", "truetype/arphic/uming.ttc",
    "truetype/babelstone/BabelStoneHan.ttf", "truetype/arphic-gbsn00lp/gbsn00lp.ttf",
)  # fmt: skip
# A serif, a bold sans and a brush face.
_HELD_OUT = (
    "opentype/noto/NotoSerifCJK-Regular.ttc#2", "opentype/noto/NotoSansCJK-Bold.ttc#2",
    "truetype/arphic/ukai.ttc",
)  # fmt: skip
_PACKED_LEARNED = (
    "pypi:mpl-font==1.1.0!mpl_font/fonts/wqy/wqy-microhei.ttc",
    "pypi:mpl-font==1.1.0!mpl_font/fonts/noto/NotoSansCJKsc-Light.otf",
    "pypi:mpl-font==1.1.0!mpl_font/fonts/noto/NotoSansCJKsc-Bold.otf",
    "pypi:matplotlib-fontja==1.1.0!matplotlib_fontja/fonts/ipaexg.ttf",
)
_PACKED_HELD_OUT = ("pypi:mplfonts==0.0.11!mplfonts/fonts/NotoSerifCJKsc-Regular.otf",)


@dataclass(frozen=True)
class StoryFonts:
    """Fonts as the command line takes them: to learn from, and to measure with."""

    learned: tuple[str, ...]
    held_out: tuple[str, ...]

    @property
    def options(self) -> list[str]:
        """The options of `argmaxable teach`."""
        learned = [word for font in self.learned for word in ("--font", font)]
        return learned + [word for font in self.held_out for word in ("--held-out-font", font)]


def story_fonts(source: str | None = None, *, folder: Path = Path("/usr/share/fonts")) -> StoryFonts:
    """The fonts of a source (default: Debian's if all are there, else those from PyPI, which are fetched)."""
    installed = StoryFonts(*(tuple(str(folder / font) for font in fonts) for fonts in (_LEARNED, _HELD_OUT)))
    missing = [font for font in (*installed.learned, *installed.held_out) if not _file(font).is_file()]
    if source == DEBIAN or (source is None and not missing):
        if missing:
            raise SystemExit(f"{missing[0]} is missing: apt-get install {' '.join(DEBIAN_PACKAGES)}")
        return installed
    return StoryFonts(
        *(tuple(str(resolve(font)) for font in fonts) for fonts in (_PACKED_LEARNED, _PACKED_HELD_OUT))
    )


def _file(font: str) -> Path:
    return Path(font.partition("#")[0])
